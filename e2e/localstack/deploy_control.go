//go:build linux

package main

import (
	"fmt"
	"net/http"
	"path/filepath"

	"mobilegateway/e2e/harness"
)

// serveDeployControl serves the changes that TestDeployWithPaymentsInFlight requests, and returns its address.
func (s *suite) serveDeployControl() (string, error) {
	mux := http.NewServeMux()
	for route, change := range map[string]func(*http.Request) error{
		"POST /programs": s.deployOtherPrograms,
		"POST /keys":     func(r *http.Request) error { return s.deployment.AddRingKeys(r.Context()) },
	} {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			s.Logf("%s begins", route)
			err := change(r)
			s.Logf("%s ends: %v", route, err)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	return harness.ListenAndServe("127.0.0.1", mux)
}

// deployOtherPrograms deploys the same sources with another build id, so that the bytes of every program differ.
func (s *suite) deployOtherPrograms(r *http.Request) error {
	before, err := s.server.codeHashes(r.Context())
	if err != nil {
		return err
	}
	bundle := harness.Bundle{
		Checkout: s.Root, Dir: filepath.Join(s.Dir, "second-bundle"), BuildID: "second", Parameters: s.parameters,
	}
	if err := bundle.Build(r.Context(), s.Workspace); err != nil {
		return err
	}
	if err := s.deploy(r.Context(), bundle.Dir); err != nil {
		return err
	}
	after, err := s.server.codeHashes(r.Context())
	if err != nil {
		return err
	}
	for name, code := range after {
		if before[name] == code || before[name] == "" {
			return fmt.Errorf("the deployment did not replace the program of %s", name)
		}
	}
	return nil
}
