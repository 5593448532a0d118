package merchant

import (
	"context"

	"mobilegateway/shared/logsafe"
)

// Store reads profiles, for authentication.
type Store interface {
	// Profile reads a profile, strongly consistent. It returns nil for an unknown id. The caller must not change it.
	Profile(ctx context.Context, id string) (*Profile, error)
}

// Registry reads and writes profiles, for onboarding.
type Registry interface {
	Store

	// Create stores a new profile (Version 1) and reserves its name permanently: both or neither. ErrNameTaken: another
	// merchant has or had the name. ErrIDTaken: the id exists. A repeat with the same profile succeeds.
	Create(ctx context.Context, p *Profile) error

	// Update stores p if the stored profile still has p.Version, and then adds one to p.Version. ErrVersionConflict: it
	// has another version; read it again. ErrNotFound: the profile does not exist. Name and ID must be unchanged.
	Update(ctx context.Context, p *Profile) error

	// IDByName returns a merchant's id by its name, without regard to case; "" for an unknown name.
	IDByName(ctx context.Context, name string) (string, error)

	// IDs lists the ids of all merchants in no particular order. It reads the whole table, so it is not for requests.
	IDs(ctx context.Context) ([]string, error)
}

// The errors of a Registry.
var (
	ErrNameTaken       = logsafe.New("the merchant name is taken: choose another")
	ErrIDTaken         = logsafe.New("the merchant id is taken")
	ErrVersionConflict = logsafe.New("another process changed the profile: read it again and repeat the change")
	ErrNotFound        = logsafe.New("the profile does not exist")
)
