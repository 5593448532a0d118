// Package merchant manages the merchants of the gateway: their profiles with entitlements, the access tokens that
// authenticate them, and the onboarding steps that issue, rotate and revoke credentials (decision "authentication").
//
// It does not access a database itself; a Store does, and merchant/dynamo is one. Its invariants: a token or client
// secret is stored only as a hash, an id is never reused, and a name never goes to another merchant.
package merchant

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/outgoing"
)

// The operations that a profile can be entitled to.
const (
	OperationCharge = string(ledger.Charge)
	OperationPay    = string(ledger.Payment)
	OperationSMS    = string(ledger.SMS)
)

// The entitlements of reading and resending (decision "merchant-reports"). No profile has them until it is given them.
const (
	OperationReport    = "report"    // lists its own transactions
	OperationOperators = "operators" // lists its operators and their health
	OperationResend    = "resend"    // has a notification sent again
)

// Operations lists all of these, those that move money or send first.
func Operations() []string {
	return []string{
		OperationCharge, OperationPay, OperationSMS, OperationReport, OperationOperators, OperationResend,
	}
}

// The statuses of a merchant.
const (
	StatusActive    = "active"
	StatusSuspended = "suspended" // every token is refused; nothing is deleted
)

// ReasonSuspended is the reason of a refusal after a suspended merchant's token has matched.
const ReasonSuspended = "merchant-suspended"

// Profile is one merchant. A profile from an Authenticator or a Store is shared: change only a Clone. The JSON names
// are those of the stored document.
type Profile struct {
	// ID is random and never changes; signed tokens, database keys and webhook secrets contain it.
	ID string `json:"id"`
	// Name is the MerchantName of order_id: letters and digits, at most MaxNameLength. It never changes (decision
	// "merchant-names").
	Name string `json:"name"`
	// Status is StatusActive or StatusSuspended; anything else counts as suspended.
	Status string `json:"status"`
	// Version counts the stored changes from 1; Registry.Update compares it.
	Version int64 `json:"version"`
	// TokenGeneration is part of every short-lived token; a higher one revokes them all.
	TokenGeneration int       `json:"generation"`
	CreatedAt       time.Time `json:"created,omitzero"`
	UpdatedAt       time.Time `json:"updated,omitzero"`

	Entitlements
	Notifications
	Limits
	Partitions
	Credentials

	// stored is the document that the profile was decoded from. Encode writes the fields back that this version of the
	// program does not know.
	stored []byte
}

// Entitlements are what a merchant may use.
type Entitlements struct {
	// Operations, Countries (alpha-2) and Operators (as in mno-name, lower case) are the merchant's entitlements.
	// Operators are in the order of preference, for operations without mno-name.
	Operations []string `json:"operations,omitempty"`
	Countries  []string `json:"countries,omitempty"`
	Operators  []string `json:"operators,omitempty"`
	// HomeCountry is the default country of a charge (decision "charge-country"); "" means the first of Countries.
	HomeCountry string `json:"home_country,omitempty"`
	// OnBehalfOf are the allowed values of a charge's onBehalfOf. An empty list allows none.
	OnBehalfOf []string `json:"on_behalf_of,omitempty"`
	// SenderNames are the allowed values of an SMS's senderName. An empty list allows any (decision "sms-sender-name").
	SenderNames []string `json:"sender_names,omitempty"`
}

// Notifications are where a merchant is notified.
type Notifications struct {
	// NotificationHosts are the allowed hosts of notif_url, each "host" or "host:port" (decision "pay-notif-url").
	NotificationHosts []string `json:"notification_hosts,omitempty"`
	// NotifURL is the provisioned notification URL, for payments without notif_url; "" for none.
	NotifURL string `json:"notif_url,omitempty"`
	// ChargeNotif sends a charge whose unknown outcome became known later to NotifURL (decision "charge-notif").
	ChargeNotif bool `json:"charge_notif,omitempty"`
	// SMSNotifyAnyHost lets the notifyURL of an SMS name any public host (decision "sms-notify-url").
	SMSNotifyAnyHost bool `json:"sms_notify_any_host,omitempty"`
}

// Limits are what a merchant may send at most.
type Limits struct {
	// RequestsPerSecond is the rate limit, and Burst the number of requests at once beyond it; 0 means no limit.
	// DailyAmounts limit the sum of charges and payments in a UTC day, by currency, in minor units. A currency without
	// a value has no limit (decision "merchant-limits").
	RequestsPerSecond int              `json:"requests_per_second,omitempty"`
	Burst             int              `json:"burst,omitempty"`
	DailyAmounts      map[string]int64 `json:"daily_amounts,omitempty"`
}

// The highest rate limits. A table takes about 1000 writes per second of one item, and a limited request is one write.
const (
	MaxRequestsPerSecond = 1000
	MaxBurst             = 10000
)

// The rate limit that the onboarding gives a merchant, if no other is chosen (decision "merchant-limits").
const (
	DefaultRequestsPerSecond = 20
	DefaultBurst             = 40
)

// RateLimit returns how many requests the merchant may send per second, and how many at once. limited is false without
// a limit. A profile without a burst may send the requests of one second at once.
func (l *Limits) RateLimit() (perSecond, burst int, limited bool) {
	if l.RequestsPerSecond <= 0 {
		return 0, 0, false
	}
	return l.RequestsPerSecond, cmp.Or(max(l.Burst, 0), l.RequestsPerSecond), true
}

// Partitions are how a merchant's transactions are spread over the index of its days (decision "day-shards").
type Partitions struct {
	// DayShards is the number of partitions that a day's new transactions are written to; 0 means one. MostDayShards is
	// the greatest number that it ever was: all of these are read, because transactions stay where they are.
	DayShards     int `json:"day_shards,omitempty"`
	MostDayShards int `json:"most_day_shards,omitempty"`
}

// Credentials are the issued secrets of a merchant.
type Credentials struct {
	// Tokens are the long-lived access tokens, ClientSecrets the secrets for the token endpoint: at most MaxActive of
	// each.
	Tokens        []Credential `json:"tokens,omitempty"`
	ClientSecrets []Credential `json:"client_secrets,omitempty"`
	// WebhookSecrets sign notifications, newest first: at most MaxActive.
	WebhookSecrets []WebhookSecret `json:"webhook_secrets,omitempty"`
	// LastWebhookSecretVersion is the highest version that a webhook secret can ever have had, including revoked ones.
	// The next secret gets a higher one, so that no secret is issued twice (decision "key-rings").
	LastWebhookSecretVersion int `json:"-"`
}

// Credential is an issued secret of a merchant. The secret itself is displayed once, when it is issued.
type Credential struct {
	// Number identifies the credential among its kind, from 1; it is never reused within the profile.
	Number int `json:"number"`
	// Hash is the SHA-256 of the whole secret in hex. The secret has 256 random bits, so a slow hash would add nothing.
	Hash      string    `json:"hash"`
	CreatedAt time.Time `json:"created"`
	// ExpiresAt is the end of its validity; zero for none.
	ExpiresAt time.Time `json:"expires,omitzero"`
}

func (c Credential) isActive(now time.Time) bool {
	return c.ExpiresAt.IsZero() || now.Before(c.ExpiresAt)
}

// WebhookSecret identifies one signing secret of the merchant's notifications. The secret itself is stored nowhere: it
// is derived from the merchant's id, Version and the key KeyNumber of the webhook key ring.
type WebhookSecret struct {
	Version   int       `json:"version"`
	KeyNumber int       `json:"key_number"`
	CreatedAt time.Time `json:"created"`
}

// Active reports whether the merchant may call the API.
func (p *Profile) Active() bool { return p.Status == StatusActive }

// Allows reports whether the merchant may use an operation in a country with an operator. Country and operator are
// compared without case; "" for either skips its check (charge and SMS name no operator).
func (p *Profile) Allows(operation, country, operator string) bool {
	return p.ReasonNotAllowed(operation, country, operator) == nil
}

// ReasonNotAllowed returns for the log why Allows is false, and nil if it is true. The arguments come from the tables
// of operations, countries and operators, never from a request as it was sent.
func (p *Profile) ReasonNotAllowed(operation, country, operator string) error {
	switch {
	case !p.Active():
		return logsafe.New("the merchant is suspended")
	case !slices.Contains(p.Operations, operation):
		return logsafe.Errorf("the profile lacks the operation %s", logsafe.Name(operation))
	case country != "" && !containsIgnoringCase(p.Countries, country):
		return logsafe.Errorf("the profile lacks the country %s", logsafe.Name(country))
	case operator != "" && !containsIgnoringCase(p.Operators, operator):
		return logsafe.Errorf("the profile lacks the operator %s", logsafe.Name(operator))
	}
	return nil
}

// DefaultCountry returns the country (alpha-2) of a charge that names none; "" for a merchant without countries.
func (e *Entitlements) DefaultCountry() string {
	if e.HomeCountry != "" || len(e.Countries) == 0 {
		return e.HomeCountry
	}
	return e.Countries[0]
}

// ChargeNotifURL returns the address of the notification of a charge whose outcome was unknown; "" for none.
func (n *Notifications) ChargeNotifURL() string {
	if !n.ChargeNotif {
		return ""
	}
	return n.NotifURL
}

// NotificationPolicy returns the rule for this merchant's notif_url: one of its registered hosts. Without registered
// hosts no URL is allowed. allowLoopback is true only in the local run.
func (n *Notifications) NotificationPolicy(allowLoopback bool) outgoing.Policy {
	return outgoing.Policy{
		AllowLoopback: allowLoopback, RegisteredHostsOnly: true, RegisteredHosts: n.NotificationHosts,
	}
}

// SMSNotificationPolicy is the NotificationPolicy of an SMS's notifyURL: any public host if the profile opens it.
func (n *Notifications) SMSNotificationPolicy(allowLoopback bool) outgoing.Policy {
	if n.SMSNotifyAnyHost {
		return outgoing.Policy{AllowLoopback: allowLoopback}
	}
	return n.NotificationPolicy(allowLoopback)
}

func containsIgnoringCase(values []string, value string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, value) })
}
