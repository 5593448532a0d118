package merchant

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"mobilegateway/shared/logsafe"
)

// storedProfile is the stored JSON document of a profile.
type storedProfile struct {
	*Profile
	LastWebhookSecretMark webhookSecretMark `json:"last_webhook_secret,omitzero"`
}

// webhookSecretMark is the highest version of a webhook secret at one stored change. An older program does not know the
// mark, and leaves it unchanged when it stores later changes.
type webhookSecretMark struct {
	Version        int   `json:"version"`
	ProfileVersion int64 `json:"stored"` // Profile.Version of that change
}

// lastWebhookSecretVersion returns the highest version that can have been issued. A stored change issues at most one
// secret, so the mark can be behind by the number of changes since it was stored; without a mark, by all of them.
func (s storedProfile) lastWebhookSecretVersion() int {
	mark := s.LastWebhookSecretMark
	last := mark.Version + int(max(0, s.Version-mark.ProfileVersion))
	for _, issued := range s.WebhookSecrets {
		last = max(last, issued.Version)
	}
	return last
}

// storedFieldNames returns the JSON names of all fields of storedProfile.
var storedFieldNames = sync.OnceValue(func() []string {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[storedProfile]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
})

// Encode writes a profile as the JSON document that stores keep: equal profiles give equal bytes. It contains hashes,
// and no secrets.
func Encode(p *Profile) ([]byte, error) {
	mark := webhookSecretMark{Version: p.LastWebhookSecretVersion, ProfileVersion: p.Version}
	document, err := json.Marshal(storedProfile{Profile: p, LastWebhookSecretMark: mark})
	if err != nil || len(p.stored) == 0 {
		return document, err
	}
	var unknown map[string]json.RawMessage
	if err := json.Unmarshal(p.stored, &unknown); err != nil {
		return nil, err
	}
	maps.DeleteFunc(unknown, func(name string, _ json.RawMessage) bool {
		return slices.Contains(storedFieldNames(), name)
	})
	if len(unknown) == 0 {
		return document, nil
	}
	unknownJSON, err := json.Marshal(unknown) // sorted by name
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{document[:len(document)-1], unknownJSON[1:]}, []byte(",")), nil
}

// Decode reads a document that Encode wrote in this version of the program or another one.
func Decode(document []byte) (*Profile, error) {
	p := &Profile{stored: document}
	s := storedProfile{Profile: p}
	if err := json.Unmarshal(document, &s); err != nil {
		return nil, logsafe.Errorf("decode a merchant profile: %w", err)
	}
	p.CreatedAt, p.UpdatedAt = p.CreatedAt.UTC(), p.UpdatedAt.UTC()
	p.LastWebhookSecretVersion = s.lastWebhookSecretVersion()
	return p, nil
}

// Clone returns an independent copy of p, to be changed and stored.
func (p *Profile) Clone() *Profile {
	c := *p
	for _, list := range []*[]string{
		&c.Operations, &c.Countries, &c.Operators, &c.OnBehalfOf, &c.SenderNames, &c.NotificationHosts,
	} {
		*list = slices.Clone(*list)
	}
	c.DailyAmounts = maps.Clone(p.DailyAmounts)
	c.Tokens = slices.Clone(p.Tokens)
	c.ClientSecrets = slices.Clone(p.ClientSecrets)
	c.WebhookSecrets = slices.Clone(p.WebhookSecrets)
	return &c // stored is never changed in place
}
