package gatewayctl

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"mobilegateway/shared/merchant"
)

// merchantView is a profile for programs: no hash, no secret.
type merchantView struct {
	ID                string    `json:"id"`
	Name              string    `json:"name"`
	Status            string    `json:"status"`
	Version           int64     `json:"version"`
	Generation        int       `json:"generation"`
	Created           time.Time `json:"created"`
	Updated           time.Time `json:"updated"`
	Operations        []string  `json:"operations"`
	Countries         []string  `json:"countries"`
	HomeCountry       string    `json:"home_country"`
	Operators         []string  `json:"operators"`
	OnBehalfOf        []string  `json:"on_behalf_of"`
	SenderNames       []string  `json:"sender_names"`
	NotificationHosts []string  `json:"notification_hosts"`
	NotifURL          string    `json:"notif_url"`

	RequestsPerSecond int               `json:"requests_per_second"`
	Burst             int               `json:"burst"`
	DailyAmounts      map[string]string `json:"daily_amounts"`

	Tokens         []credentialView `json:"tokens"`
	ClientSecrets  []credentialView `json:"client_secrets"`
	WebhookSecrets []webhookView    `json:"webhook_secrets"`
}

// credentialView is a token or client secret without itself.
type credentialView struct {
	Number  int       `json:"number"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
	Live    bool      `json:"live"`
}

// webhookView is a webhook secret without itself.
type webhookView struct {
	Version   int       `json:"version"`
	KeyNumber int       `json:"key_number"`
	CreatedAt time.Time `json:"created"`
}

func merchantViewOf(p *merchant.Profile, now time.Time) merchantView {
	_, burst, _ := p.RateLimit() // as it is, not as it was typed
	view := merchantView{
		ID: p.ID, Name: p.Name, Status: p.Status, Version: p.Version, Generation: p.TokenGeneration, Created: p.CreatedAt, Updated: p.UpdatedAt,
		Operations: nonNil(p.Operations), Countries: nonNil(p.Countries), HomeCountry: p.DefaultCountry(), Operators: nonNil(p.Operators),
		OnBehalfOf: nonNil(p.OnBehalfOf), SenderNames: nonNil(p.SenderNames), NotificationHosts: nonNil(p.NotificationHosts),
		NotifURL: p.NotifURL, RequestsPerSecond: p.RequestsPerSecond, Burst: burst, DailyAmounts: dailyAmounts(p), Tokens: credentialViews(p.Tokens, now), ClientSecrets: credentialViews(p.ClientSecrets, now),
		WebhookSecrets: []webhookView{},
	}
	for _, w := range p.WebhookSecrets {
		view.WebhookSecrets = append(view.WebhookSecrets, webhookView(w))
	}
	return view
}

// nonNil is a list that is [] in JSON where there is nothing.
func nonNil(texts []string) []string { return append([]string{}, texts...) }

func credentialViews(current []merchant.Credential, now time.Time) []credentialView {
	views := []credentialView{}
	for _, c := range current {
		live := c.ExpiresAt.IsZero() || c.ExpiresAt.After(now)
		views = append(views, credentialView{Number: c.Number, Created: c.CreatedAt, Expires: c.ExpiresAt, Live: live})
	}
	return views
}

// profileRows is a profile for people: the same fields in the same order, whatever it holds.
func profileRows(p *merchant.Profile) table {
	rows := table{
		{"name", p.Name}, {"id", p.ID}, {"status", p.Status}, {"created", formatTime(p.CreatedAt)}, {"updated", formatTime(p.UpdatedAt)},
		{"operations", joinComma(p.Operations)}, {"countries", joinComma(p.Countries)}, {"home country", p.DefaultCountry()},
		{"operators", joinComma(p.Operators)}, {"onBehalfOf", joinComma(p.OnBehalfOf)}, {"sender names", joinComma(p.SenderNames)},
		{"notification hosts", joinComma(p.NotificationHosts)}, {"notif_url", p.NotifURL}, {"short tokens' generation", strconv.Itoa(p.TokenGeneration)},
		{"tokens", formatCredentials(p.Tokens)}, {"client secrets", formatCredentials(p.ClientSecrets)}, {"webhook secrets", formatWebhookSecrets(p.WebhookSecrets)},
	}
	return append(rows, limitRows(p)...)
}

func joinComma(texts []string) string { return strings.Join(texts, ", ") }

// formatCredentials writes credentials in a line.
func formatCredentials(current []merchant.Credential) string {
	var words []string
	for _, c := range current {
		word := fmt.Sprintf("%d of %s", c.Number, formatTime(c.CreatedAt))
		if !c.ExpiresAt.IsZero() {
			word += " until " + formatTime(c.ExpiresAt)
		}
		words = append(words, word)
	}
	return joinComma(words)
}

// formatWebhookSecrets writes webhook secrets in a line.
func formatWebhookSecrets(current []merchant.WebhookSecret) string {
	var words []string
	for _, w := range current {
		words = append(words, fmt.Sprintf("%d of %s (key %d)", w.Version, formatTime(w.CreatedAt), w.KeyNumber))
	}
	return joinComma(words)
}
