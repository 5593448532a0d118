// Package secrets is a local Secrets Manager over one file. It has the operations of the service's own protocol that
// the gateway and its tools use: GetSecretValue, DescribeSecret and PutSecretValue, for texts.
//
// It is for a developer's machine: it does not encrypt and checks no signature. The invariants: the file always has a
// complete state, because it is replaced; and of a secret's values the last one is AWSCURRENT, the one before
// AWSPREVIOUS.
package secrets

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/internal/local/file"
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
