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
	Kind    string `json:"__type"`
	Message string `json:"message"`
}

// Error returns kind and message.
func (e *serviceError) Error() string { return e.Kind + ": " + e.Message }

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
	if refused, isRefused := errors.AsType[*serviceError](err); isRefused {
		w.WriteHeader(http.StatusBadRequest)
		response = refused
	} else if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		response = &serviceError{"InternalServiceError", "An error occurred on the server side."}
	}
	body, _ := json.Marshal(response) // the responses are plain structs
	_, _ = w.Write(body)
}

func (s *Store) dispatch(r *http.Request) (any, error) {
	name, found := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "secretsmanager.")
	if r.Method != http.MethodPost || !found {
		return nil, errUnknownOperation
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxRequestBytes))
	var in request
	if err != nil || json.Unmarshal(body, &in) != nil {
		return nil, errInvalidParameter
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name {
	case "CreateSecret":
		return s.createSecret(in)
	case "ListSecrets":
		return s.listSecrets(), nil
	}
	operation, known := secretOperations[name]
	if !known {
		return nil, errUnknownOperation
	}
	secret := s.findSecret(in.SecretID)
	if secret == nil {
		return nil, errNoSecret
	}
	return operation(s, secret, in)
}

// secretOperations are the operations on one existing secret.
var secretOperations = map[string]func(*Store, *storedSecret, request) (any, error){
	"GetSecretValue":           (*Store).getSecretValue,
	"DescribeSecret":           func(_ *Store, s *storedSecret, _ request) (any, error) { return s.describe(), nil },
	"PutSecretValue":           (*Store).putSecretValue,
	"UpdateSecretVersionStage": (*Store).updateSecretVersionStage,
}
