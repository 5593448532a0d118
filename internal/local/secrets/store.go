// Package secrets is a local Secrets Manager over one file. It has the part of the service's own protocol that the
// gateway, its tools and the SDK's clients use.
//
// It is for a developer's machine: it does not encrypt and checks no signature. The invariants: the file always has a
// complete state, because it is replaced; and of a secret's values exactly one is AWSCURRENT.
package secrets

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/internal/local/file"
)

// The staging labels that the service itself moves.
const (
	stageCurrent  = "AWSCURRENT"
	stagePrevious = "AWSPREVIOUS"
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
	Name     string           `json:"name"`
	ARN      string           `json:"arn"`
	Created  time.Time        `json:"created"`
	Changed  time.Time        `json:"changed"`
	Versions []*secretVersion `json:"versions,omitempty"` // oldest first
}

// secretVersion is one value of a secret. Exactly one of Text and Binary is set.
type secretVersion struct {
	ID      string    `json:"id"`
	Text    *string   `json:"text,omitempty"`
	Binary  []byte    `json:"binary,omitempty"`
	Stages  []string  `json:"stages,omitempty"`
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

// Ensure creates the secrets that are missing, without a value, as CloudFormation does.
func (s *Store) Ensure(names ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if s.findSecret(name) == nil {
			s.addSecret(name)
		}
	}
	return s.save()
}

// addSecret adds a secret without a value. Its ARN ends in six random characters, as the service's do.
func (s *Store) addSecret(name string) *storedSecret {
	now := s.now().UTC()
	suffix := strings.ReplaceAll(s.newID(), "-", "")[:6]
	secret := &storedSecret{
		Name: name, Created: now, Changed: now,
		ARN: "arn:aws:secretsmanager:us-east-1:000000000000:secret:" + name + "-" + suffix,
	}
	s.secrets = append(s.secrets, secret)
	return secret
}

func (s *Store) addVersion(secret *storedSecret, v *secretVersion, stages []string) {
	v.Created = s.now().UTC()
	secret.Versions = append(secret.Versions, v)
	secret.Changed = v.Created
	for _, stage := range stages {
		secret.moveStage(stage, v)
	}
}

// moveStage moves a label to a version. The version that loses AWSCURRENT gets AWSPREVIOUS.
func (s *storedSecret) moveStage(stage string, to *secretVersion) {
	from := s.withStage(stage)
	if from == to {
		return
	}
	if from != nil {
		from.removeStage(stage)
	}
	if to != nil {
		to.Stages = append(slices.Clip(to.Stages), stage)
	}
	if stage == stageCurrent && from != nil {
		to.removeStage(stagePrevious)
		s.moveStage(stagePrevious, from)
	}
}

// removeStage removes a label. It makes a new list, because a response with the old one may be in use.
func (v *secretVersion) removeStage(stage string) {
	v.Stages = slices.DeleteFunc(slices.Clone(v.Stages), func(s string) bool { return s == stage })
}

// withStage finds the version with a label; nil if there is none.
func (s *storedSecret) withStage(stage string) *secretVersion {
	return find(s.Versions, func(v *secretVersion) bool { return slices.Contains(v.Stages, stage) })
}

// withID finds a version; nil if there is none.
func (s *storedSecret) withID(id string) *secretVersion {
	return find(s.Versions, func(v *secretVersion) bool { return v.ID == id })
}

// findSecret finds a secret by its name or ARN; nil if there is none.
func (s *Store) findSecret(id string) *storedSecret {
	return find(s.secrets, func(secret *storedSecret) bool { return secret.Name == id || secret.ARN == id })
}

func find[T any](list []*T, matches func(*T) bool) *T {
	if i := slices.IndexFunc(list, matches); i >= 0 {
		return list[i]
	}
	return nil
}

func (s *Store) save() error { return file.ReplaceJSON(s.path, s.secrets) }
