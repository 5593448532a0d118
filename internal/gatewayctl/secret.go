package gatewayctl

import "context"

// StoredSecret is a secret as it was read. Value is nil if it has none yet. Revision identifies what was read: Put
// refuses to overwrite another change.
type StoredSecret struct {
	Name     string
	Value    []byte
	Revision string
}

// SecretStore stores secrets. Its errors contain no value.
type SecretStore interface {
	// Get returns a secret with its current value, nil if it has none yet.
	Get(ctx context.Context, name string) (StoredSecret, error)
	// Put makes value the current one if the secret has not changed since current was read.
	Put(ctx context.Context, current StoredSecret, value []byte) error
}

// readSecret reads a secret of the deployment. variable is where its name comes from.
func readSecret(s *session, name, variable string) (StoredSecret, error) {
	if name == "" {
		return StoredSecret{}, usageError("%s is not set: name the deployment's secret, or use --local", variable)
	}
	if err := s.openStores(); err != nil {
		return StoredSecret{}, err
	}
	return s.stores.Secrets.Get(s, name)
}
