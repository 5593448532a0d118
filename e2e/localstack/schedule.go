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

// sweepInterval is the schedule's minute at the stories' speed. LocalStack's own rule goes on beside it, once a minute.
const sweepInterval = time.Second

// startFastSchedule invokes the scheduled function through LocalStack's Lambda at the stories' speed, until ctx ends.
func (s *localStackRun) startFastSchedule(ctx context.Context) error {
	name, err := s.server.deployedFunctionName(ctx, "SweepFunction")
	if err != nil {
		return err
	}
	go func() {
		ticker := time.NewTicker(sweepInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_, _ = s.server.callLambda(ctx, http.MethodPost, name+"/invocations", []byte("{}")) // the next one comes at once
			}
		}
	}()
	return nil
}

// deployedFunctionName finds the deployed name of a function of the template.
func (s *localStackServer) deployedFunctionName(ctx context.Context, logicalID string) (string, error) {
	hashes, err := s.codeHashes(ctx)
	for name := range hashes {
		if strings.HasPrefix(name, stackName+"-"+logicalID) {
			return name, nil
		}
	}
	return "", errors.Join(err, fmt.Errorf("there is no function %s", logicalID))
}

// codeHashes are the hashes of the deployed programs by the functions' names.
func (s *localStackServer) codeHashes(ctx context.Context) (map[string]string, error) {
	text, err := s.callLambda(ctx, http.MethodGet, "", nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Functions []struct{ FunctionName, CodeSha256 string }
	}
	err = json.Unmarshal(text, &list)
	hashes := map[string]string{}
	for _, f := range list.Functions {
		hashes[f.FunctionName] = f.CodeSha256
	}
	return hashes, err
}

// callLambda asks LocalStack's Lambda.
func (s *localStackServer) callLambda(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	return s.call(ctx, "lambda", method, "/2015-03-31/functions/"+path, "", body)
}
