package outside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// staleReadLimit is how long after a rotation an earlier version may still be read.
const staleReadLimit = time.Minute

// ErrSecretUnreadable is the error of a secret that cannot be read.
var ErrSecretUnreadable = errors.New("outside: the secret store failed")

// Secrets is the secret store. Set its fields before the first call.
type Secrets struct {
	// Faults are the rates of the history; required.
	Faults *Faults
	// Trace receives one line for each rotation and fault; nil discards them. It never receives a value.
	Trace func(string)

	values map[string]*storedSecret
}

// storedSecret has the versions of one secret, oldest first.
type storedSecret struct {
	versions   [][]byte
	rotatedAt  time.Time
	unreadable []Window
}

// Set stores a new current version of a secret. The first one creates the secret.
func (s *Secrets) Set(now time.Time, id string, value []byte) {
	stored := s.find(id)
	version := fmt.Sprintf("%s-%d", id, len(stored.versions)+1)
	stored.versions = append(stored.versions, value)
	stored.rotatedAt = now
	s.trace("stored the version " + version)
}

// Current returns the current version, for the code that rotates a secret. It returns false if there is none.
func (s *Secrets) Current(id string) ([]byte, bool) {
	stored := s.find(id)
	if len(stored.versions) == 0 {
		return nil, false
	}
	return stored.versions[len(stored.versions)-1], true
}

// SetUnreadable makes every fetch of a secret fail for a time.
func (s *Secrets) SetUnreadable(id string, window Window) {
	stored := s.find(id)
	stored.unreadable = append(stored.unreadable, window)
}

// Unreadable reports whether every fetch of a secret fails now.
func (s *Secrets) Unreadable(now time.Time, id string) bool {
	return slices.ContainsFunc(s.find(id).unreadable, func(window Window) bool { return window.Contains(now) })
}

// Fetch reads a secret. An error that is context.DeadlineExceeded means that no response came: the caller waits until
// the fetch's context ends, and then returns it.
func (s *Secrets) Fetch(now time.Time, id string, c Chooser) ([]byte, error) {
	stored := s.find(id)
	if s.Unreadable(now, id) {
		s.trace(id + " is unreadable")
		return nil, ErrSecretUnreadable
	}
	current, found := s.Current(id)
	if !found {
		return nil, fmt.Errorf("%w: %s does not exist", ErrSecretUnreadable, id)
	}
	fault := s.Faults.pick(c, SecretFetches)
	if fault != NoFault {
		s.trace(id + ": fault: " + string(fault))
	}
	switch {
	case fault == SecretError:
		return nil, ErrSecretUnreadable
	case fault == SecretTimeout:
		return nil, context.DeadlineExceeded
	case fault == SecretStale && len(stored.versions) > 1 && now.Sub(stored.rotatedAt) < staleReadLimit:
		return stored.versions[len(stored.versions)-2], nil
	}
	return current, nil
}

// find returns the secret of an id, a new empty one if there is none.
func (s *Secrets) find(id string) *storedSecret {
	if s.values == nil {
		s.values = map[string]*storedSecret{}
	}
	if s.values[id] == nil {
		s.values[id] = &storedSecret{}
	}
	return s.values[id]
}

func (s *Secrets) trace(text string) {
	if s.Trace != nil {
		s.Trace("secrets: " + text)
	}
}
