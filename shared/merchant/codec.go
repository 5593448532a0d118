package merchant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// rawField is one stored field as it was written.
type rawField = json.RawMessage

// storedProfile is a profile's document, {"id":...}. Every field name stands here once.
type storedProfile struct {
	ID                string    `json:"id"`
	Name              string    `json:"name"`
	Status            string    `json:"status"`
	Version           int64     `json:"version"`
	TokenGeneration   int       `json:"generation"`
	CreatedAt         time.Time `json:"created,omitzero"`
	UpdatedAt         time.Time `json:"updated,omitzero"`
	Operations        []string  `json:"operations,omitempty"`
	Countries         []string  `json:"countries,omitempty"`
	Operators         []string  `json:"operators,omitempty"`
	HomeCountry       string    `json:"home_country,omitempty"`
	OnBehalfOf        []string  `json:"on_behalf_of,omitempty"`
	SenderNames       []string  `json:"sender_names,omitempty"`
	NotificationHosts []string  `json:"notification_hosts,omitempty"`
	NotifURL          string    `json:"notif_url,omitempty"`

	RequestsPerSecond int              `json:"requests_per_second,omitempty"`
	Burst             int              `json:"burst,omitempty"`
	DailyAmounts      map[string]int64 `json:"daily_amounts,omitempty"` // minor units

	Tokens         []Credential    `json:"tokens,omitempty"`
	ClientSecrets  []Credential    `json:"client_secrets,omitempty"`
	WebhookSecrets []WebhookSecret `json:"webhook_secrets,omitempty"`

	LastWebhookSecretMark *webhookSecretMark `json:"last_webhook_secret,omitempty"`
}

// webhookSecretMark is the highest version that was ever issued, as it was known at one stored change: a program that does not
// know the mark leaves it behind when it stores later ones.
type webhookSecretMark struct {
	Version        int   `json:"version"`
	ProfileVersion int64 `json:"stored"` // the profile's own version, when it was stored with this mark
}

// lastWebhookSecretVersion is the highest version that can have been issued. One stored change issues one secret at most, so
// that the changes that the mark does not tell of are as many as it may be behind; without a mark all of them.
func (s storedProfile) lastWebhookSecretVersion() int {
	var mark webhookSecretMark
	if s.LastWebhookSecretMark != nil {
		mark = *s.LastWebhookSecretMark
	}
	last := mark.Version + int(max(0, s.Version-mark.ProfileVersion))
	for _, issuedSecrets := range s.WebhookSecrets {
		last = max(last, issuedSecrets.Version)
	}
	return last
}

// storedFieldNames are the names of stored's fields.
var storedFieldNames = []string{
	"id", "name", "status", "version", "generation", "created", "updated", "operations", "countries", "operators",
	"home_country", "on_behalf_of", "sender_names", "notification_hosts", "notif_url",
	"requests_per_second", "burst", "daily_amounts", "tokens", "client_secrets", "webhook_secrets",
	"last_webhook_secret",
}

// Encode writes a profile as the JSON document that stores keep: equal profiles give equal bytes. It holds hashes, no
// secrets.
func Encode(p *Profile) ([]byte, error) {
	document, err := json.Marshal(storedProfile{
		ID: p.ID, Name: p.Name, Status: p.Status, Version: p.Version, TokenGeneration: p.TokenGeneration,
		CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
		Operations: p.Operations, Countries: p.Countries, Operators: p.Operators, HomeCountry: p.HomeCountry,
		OnBehalfOf: p.OnBehalfOf, SenderNames: p.SenderNames, NotificationHosts: p.NotificationHosts, NotifURL: p.NotifURL,
		RequestsPerSecond: p.RequestsPerSecond, Burst: p.Burst, DailyAmounts: p.DailyAmounts,
		Tokens: p.Tokens, ClientSecrets: p.ClientSecrets, WebhookSecrets: p.WebhookSecrets,
		LastWebhookSecretMark: &webhookSecretMark{Version: p.LastWebhookSecretVersion, ProfileVersion: p.Version},
	})
	if err != nil || len(p.unknownFields) == 0 {
		return document, err
	}
	unknownJSON, err := json.Marshal(p.unknownFields) // sorted by name
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{document[:len(document)-1], unknownJSON[1:]}, []byte(",")), nil
}

// Decode reads a document that Encode wrote, by this version of the program or a newer one.
func Decode(document []byte) (*Profile, error) {
	var s storedProfile
	if err := json.Unmarshal(document, &s); err != nil {
		return nil, fmt.Errorf("decode a merchant profile: %w", err)
	}
	var extra map[string]rawField
	if err := json.Unmarshal(document, &extra); err != nil {
		return nil, fmt.Errorf("decode a merchant profile: %w", err)
	}
	for _, name := range storedFieldNames {
		delete(extra, name)
	}
	return &Profile{
		ID: s.ID, Name: s.Name, Status: s.Status, Version: s.Version, TokenGeneration: s.TokenGeneration,
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
		Operations: s.Operations, Countries: s.Countries, Operators: s.Operators, HomeCountry: s.HomeCountry,
		OnBehalfOf: s.OnBehalfOf, SenderNames: s.SenderNames, NotificationHosts: s.NotificationHosts, NotifURL: s.NotifURL,
		RequestsPerSecond: s.RequestsPerSecond, Burst: s.Burst, DailyAmounts: s.DailyAmounts,
		Tokens: s.Tokens, ClientSecrets: s.ClientSecrets, WebhookSecrets: s.WebhookSecrets,
		LastWebhookSecretVersion: s.lastWebhookSecretVersion(), unknownFields: extra,
	}, nil
}

// Clone returns a copy that shares nothing with p, to be changed and stored.
func (p *Profile) Clone() *Profile {
	c := *p
	for _, list := range []*[]string{
		&c.Operations, &c.Countries, &c.Operators, &c.OnBehalfOf, &c.SenderNames, &c.NotificationHosts,
	} {
		*list = append([]string(nil), *list...)
	}
	c.DailyAmounts = maps.Clone(p.DailyAmounts)
	c.Tokens = append([]Credential(nil), p.Tokens...)
	c.ClientSecrets = append([]Credential(nil), p.ClientSecrets...)
	c.WebhookSecrets = append([]WebhookSecret(nil), p.WebhookSecrets...)
	return &c // extra is never changed in place
}
