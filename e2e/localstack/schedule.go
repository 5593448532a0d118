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

// sweepInterval is the schedule's minute at the stories' speed. LocalStack's own schedule also runs, once a minute.
const sweepInterval = time.Second

// startFastSchedule invokes the sweep through LocalStack's Lambda at the stories' speed, until ctx ends.
func (s *suite) startFastSchedule(ctx context.Context) error {
	name, err := s.server.deployedFunctionName(ctx, s.stack+"-SweepFunction")
	if err != nil {
		return err
	}
	go func() {
		for ; ctx.Err() == nil; time.Sleep(sweepInterval) {
			// the next invocation follows soon
			_, _ = s.server.callLambda(ctx, http.MethodPost, name+"/invocations", "{}")
		}
	}()
	return nil
}

// deployedFunctionName returns the function whose name begins with a stack's name and a logical id.
func (s *localStackServer) deployedFunctionName(ctx context.Context, prefix string) (string, error) {
	hashes, err := s.codeHashes(ctx)
	for name := range hashes {
		if strings.HasPrefix(name, prefix) {
			return name, nil
		}
	}
	return "", errors.Join(err, fmt.Errorf("LocalStack has no function %s", prefix))
}

func (s *localStackServer) codeHashes(ctx context.Context) (map[string]string, error) {
	text, err := s.callLambda(ctx, http.MethodGet, "", "")
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

func (s *localStackServer) callLambda(ctx context.Context, method, path, body string) ([]byte, error) {
	path = "/2015-03-31/functions/" + path
	return s.call(ctx, serviceCall{service: "lambda", method: method, path: path, body: body})
}
