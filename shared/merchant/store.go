package merchant

import (
	"context"
	"errors"
)

// Store is what authentication needs: one profile by its id.
type Store interface {
	// Profile reads a profile, strongly consistent. It returns nil when there is none. The caller must not change it.
	Profile(ctx context.Context, id string) (*Profile, error)
}

// Registry is what onboarding needs beside.
type Registry interface {
	Store

	// Create stores a new profile (Version 1) and reserves its name for ever, both or neither. ErrNameTaken: another
	// merchant has or had the name. ErrIDTaken: the id exists. Creating the very same profile again succeeds.
	Create(ctx context.Context, p *Profile) error

	// Update stores p where the stored profile still has p.Version, and then raises p.Version by one. ErrVersionConflict: it has
	// another by now; read it again. ErrNotFound: there is no such profile. Name and ID must be as they were.
	Update(ctx context.Context, p *Profile) error

	// IDByName finds a merchant's id by its name, without regard to case; "" when nobody has the name.
	IDByName(ctx context.Context, name string) (string, error)

	// IDs lists the ids of all merchants in no particular order. It reads the whole table: for people, not for requests.
	IDs(ctx context.Context) ([]string, error)
}

// The refusals of a Registry.
var (
	ErrNameTaken       = errors.New("the merchant name is taken")
	ErrIDTaken         = errors.New("the merchant id is taken")
	ErrVersionConflict = errors.New("the profile was changed by another hand")
	ErrNotFound        = errors.New("there is no such profile")
)
