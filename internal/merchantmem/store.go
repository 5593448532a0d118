// Package merchantmem keeps merchant profiles in memory, for tests and simulations. It counts reads and can inject
// failures. It is safe for concurrent use.
package merchantmem

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"mobilegateway/shared/merchant"
)

// Store is a merchant.Registry in memory. The zero value is empty and ready.
type Store struct {
	mutex     sync.Mutex
	documents map[string][]byte // by id
	names     map[string]string // id by name key
	readCount int
	err       error
}

var _ merchant.Registry = (*Store)(nil)

// ReadCount returns the number of calls of Profile.
func (s *Store) ReadCount() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.readCount
}

// FailWith makes every later call fail with err; nil ends that.
func (s *Store) FailWith(err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.err = err
}

// Profile implements merchant.Store.
func (s *Store) Profile(_ context.Context, id string) (*merchant.Profile, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.readCount++
	if s.err != nil {
		return nil, s.err
	}
	document, found := s.documents[id]
	if !found {
		return nil, nil
	}
	return merchant.Decode(document)
}

// Create implements merchant.Registry.
func (s *Store) Create(_ context.Context, p *merchant.Profile) error {
	document, err := merchant.Encode(p)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.err != nil {
		return s.err
	}
	key := merchant.NormalizeName(p.Name)
	storedDocument, exists := s.documents[p.ID]
	ownerID, taken := s.names[key]
	switch {
	case exists && bytes.Equal(storedDocument, document):
		return nil
	case taken && ownerID != p.ID:
		return merchant.ErrNameTaken
	case taken, exists:
		return merchant.ErrIDTaken
	}
	if s.documents == nil {
		s.documents, s.names = map[string][]byte{}, map[string]string{}
	}
	s.documents[p.ID], s.names[key] = document, p.ID
	return nil
}

// Update implements merchant.Registry.
func (s *Store) Update(_ context.Context, p *merchant.Profile) error {
	next := p.Clone()
	next.Version++
	document, err := merchant.Encode(next)
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.err != nil {
		return s.err
	}
	storedDocument, exists := s.documents[p.ID]
	if !exists {
		return merchant.ErrNotFound
	}
	if bytes.Equal(storedDocument, document) {
		p.Version = next.Version
		return nil
	}
	stored, err := merchant.Decode(storedDocument)
	if err != nil {
		return err
	}
	if stored.Version != p.Version || stored.Name != p.Name {
		return merchant.ErrVersionConflict
	}
	s.documents[p.ID] = document
	p.Version = next.Version
	return nil
}

// IDByName implements merchant.Registry.
func (s *Store) IDByName(_ context.Context, name string) (string, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.names[merchant.NormalizeName(name)], s.err
}

// IDs implements merchant.Registry.
func (s *Store) IDs(context.Context) ([]string, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var ids []string
	for id := range s.documents {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, s.err
}
