package secrets

import (
	"encoding/json"
	"errors"
	"net/http"
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
	errVersionExists = &serviceError{"ResourceExistsException",
		"A version of this secret with this request token exists with another value."}
	errInvalidParameter = &serviceError{"InvalidParameterException", "One or more of the parameters is not valid."}
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

// dispatch performs an operation. It refuses a parameter that this package does not support.
func (s *Store) dispatch(r *http.Request) (any, error) {
	operation, known := operations[r.Header.Get("X-Amz-Target")]
	if r.Method != http.MethodPost || !known {
		return nil, errUnknownOperation
	}
	decoder := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxRequestBytes))
	decoder.DisallowUnknownFields()
	var in request
	if decoder.Decode(&in) != nil {
		return nil, errInvalidParameter
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	secret := s.findSecret(in.SecretID)
	if secret == nil {
		return nil, errNoSecret
	}
	return operation(s, secret, in)
}

// operations are the operations on one existing secret, by X-Amz-Target.
var operations = map[string]func(*Store, *storedSecret, request) (any, error){
	"secretsmanager.GetSecretValue": (*Store).getSecretValue,
	"secretsmanager.DescribeSecret": (*Store).describeSecret,
	"secretsmanager.PutSecretValue": (*Store).putSecretValue,
}
