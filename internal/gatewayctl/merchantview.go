package gatewayctl

import (
	"fmt"
	"strconv"
	"time"

	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
)

// merchantView is a profile without hashes and secrets.
type merchantView struct {
	ID                string    `json:"id" col:"ID" row:"id"`
	Name              string    `json:"name" col:"NAME" row:"name"`
	Status            string    `json:"status" col:"STATUS" row:"status"`
	Version           int64     `json:"version"`
	Generation        int       `json:"generation" row:"token generation"`
	Created           time.Time `json:"created" col:"CREATED" row:"created"`
	Updated           time.Time `json:"updated" row:"updated"`
	Operations        []string  `json:"operations" col:"OPERATIONS" row:"operations"`
	Countries         []string  `json:"countries" col:"COUNTRIES" row:"countries"`
	HomeCountry       string    `json:"home_country" row:"home country"`
	Operators         []string  `json:"operators" col:"OPERATORS" row:"operators"`
	OnBehalfOf        []string  `json:"on_behalf_of" row:"onBehalfOf"`
	SenderNames       []string  `json:"sender_names" row:"sender names"`
	NotificationHosts []string  `json:"notification_hosts" row:"notification hosts"`
	NotifURL          string    `json:"notif_url" row:"notif_url"`
	ChargeNotif       bool      `json:"charge_notif,omitempty" row:"charge-notif"`
	SMSNotifyAnyHost  bool      `json:"sms_notify_any_host,omitempty" row:"notifyURL of an SMS at any host"`

	RequestsPerSecond limit             `json:"requests_per_second" row:"requests per second"`
	Burst             limit             `json:"burst" row:"burst"`
	DailyAmounts      map[string]string `json:"daily_amounts" row:"amounts per day"` // decimal, by currency

	Tokens         []credentialView `json:"tokens" row:"tokens"`
	ClientSecrets  []credentialView `json:"client_secrets" row:"client secrets"`
	WebhookSecrets []webhookView    `json:"webhook_secrets" row:"webhook secrets"`
}

// limit is a number of requests, 0 for no limit.
type limit int

// String describes the limit in a cell.
func (l limit) String() string {
	if l == 0 {
		return "no limit"
	}
	return strconv.Itoa(int(l))
}

// credentialView is a token or client secret without its value.
type credentialView struct {
	Number  int       `json:"number" col:"NUMBER"`
	Created time.Time `json:"created" col:"CREATED"`
	Expires time.Time `json:"expires,omitzero" col:"EXPIRES"`
	Live    bool      `json:"live" col:"LIVE"`
}

// String describes the credential in a cell.
func (c credentialView) String() string {
	text := fmt.Sprintf("%d of %s", c.Number, formatTime(c.Created))
	if !c.Expires.IsZero() {
		text += " until " + formatTime(c.Expires)
	}
	return text
}

// webhookView is a webhook secret without its value.
type webhookView struct {
	Version   int       `json:"version" col:"VERSION"`
	KeyNumber int       `json:"key_number" col:"KEY"`
	CreatedAt time.Time `json:"created" col:"CREATED"`
}

// String describes the secret in a cell.
func (w webhookView) String() string {
	return fmt.Sprintf("%d of %s (key %d)", w.Version, formatTime(w.CreatedAt), w.KeyNumber)
}

func merchantViewOf(p *merchant.Profile, now time.Time) merchantView {
	_, burst, _ := p.RateLimit() // the burst that applies, also if none is set
	view := merchantView{
		ID: p.ID, Name: p.Name, Status: p.Status, Version: p.Version, Generation: p.TokenGeneration,
		Created: p.CreatedAt, Updated: p.UpdatedAt,
		Operations: nonNil(p.Operations), Countries: nonNil(p.Countries), HomeCountry: p.DefaultCountry(),
		Operators: nonNil(p.Operators), OnBehalfOf: nonNil(p.OnBehalfOf), SenderNames: nonNil(p.SenderNames),
		NotificationHosts: nonNil(p.NotificationHosts), NotifURL: p.NotifURL,
		ChargeNotif: p.ChargeNotif, SMSNotifyAnyHost: p.SMSNotifyAnyHost,
		RequestsPerSecond: limit(p.RequestsPerSecond), Burst: limit(burst), DailyAmounts: map[string]string{},
		Tokens: credentialViews(p.Tokens, now), ClientSecrets: credentialViews(p.ClientSecrets, now),
		WebhookSecrets: mapAll(p.WebhookSecrets, func(w merchant.WebhookSecret) webhookView { return webhookView(w) }),
	}
	for currency, minor := range p.DailyAmounts {
		exponent, _ := market.CurrencyExponent(currency)
		view.DailyAmounts[currency] = money.Format(minor, exponent)
	}
	return view
}

func credentialViews(credentials []merchant.Credential, now time.Time) []credentialView {
	return mapAll(credentials, func(c merchant.Credential) credentialView {
		live := c.ExpiresAt.IsZero() || c.ExpiresAt.After(now)
		return credentialView{Number: c.Number, Created: c.CreatedAt, Expires: c.ExpiresAt, Live: live}
	})
}
