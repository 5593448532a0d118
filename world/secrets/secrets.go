// Package secrets is a local Secrets Manager over one file. It has the operations of the service's own protocol that
// the gateway and its tools use: GetSecretValue, DescribeSecret and PutSecretValue, for texts.
//
// It is for a developer's machine: it does not encrypt and checks no signature. The invariants: the file always has a
// complete state, because it is replaced; and of a secret's values the last one is AWSCURRENT, the one before
// AWSPREVIOUS.
package secrets

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/internal/file"
)

// Store stores secrets in a file. It is safe for concurrent use.
type Store struct {
	path  string
	now   func() time.Time
	newID func() string

	mu      sync.Mutex
	secrets []*storedSecret
}

type storedSecret struct {
	Name     string          `json:"name"`
	ARN      string          `json:"arn"`
	Created  time.Time       `json:"created"`
	Changed  time.Time       `json:"changed"`
	Versions []secretVersion `json:"versions,omitempty"` // oldest first
}

// secretVersion is one value of a secret.
type secretVersion struct {
	ID      string    `json:"id"`
	Text    string    `json:"text"`
	Created time.Time `json:"created"`
}

// Open reads the file, or starts without secrets. newID returns a new UUID.
func Open(path string, now func() time.Time, newID func() string) (*Store, error) {
	s := &Store{path: path, now: now, newID: newID}
	if err := file.ReadJSON(path, &s.secrets); err != nil {
		return nil, fmt.Errorf("read the secrets: %w", err)
	}
	return s, nil
}

// Ensure creates the secrets that are missing, without a value, as CloudFormation does. A secret's ARN ends in six
// random characters, as the service's do.
func (s *Store) Ensure(names ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if s.findSecret(name) != nil {
			continue
		}
		now, suffix := s.now().UTC(), strings.ReplaceAll(s.newID(), "-", "")[:6]
		s.secrets = append(s.secrets, &storedSecret{
			Name: name, Created: now, Changed: now,
			ARN: "arn:aws:secretsmanager:us-east-1:000000000000:secret:" + name + "-" + suffix,
		})
	}
	return s.save()
}

// findSecret finds a secret by its name or ARN; nil if there is none.
func (s *Store) findSecret(id string) *storedSecret {
	matches := func(secret *storedSecret) bool { return secret.Name == id || secret.ARN == id }
	if i := slices.IndexFunc(s.secrets, matches); i >= 0 {
		return s.secrets[i]
	}
	return nil
}

func (s *Store) save() error { return file.ReplaceJSON(s.path, s.secrets) }

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

// request has the parameters of all operations.
type request struct {
	SecretID           string `json:"SecretId"`
	ClientRequestToken string
	SecretString       *string
}

// valueResponse is a response about one version.
type valueResponse struct {
	ARN, Name     string
	VersionID     string   `json:"VersionId"`
	SecretString  string   `json:",omitempty"`
	VersionStages []string `json:",omitempty"`
	CreatedDate   float64  `json:",omitempty"`
}

// describeResponse is a response about a secret. Dates are seconds since 1970.
type describeResponse struct {
	ARN, Name          string
	CreatedDate        float64
	LastChangedDate    float64
	VersionIdsToStages map[string][]string `json:",omitempty"`
}

func (*Store) getSecretValue(secret *storedSecret, _ request) (any, error) {
	last := len(secret.Versions) - 1
	if last < 0 {
		return nil, errNoValue
	}
	response := secret.response(last)
	response.SecretString, response.CreatedDate = secret.Versions[last].Text, unixSeconds(secret.Versions[last].Created)
	return response, nil
}

// response returns what all responses have about the version at an index.
func (s *storedSecret) response(index int) valueResponse {
	return valueResponse{ARN: s.ARN, Name: s.Name, VersionID: s.Versions[index].ID, VersionStages: s.stages(index)}
}

// stages returns the staging labels of the version at an index.
func (s *storedSecret) stages(index int) []string {
	switch len(s.Versions) - index {
	case 1:
		return []string{"AWSCURRENT"}
	case 2:
		return []string{"AWSPREVIOUS"}
	}
	return nil
}

func (*Store) describeSecret(secret *storedSecret, _ request) (any, error) {
	d := describeResponse{
		ARN: secret.ARN, Name: secret.Name, CreatedDate: unixSeconds(secret.Created),
		LastChangedDate: unixSeconds(secret.Changed), VersionIdsToStages: map[string][]string{},
	}
	for i, v := range secret.Versions {
		if stages := secret.stages(i); stages != nil {
			d.VersionIdsToStages[v.ID] = stages
		}
	}
	return d, nil
}

// putSecretValue adds a value. The same request token with the same value changes nothing; another value is an error.
func (s *Store) putSecretValue(secret *storedSecret, in request) (any, error) {
	if in.SecretString == nil {
		return nil, errInvalidParameter
	}
	v := secretVersion{cmp.Or(in.ClientRequestToken, s.newID()), *in.SecretString, s.now().UTC()}
	if i := slices.IndexFunc(secret.Versions, func(old secretVersion) bool { return old.ID == v.ID }); i >= 0 {
		if secret.Versions[i].Text != v.Text {
			return nil, errVersionExists
		}
		return secret.response(i), nil
	}
	secret.Versions, secret.Changed = append(secret.Versions, v), v.Created
	return secret.response(len(secret.Versions) - 1), s.save()
}

// unixSeconds returns a date in the protocol's form.
func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
