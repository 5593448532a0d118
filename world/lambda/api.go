package lambda

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"mobilegateway/internal/childprocess"
)

// maxInitError bounds the error document of a failed start.
const maxInitError = 64 << 10

// routes returns the Lambda Runtime API, version 2018-06-01, under a path that only the process knows.
func (p *process) routes() http.Handler {
	mux := http.NewServeMux()
	base := "/" + p.secret + "/2018-06-01/runtime/"
	mux.HandleFunc("GET "+base+"invocation/next", p.nextInvocation)
	mux.HandleFunc("POST "+base+"invocation/{id}/response", p.receiveResult(false))
	mux.HandleFunc("POST "+base+"invocation/{id}/error", p.receiveResult(true))
	mux.HandleFunc("POST "+base+"init/error", p.receiveInitError)
	return mux
}

// nextInvocation waits until there is an event and sends it.
func (p *process) nextInvocation(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if p.firstPoll.IsZero() {
		p.firstPoll = time.Now()
	}
	p.mu.Unlock()
	if p.freezes {
		childprocess.FreezeGroup(p.command.Process)
	}
	select {
	case d := <-p.pending:
		if p.freezes {
			childprocess.ThawGroup(p.command.Process)
		}
		p.mu.Lock()
		p.current = d
		p.mu.Unlock()
		header := w.Header()
		header.Set("Content-Type", "application/json")
		header.Set("Lambda-Runtime-Aws-Request-Id", d.event.ID)
		header.Set("Lambda-Runtime-Invoked-Function-Arn", d.event.ARN)
		header.Set("Lambda-Runtime-Trace-Id", d.event.Trace)
		header.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(d.timeout).UnixMilli(), 10))
		_, _ = w.Write(d.event.Payload) // a process that has ended is found by its exit
	case <-r.Context().Done():
	}
}

// receiveResult receives the response to the current event, or the error document for it.
func (p *process) receiveResult(functionError bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxResponse))
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			result := errorResult("Function.ResponseSizeTooLarge", r.PathValue("id"),
				"Response payload size exceeded maximum allowed payload size")
			p.completeInvocation(w, r, result, http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			return // incomplete: the exit of the process or its timeout ends the invocation
		}
		p.completeInvocation(w, r, Result{Payload: body, FunctionError: functionError}, http.StatusAccepted)
	}
}

// completeInvocation ends the current event if the path has its id.
func (p *process) completeInvocation(w http.ResponseWriter, r *http.Request, result Result, status int) {
	p.mu.Lock()
	d := p.current
	known := d != nil && d.event.ID == r.PathValue("id")
	if known {
		p.current = nil
	}
	p.mu.Unlock()
	if !known {
		writeJSON(w, http.StatusBadRequest, `{"errorType":"InvalidRequestID","errorMessage":"Invalid request ID"}`)
		return
	}
	writeJSON(w, status, `{"status":"OK"}`)
	d.result <- result
}

// receiveInitError stores the error of a failed start. The process then ends by itself.
func (p *process) receiveInitError(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxInitError))
	if err != nil {
		return
	}
	p.mu.Lock()
	p.initError = body
	p.mu.Unlock()
	writeJSON(w, http.StatusAccepted, `{"status":"OK"}`)
}

func writeJSON(w http.ResponseWriter, status int, document string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, document)
}
