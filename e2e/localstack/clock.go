//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// sweepEvery is the schedule's minute at the stories' speed. LocalStack's own rule goes on beside it, once a minute.
const sweepEvery = time.Second

// quicken invokes the scheduled function through LocalStack's Lambda at the stories' speed, until ctx ends.
func (s *stand) quicken(ctx context.Context) error {
	name, err := s.server.function(ctx, "SweepFunction")
	if err != nil {
		return err
	}
	go func() {
		ticker := time.NewTicker(sweepEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_, _ = s.server.lambda(ctx, http.MethodPost, name+"/invocations", []byte("{}")) // the next one comes at once
			}
		}
	}()
	return nil
}

// function finds the deployed name of a function of the template.
func (s *server) function(ctx context.Context, logicalID string) (string, error) {
	codes, err := s.codes(ctx)
	for name := range codes {
		if strings.HasPrefix(name, stackName+"-"+logicalID) {
			return name, nil
		}
	}
	return "", errors.Join(err, fmt.Errorf("there is no function %s", logicalID))
}

// codes are the hashes of the deployed programs by the functions' names.
func (s *server) codes(ctx context.Context) (map[string]string, error) {
	text, err := s.lambda(ctx, http.MethodGet, "", nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Functions []struct{ FunctionName, CodeSha256 string }
	}
	err = json.Unmarshal(text, &list)
	codes := map[string]string{}
	for _, f := range list.Functions {
		codes[f.FunctionName] = f.CodeSha256
	}
	return codes, err
}

// lambda asks LocalStack's Lambda.
func (s *server) lambda(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	return s.call(ctx, "lambda", method, "/2015-03-31/functions/"+path, "", body)
}
