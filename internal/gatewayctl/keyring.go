package gatewayctl

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"mobilegateway/shared/keyring"
)

// StoredSecret is a secret as it was read: its name, its value (nil where it has none yet), and the mark of the state that was
// read, by which Put refuses to overwrite another's change.
type StoredSecret struct {
	Name     string
	Value    []byte
	Revision string
}

// SecretStore keeps secrets.
type SecretStore interface {
	// Get reads the current value of a secret; one without a value is no error.
	Get(ctx context.Context, name string) (StoredSecret, error)
	// Put makes value the current one where the secret is as it was when held was read. Its errors hold no value.
	Put(ctx context.Context, current StoredSecret, value []byte) error
}

// readSecret reads a secret of the deployment.
func readSecret(s *session, name, variable string) (StoredSecret, error) {
	if name == "" {
		return StoredSecret{}, usageError("%s is not set", variable)
	}
	stores, err := s.openStores()
	if err != nil {
		return StoredSecret{}, err
	}
	return stores.Secrets.Get(s, name)
}

type keysCommands struct {
	Add    keysAdd    `cmd:"" help:"Add a key to a ring, the first one too; it signs when every function has read it."`
	List   keysList   `cmd:"" help:"List the keys of a ring, without the keys."`
	Retire keysRetire `cmd:"" help:"Take a key out of its ring, where nothing lives that it signed."`
}

type ringArgument struct {
	Ring string `arg:"" enum:"tokens,callbacks,webhooks" help:"The ring: tokens, callbacks or webhooks."`
}

// readSecret reads the ring's secret.
func (c ringArgument) readSecret(s *session) (StoredSecret, error) {
	switch c.Ring {
	case "tokens":
		return readSecret(s, s.TokenKeySecret, "TOKEN_KEY_SECRET")
	case "callbacks":
		return readSecret(s, s.CallbackKeySecret, "CALLBACK_KEY_SECRET")
	default:
		return readSecret(s, s.WebhookKeySecret, "WEBHOOK_KEY_SECRET")
	}
}

// keyView is a key without itself.
type keyView struct {
	Ring      string    `json:"ring"`
	Number    int       `json:"number"`
	Added     time.Time `json:"added"`
	SignsFrom time.Time `json:"signs_from"`
	Signs     bool      `json:"signs"` // it is the one that signs now
}

// keyViews lists a ring. The first key of a ring signs at once: there is no other.
func keyViews(name string, ring *keyring.Ring, now time.Time, life time.Duration) []keyView {
	signing := ring.SigningKey(now, life).Number
	views := []keyView{}
	for number := 1; number <= keyring.MaxKeyNumber; number++ {
		key, found := ring.FindKey(number)
		if !found {
			continue
		}
		from := key.AddedAt.Add(life)
		if len(views) == 0 {
			from = key.AddedAt
		}
		views = append(views, keyView{name, number, key.AddedAt, from, number == signing})
	}
	return views
}

func showKeys(s *session, views []keyView) error {
	rows := table{{"NUMBER", "ADDED", "SIGNS FROM", "SIGNS NOW"}}
	for _, v := range views {
		rows = append(rows, []string{strconv.Itoa(v.Number), formatTime(v.Added), formatTime(v.SignsFrom), strconv.FormatBool(v.Signs)})
	}
	return s.show(views, rows)
}

type keysAdd struct{ ringArgument }

// Run adds a key and says when it signs. What an old key signed stays verifiable.
func (c *keysAdd) Run(s *session) error {
	current, err := c.readSecret(s)
	if err != nil {
		return err
	}
	value, err := keyring.AddKey(current.Value, s.Rand, s.Now())
	if err != nil {
		return err
	}
	ring, err := keyring.Parse(value)
	if err != nil {
		return err
	}
	views := keyViews(c.Ring, ring, s.Now(), s.SecretCache)
	newest := views[len(views)-1]
	err = s.changes.execute(Action{"add a key", "ring " + c.Ring}, func() (string, error) {
		return fmt.Sprintf("key %d, signs from %s", newest.Number, formatTime(newest.SignsFrom)), s.changes.putSecret(current, value)
	})
	if err != nil {
		return err
	}
	wait := newest.SignsFrom.Sub(newest.Added)
	fmt.Fprintf(s.Stderr, "Key %d signs in %s, when every function has read it.\n", newest.Number, wait)
	return showKeys(s, views)
}

type keysList struct{ ringArgument }

// Run lists the ring.
func (c *keysList) Run(s *session) error {
	current, err := c.readSecret(s)
	if err != nil {
		return err
	}
	if len(current.Value) == 0 {
		return showKeys(s, []keyView{})
	}
	ring, err := keyring.Parse(current.Value)
	if err != nil {
		return err
	}
	return showKeys(s, keyViews(c.Ring, ring, s.Now(), s.SecretCache))
}
