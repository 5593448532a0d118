package secrets

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// maxRequest is the largest request in bytes: a value of 64 KiB, in base64, with room to spare.
const maxRequest = 256 << 10

// serviceError is an error in the service's own shape.
type serviceError struct {
	kind, message string
}

// Error names the kind and says what is wrong.
func (e *serviceError) Error() string { return e.kind + ": " + e.message }

// The service's errors that the operations need.
var (
	errNoSecret  = &serviceError{"ResourceNotFoundException", "Secrets Manager can't find the specified secret."}
	errNoValue   = &serviceError{"ResourceNotFoundException", "Secrets Manager can't find the specified secret value for staging label: AWSCURRENT"}
	errNoVersion = &serviceError{"ResourceNotFoundException", "Secrets Manager can't find the specified secret version."}
	errExists    = &serviceError{"ResourceExistsException", "The operation failed because the secret already exists."}
	errVersion   = &serviceError{"ResourceExistsException", "A version of this secret with this request token exists with another value."}
	errParameter = &serviceError{"InvalidParameterException", "One or more of the parameters is not valid."}
	errRequest   = &serviceError{"InvalidRequestException", "A parameter value is not valid for the current state of the resource."}
	errOperation = &serviceError{"UnknownOperationException", "The local Secrets Manager does not know this operation."}
)

// ServeHTTP speaks the service's JSON 1.1 protocol.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Amzn-Requestid", s.newID())
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	answer, err := s.dispatch(r)
	var fault *serviceError
	switch {
	case errors.As(err, &fault):
		w.WriteHeader(http.StatusBadRequest)
		answer = map[string]string{"__type": fault.kind, "message": fault.message}
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
		answer = map[string]string{"__type": "InternalServiceError", "message": "An error occurred on the server side."}
	}
	body, _ := json.Marshal(answer) // the operations' answers are plain structs
	_, _ = w.Write(body)
}

// dispatch finds the operation that X-Amz-Target names.
func (s *Store) dispatch(r *http.Request) (any, error) {
	name, found := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "secretsmanager.")
	if r.Method != http.MethodPost || !found {
		return nil, errOperation
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxRequest))
	if err != nil {
		return nil, errParameter
	}
	var in request
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, errParameter
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
	return nil, errOperation
}
