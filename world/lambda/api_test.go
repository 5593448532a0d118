package lambda

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestOnlyTheProcessReachesItsAPI: another user of the machine would get events with tokens, and could respond to them.
func TestOnlyTheProcessReachesItsAPI(t *testing.T) {
	const path = "/2018-06-01/runtime/invocation/next"
	p := &process{secret: "SECRET", pending: make(chan *invocation)}
	for path, want := range map[string]int{
		path: http.StatusNotFound, "/secret" + path: http.StatusNotFound,
		"/%53ECRE" + path: http.StatusNotFound, "/{secret}" + path: http.StatusNotFound,
		"/SECRET" + path: http.StatusOK,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the wait for an event ends at once
		recorder := httptest.NewRecorder()
		p.routes().ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody))
		if recorder.Code != want {
			t.Errorf("%s: status %d, want %d", path, recorder.Code, want)
		}
	}
	environment := strings.Join(processEnvironment(Spec{}, "127.0.0.1:1/SECRET"), " ")
	if !strings.Contains(environment, "AWS_LAMBDA_RUNTIME_API=127.0.0.1:1/SECRET") {
		t.Errorf("the process does not get its address: %s", environment)
	}
}
