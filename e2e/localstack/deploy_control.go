//go:build linux

package main

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"

	"mobilegateway/e2e/harness"
)

// serveDeployControl listens for the changes that TestDeployWithPaymentsInFlight asks for, and returns its address.
func (s *localStackRun) serveDeployControl() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	changes := map[string]func(*http.Request) error{"POST /programs": s.deployOtherPrograms, "POST /keys": s.addRingKeys}
	mux := http.NewServeMux()
	for route, change := range changes {
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			s.logf("%s begins", route)
			err := change(r)
			s.logf("%s is done: %v", route, err)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	harness.Serve(listener, mux)
	return "http://" + listener.Addr().String(), nil
}

// deployOtherPrograms deploys other programs: the same sources under another build id, so that every program's bytes differ.
func (s *localStackRun) deployOtherPrograms(r *http.Request) error {
	before, err := s.server.codeHashes(r.Context())
	if err != nil {
		return err
	}
	bundle := filepath.Join(s.Dir, "second-bundle")
	if err := s.stack.build(r.Context(), bundle, "second"); err != nil {
		return err
	}
	if err := s.stack.deploy(r.Context(), bundle); err != nil {
		return err
	}
	after, err := s.server.codeHashes(r.Context())
	if err != nil {
		return err
	}
	for name, code := range after {
		if before[name] == code || before[name] == "" {
			return fmt.Errorf("%s was not replaced", name)
		}
	}
	return nil
}

// addRingKeys adds a key to every ring.
func (s *localStackRun) addRingKeys(r *http.Request) error {
	return s.deployment.AddRingKeys(r.Context())
}
