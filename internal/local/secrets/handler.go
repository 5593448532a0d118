package secrets

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// maxRequestBytes is the maximum size of a request: enough for a value of 64 KiB in base64.
const maxRequestBytes = 256 << 10

// serviceError is an error in the service's own form.
type serviceError struct {
	kind, message string
}

// Error returns kind and message.
func (e *serviceError) Error() string { return e.kind + ": " + e.message }

// The service's errors that the operations need.
var (
	errNoSecret = &serviceError{"ResourceNotFoundException", "Secrets Manager can't find the specified secret."}
	errNoValue  = &serviceError{"ResourceNotFoundException",
		"Secrets Manager can't find the specified secret value for staging label: AWSCURRENT"}
	errNoVersion = &serviceError{"ResourceNotFoundException",
		"Secrets Manager can't find the specified secret version."}
	errSecretExists = &serviceError{"ResourceExistsException",
		"The operation failed because the secret already exists."}
	errVersionExists = &serviceError{"ResourceExistsException",
		"A version of this secret with this request token exists with another value."}
	errInvalidParameter = &serviceError{"InvalidParameterException", "One or more of the parameters is not valid."}
	errInvalidRequest   = &serviceError{"InvalidRequestException",
		"A parameter value is not valid for the current state of the resource."}
	errUnknownOperation = &serviceError{"UnknownOperationException",
		"The local Secrets Manager does not have this operation."}
)

// ServeHTTP speaks the service's JSON 1.1 protocol.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Amzn-Requestid", s.newID())
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	response, err := s.dispatch(r)
	var serviceErr *serviceError
	switch {
	case errors.As(err, &serviceErr):
		w.WriteHeader(http.StatusBadRequest)
		response = map[string]string{"__type": serviceErr.kind, "message": serviceErr.message}
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
		response = map[string]string{
			"__type": "InternalServiceError", "message": "An error occurred on the server side.",
		}
	}
	body, _ := json.Marshal(response) // the operations' responses are plain structs
	_, _ = w.Write(body)
}

// dispatch runs the operation of X-Amz-Target.
func (s *Store) dispatch(r *http.Request) (any, error) {
	name, found := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "secretsmanager.")
	if r.Method != http.MethodPost || !found {
		return nil, errUnknownOperation
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxRequestBytes))
	if err != nil {
		return nil, errInvalidParameter
	}
	var in request
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, errInvalidParameter
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name {
	case "GetSecretValue":
		return s.getSecretValue(in)
	case "DescribeSecret":
		return s.describeSecret(in)
	case "PutSecretValue":
		return s.putSecretValue(in)
	case "UpdateSecretVersionStage":
		return s.updateSecretVersionStage(in)
	case "CreateSecret":
		return s.createSecret(in)
	case "ListSecrets":
		return s.listSecrets()
	}
	return nil, errUnknownOperation
}
