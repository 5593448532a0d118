package control

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
	Created   time.Time `json:"created"`
}

func viewOf(p *merchant.Profile, now time.Time) merchantView {
	_, burst, _ := p.Rate() // as it is, not as it was typed
	view := merchantView{
		ID: p.ID, Name: p.Name, Status: p.Status, Version: p.Version, Generation: p.Generation, Created: p.Created, Updated: p.Updated,
		Operations: some(p.Operations), Countries: some(p.Countries), HomeCountry: p.Home(), Operators: some(p.Operators),
		OnBehalfOf: some(p.OnBehalfOf), SenderNames: some(p.SenderNames), NotificationHosts: some(p.NotificationHosts),
		NotifURL: p.NotifURL, RequestsPerSecond: p.RequestsPerSecond, Burst: burst, DailyAmounts: dailyAmounts(p), Tokens: credentialsOf(p.Tokens, now), ClientSecrets: credentialsOf(p.ClientSecrets, now),
		WebhookSecrets: []webhookView{},
	}
	for _, w := range p.WebhookSecrets {
		view.WebhookSecrets = append(view.WebhookSecrets, webhookView(w))
	}
	return view
}

// some is a list that is [] in JSON where there is nothing.
func some(texts []string) []string { return append([]string{}, texts...) }

func credentialsOf(held []merchant.Credential, now time.Time) []credentialView {
	views := []credentialView{}
	for _, c := range held {
		live := c.Expires.IsZero() || c.Expires.After(now)
		views = append(views, credentialView{Number: c.Number, Created: c.Created, Expires: c.Expires, Live: live})
	}
	return views
}

// profileRows is a profile for people: the same fields in the same order, whatever it holds.
func profileRows(p *merchant.Profile) table {
	rows := table{
		{"name", p.Name}, {"id", p.ID}, {"status", p.Status}, {"created", moment(p.Created)}, {"updated", moment(p.Updated)},
		{"operations", list(p.Operations)}, {"countries", list(p.Countries)}, {"home country", p.Home()},
		{"operators", list(p.Operators)}, {"onBehalfOf", list(p.OnBehalfOf)}, {"sender names", list(p.SenderNames)},
		{"notification hosts", list(p.NotificationHosts)}, {"notif_url", p.NotifURL}, {"short tokens' generation", strconv.Itoa(p.Generation)},
		{"tokens", numbers(p.Tokens)}, {"client secrets", numbers(p.ClientSecrets)}, {"webhook secrets", versions(p.WebhookSecrets)},
	}
	return append(rows, limitRows(p)...)
}

func list(texts []string) string { return strings.Join(texts, ", ") }

// numbers writes credentials in a line.
func numbers(held []merchant.Credential) string {
	var words []string
	for _, c := range held {
		word := fmt.Sprintf("%d of %s", c.Number, moment(c.Created))
		if !c.Expires.IsZero() {
			word += " until " + moment(c.Expires)
		}
		words = append(words, word)
	}
	return list(words)
}

// versions writes webhook secrets in a line.
func versions(held []merchant.WebhookSecret) string {
	var words []string
	for _, w := range held {
		words = append(words, fmt.Sprintf("%d of %s (key %d)", w.Version, moment(w.Created), w.KeyNumber))
	}
	return list(words)
}
