// Package merchant holds who may call the gateway: the merchants' profiles with what each is entitled to, the access
// tokens that prove who calls, and the onboarding steps that issue, rotate and revoke them (decision "authentication").
//
// It reads and writes no database itself; a Store does, and merchant/dynamo is one. Its invariants: a token or client
// secret is stored as a hash alone, an id is never given twice, and a name is never given to another merchant.
package merchant

import (
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/outgoing"
)

// The operations that a profile can be entitled to.
const (
	OperationCharge = "charge"
	OperationPay    = "pay"
	OperationSMS    = "sms"
)

// The statuses of a merchant.
const (
	StatusActive    = "active"
	StatusSuspended = "suspended" // every token is refused; nothing is deleted
)

// Profile is one merchant. Profiles that an Authenticator or a Store handed out are shared: read them only, and change
// a Clone.
type Profile struct {
	// ID is random and never changes; signed tokens, database keys and webhook secrets carry it.
	ID string
	// Name is the MerchantName of order_id: letters and digits, at most MaxNameLength, never changed (decision "merchant-names").
	Name string
	// Status is StatusActive or StatusSuspended; anything else counts as suspended.
	Status string
	// Version counts the stored changes from 1; a Store's Update compares it.
	Version int64
	// TokenGeneration is part of every short-lived token; raising it revokes them all.
	TokenGeneration int
	CreatedAt       time.Time
	UpdatedAt       time.Time

	// Operations, Countries (alpha-2) and Operators (as in mno-name, lower case) are what the merchant may use.
	// Operators stand in the order of preference, for operations that name none.
	Operations []string
	Countries  []string
	Operators  []string
	// HomeCountry is the country of a charge that names none (decision "charge-country"); "" means the first of Countries.
	HomeCountry string
	// OnBehalfOf are the allowed values of a charge's onBehalfOf. An empty list allows none.
	OnBehalfOf []string
	// SenderNames are the allowed values of an SMS's senderName. An empty list allows any (decision "sms-sender-name").
	SenderNames []string
	// NotificationHosts are the hosts that notif_url may name, each "host" or "host:port" (decision "pay-notif-url").
	NotificationHosts []string
	// NotifURL is the provisioned notification URL, for payments that bring none; "" for none.
	NotifURL string

	// RequestsPerSecond is how many requests the merchant may send a second, and Burst how many at once beyond them; 0 for
	// no limit. DailyAmounts are the most that its charges and payments of a UTC day may come to, by currency, in minor
	// units; a currency that is not there has no limit (decision "merchant-limits").
	RequestsPerSecond int
	Burst             int
	DailyAmounts      map[string]int64

	// Tokens are the long-lived access tokens, ClientSecrets those of the token endpoint: at most MaxActive of each.
	Tokens        []Credential
	ClientSecrets []Credential
	// WebhookSecrets are what notifications are signed with, newest first: at most MaxActive.
	WebhookSecrets []WebhookSecret
	// LastWebhookSecretVersion is the highest version that a webhook secret of the merchant can ever have had, revoked ones
	// included: the next gets a higher one, so that no secret is ever issued twice (decision "key-rings").
	LastWebhookSecretVersion int

	// unknownFields holds stored fields that this version of the program does not know; they are written back as they were.
	unknownFields map[string]rawField
}

// Credential is a secret that a merchant holds. The secret itself is shown once, when it is issued.
type Credential struct {
	// Number names the credential among its kind, from 1, never reused within the profile.
	Number int `json:"number"`
	// Hash is the SHA-256 of the whole secret in hex. The secret has 256 random bits: a slow hash would add nothing.
	Hash      string    `json:"hash"`
	CreatedAt time.Time `json:"created"`
	// ExpiresAt is when it stops to work; zero for never.
	ExpiresAt time.Time `json:"expires,omitzero"`
}

// isActive tells whether the credential works at a time.
func (c Credential) isActive(now time.Time) bool {
	return c.ExpiresAt.IsZero() || now.Before(c.ExpiresAt)
}

// WebhookSecret names one signing secret of the merchant's notifications. The secret itself is derived where it is
// used, from the merchant's id, Version and the key KeyNumber of the webhook key ring, and stored nowhere.
type WebhookSecret struct {
	Version   int       `json:"version"`
	KeyNumber int       `json:"key_number"`
	CreatedAt time.Time `json:"created"`
}

// Active tells whether the merchant may call at all.
func (p *Profile) Active() bool { return p.Status == StatusActive }

// Allows tells whether the merchant may use an operation in a country with an operator. Country and operator are
// compared without case; "" for either does not ask about it (charge and SMS name no operator).
func (p *Profile) Allows(operation, country, operator string) bool {
	return p.Active() && slices.Contains(p.Operations, operation) &&
		(country == "" || containsIgnoringCase(p.Countries, country)) &&
		(operator == "" || containsIgnoringCase(p.Operators, operator))
}

// AllowsOnBehalfOf tells whether a charge may carry this onBehalfOf.
func (p *Profile) AllowsOnBehalfOf(value string) bool { return slices.Contains(p.OnBehalfOf, value) }

// AllowsSenderName tells whether an SMS may carry this senderName.
func (p *Profile) AllowsSenderName(name string) bool {
	return len(p.SenderNames) == 0 || slices.Contains(p.SenderNames, name)
}

// DefaultCountry returns the alpha-2 code of the country of a charge that names none; "" for a merchant without countries.
func (p *Profile) DefaultCountry() string {
	if p.HomeCountry != "" || len(p.Countries) == 0 {
		return p.HomeCountry
	}
	return p.Countries[0]
}

// NotificationPolicy is the rule for this merchant's notif_url: one of its registered hosts, and none where it has
// registered none. allowLoopback is true in the local run alone.
func (p *Profile) NotificationPolicy(allowLoopback bool) outgoing.Policy {
	return outgoing.Policy{AllowLoopback: allowLoopback, RegisteredHostsOnly: true, RegisteredHosts: p.NotificationHosts}
}

func containsIgnoringCase(values []string, value string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, value) })
}
