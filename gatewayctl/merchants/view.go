package merchants

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
	"mobilegateway/shared/operator"
)

// View is a profile without hashes and secrets.
type View struct {
	ID         string    `json:"id" col:"ID" row:"id"`
	Name       string    `json:"name" col:"NAME" row:"name"`
	Status     string    `json:"status" col:"STATUS" row:"status"`
	Version    int64     `json:"version"`
	Generation int       `json:"generation" row:"token generation"`
	Created    time.Time `json:"created" col:"CREATED" row:"created"`
	Updated    time.Time `json:"updated" row:"updated"`
	Entitlements
	Notified

	RequestsPerSecond Limit             `json:"requests_per_second" row:"requests per second"`
	Burst             Limit             `json:"burst" row:"burst"`
	DailyAmounts      map[string]string `json:"daily_amounts" row:"amounts per day"` // decimal, by currency

	// DayShards are the partitions of a day that are written, and MostDayShards those that are read.
	DayShards     int `json:"day_shards,omitempty" row:"partitions of a day"`
	MostDayShards int `json:"most_day_shards,omitempty" row:"partitions read"`

	Tokens         []Credential    `json:"tokens" row:"tokens"`
	ClientSecrets  []Credential    `json:"client_secrets" row:"client secrets"`
	WebhookSecrets []WebhookSecret `json:"webhook_secrets" row:"webhook secrets"`

	SMS []SMSRule `json:"sms,omitempty"` // only of merchant add and merchant show
}

// Entitlements are what a merchant's requests may name.
type Entitlements struct {
	Operations  []string `json:"operations" col:"OPERATIONS" row:"operations"`
	Countries   []string `json:"countries" col:"COUNTRIES" row:"countries"`
	HomeCountry string   `json:"home_country" row:"home country"`
	Operators   []string `json:"operators" col:"OPERATORS" row:"operators"`
	OnBehalfOf  []string `json:"on_behalf_of" row:"onBehalfOf"`
	SenderNames []string `json:"sender_names" row:"sender names"`
}

// Notified is where a merchant is notified, and of what.
type Notified struct {
	NotificationHosts []string `json:"notification_hosts" row:"notification hosts"`
	NotifURL          string   `json:"notif_url" row:"notif_url"`
	ChargeNotif       bool     `json:"charge_notif,omitempty" row:"charge-notif"`
	SMSNotifyAnyHost  bool     `json:"sms_notify_any_host,omitempty" row:"notifyURL of an SMS at any host"`
}

// Limit is a number of requests, 0 for no limit.
type Limit int

// String describes the limit in a cell.
func (l Limit) String() string {
	if l == 0 {
		return "no limit"
	}
	return strconv.Itoa(int(l))
}

// Credential is a token or client secret without its value.
type Credential struct {
	Number  int       `json:"number" col:"NUMBER"`
	Created time.Time `json:"created" col:"CREATED"`
	Expires time.Time `json:"expires,omitzero" col:"EXPIRES"`
	Live    bool      `json:"live" col:"LIVE"`
}

// String describes the credential in a cell.
func (c Credential) String() string {
	text := fmt.Sprintf("%d of %s", c.Number, output.FormatTime(c.Created))
	if !c.Expires.IsZero() {
		text += " until " + output.FormatTime(c.Expires)
	}
	return text
}

func credentialViews(credentials []merchant.Credential, now time.Time) []Credential {
	return output.MapAll(credentials, func(c merchant.Credential) Credential {
		live := c.ExpiresAt.IsZero() || c.ExpiresAt.After(now)
		return Credential{Number: c.Number, Created: c.CreatedAt, Expires: c.ExpiresAt, Live: live}
	})
}

// WebhookSecret is a webhook secret without its value.
type WebhookSecret struct {
	Version   int       `json:"version" col:"VERSION"`
	KeyNumber int       `json:"key_number" col:"KEY"`
	CreatedAt time.Time `json:"created" col:"CREATED"`
}

// String describes the secret in a cell.
func (w WebhookSecret) String() string {
	return fmt.Sprintf("%d of %s (key %d)", w.Version, output.FormatTime(w.CreatedAt), w.KeyNumber)
}

func merchantViewOf(p *merchant.Profile, now time.Time) View {
	_, burst, _ := p.RateLimit() // the burst that applies, also if none is set
	view := View{
		ID: p.ID, Name: p.Name, Status: p.Status, Version: p.Version, Generation: p.TokenGeneration,
		Created: p.CreatedAt, Updated: p.UpdatedAt,
		Entitlements: Entitlements{
			Operations: output.NonNil(p.Operations), Countries: output.NonNil(p.Countries),
			HomeCountry: p.DefaultCountry(), Operators: output.NonNil(p.Operators),
			OnBehalfOf: output.NonNil(p.OnBehalfOf), SenderNames: output.NonNil(p.SenderNames),
		},
		Notified:          Notified{output.NonNil(p.NotificationHosts), p.NotifURL, p.ChargeNotif, p.SMSNotifyAnyHost},
		RequestsPerSecond: Limit(p.RequestsPerSecond), Burst: Limit(burst), DailyAmounts: map[string]string{},
		DayShards: p.DayShards, MostDayShards: p.MostDayShards,
		Tokens: credentialViews(p.Tokens, now), ClientSecrets: credentialViews(p.ClientSecrets, now),
		WebhookSecrets: output.MapAll(p.WebhookSecrets,
			func(w merchant.WebhookSecret) WebhookSecret { return WebhookSecret(w) }),
	}
	for currency, minor := range p.DailyAmounts {
		exponent, _ := market.CurrencyExponent(currency)
		view.DailyAmounts[currency] = money.Format(minor, exponent)
	}
	return view
}

// Platform is the part of a merchant's requests that is the same for all merchants of a deployment: the stack's
// outputs, or run.json of the local run. A value that is not known stays empty.
type Platform struct {
	BaseURL       string `json:"base_url" variable:"BASE_URL" placeholder:"URL" help:"Output BaseUrl of the stack."`
	ServiceID     string `json:"service_id" variable:"SERVICE_ID" placeholder:"TEXT" help:"Output ServiceId."`
	ApplicationID string `json:"application_id" variable:"APPLICATION_ID" placeholder:"TEXT" help:"ApplicationId."`
	ContactID     string `json:"contact_id" variable:"CONTACT_ID" placeholder:"TEXT" help:"Output ContactId."`
}

// Onboarding is what a merchant receives at its onboarding.
type Onboarding struct {
	View
	Platform
	AccessToken   string `json:"access_token"`
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
	WebhookSecret string `json:"webhook_secret"`
}

// text is the result as a text to send to the merchant: all that its requests need, by the names of the contract.
func (r Onboarding) text() output.Table {
	known := func(value, output string) string {
		return cmp.Or(value, "not known here: the output "+output+" of the stack")
	}
	limit := "no limit"
	if r.RequestsPerSecond > 0 {
		limit = fmt.Sprintf("%d, and %d at once", r.RequestsPerSecond, r.Burst)
	}
	rules := smsRows(r.SMS)
	if len(rules) == 0 { // each country's rule has the names that its operator takes
		rules = output.Table{{"senderName", cmp.Or(output.JoinComma(r.SenderNames), "any that the operator takes")}}
	}
	return append(output.Table{
		{fmt.Sprintf("For %s: what your requests need. Keep it safe: the secrets are shown only once.", r.Name)},
		{},
		{"base address", known(r.BaseURL, "BaseUrl")},
		{"access token", r.AccessToken},
		{"client id", r.ClientID},
		{"client secret", r.ClientSecret},
		{"webhook secret", r.WebhookSecret},
		{"merchant name", fmt.Sprintf("%s (an order_id: %s_ and digits)", r.Name, r.Name)},
		{"serviceId", known(r.ServiceID, "ServiceId")},
		{"X-OAPI-Application-Id", known(r.ApplicationID, "ApplicationId")},
		{"X-OAPI-Contact-Id", known(r.ContactID, "ContactId")},
		{"onBehalfOf", output.JoinComma(r.OnBehalfOf)},
		{"operations", output.JoinComma(r.Operations)},
		{"countries", output.JoinComma(r.Countries)},
		{"mno-name", output.JoinComma(r.Operators)},
		{"notifications go to", cmp.Or(r.NotifURL, "the notif_url of each request")},
		{"hosts of a notif_url", cmp.Or(output.JoinComma(r.NotificationHosts), "none")},
		{"requests per second", limit},
		{"amounts per day", cmp.Or(output.CellText(reflect.ValueOf(r.DailyAmounts)), "no limit")},
	}, rules...)
}

// showOnboarding shows the result, and says which of the merchant's values are not known.
func showOnboarding(s *session.Session, r Onboarding) error {
	var missing []string
	names, values := output.Cells(r.Platform, "variable")
	for i, name := range names {
		if values[i] == "" {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		fmt.Fprintf(s.Stderr, "The merchant also needs %s: set them to the outputs of the stack.\n",
			output.JoinComma(missing))
	}
	return s.Show(r, r.text())
}

// SMSRule is what the operator that gets a merchant's SMS in a country takes, as a text for the merchant.
type SMSRule struct {
	Country    string `json:"country"`
	Operator   string `json:"operator"`
	Recipient  string `json:"recipient"`
	Sender     string `json:"sender_address"`
	SenderName string `json:"sender_name"`
}

// smsRows shows the rules by the names of the contract.
func smsRows(rules []SMSRule) output.Table {
	return output.MapAll(rules, func(r SMSRule) []string {
		return []string{"SMS in " + r.Country, fmt.Sprintf("by %s: X-Operator-ISE2 %s; senderAddress %s; senderName %s",
			r.Operator, r.Recipient, r.Sender, r.SenderName)}
	})
}

// smsRulesOf returns the rules of the merchant's countries that have an operator for SMS. It needs the operators'
// credentials: the routes select the platform, and its account has the senders.
func smsRulesOf(s *session.Session, p *merchant.Profile) (rules []SMSRule) {
	if !slices.Contains(p.Operations, merchant.OperationSMS) {
		return nil
	}
	stored, err := accounts.ReadStored(s)
	if err != nil {
		fmt.Fprintf(s.Stderr, "The recipient and sender of an SMS are not known here: %s.\n", err)
		return nil
	}
	routes, directory := stored.Table(), accounts.NewDirectory(s, stored.Secret.Value)
	for _, code := range p.Countries {
		for _, name := range p.Operators {
			service := operator.Service{Operator: name, Country: code, Operation: operator.AccountSMS}
			if selected, found := routes.Select(service); found {
				driver, _, _ := directory.Driver(selected.Platform)
				rules = append(rules, findSMSRule(s, p, code, selected, driver))
				break // as the function selects it: the first operator that serves the country
			}
		}
	}
	return rules
}

// warnUnserved reports the profile's operators and countries for which no route leads to a platform: each request with
// them is refused. It only warns, because a route may follow.
func warnUnserved(s *session.Session, p *merchant.Profile) {
	stored, err := accounts.ReadStored(s)
	if err != nil {
		return // smsRulesOf reports it
	}
	isUnserved := func(names, countries []string) bool {
		return !slices.ContainsFunc(countries, func(code string) bool {
			return slices.ContainsFunc(p.Operations, func(operation string) bool {
				return len(stored.Table().Operators(names, code, operation)) > 0
			})
		})
	}
	var serving []string
	for _, name := range p.Operators {
		if !isUnserved([]string{name}, p.Countries) {
			serving = append(serving, name)
			continue
		}
		fmt.Fprintf(s.Stderr, "Operator %s serves nothing in %s for %s: see %s\n", name, output.JoinComma(p.Countries),
			p.Name, s.Command("operator", "route", "list", name))
	}
	for _, code := range p.Countries {
		if len(serving) > 0 && isUnserved(serving, []string{code}) {
			fmt.Fprintf(s.Stderr, "No operator of %s serves anything in %s: see %s\n", p.Name, code,
				s.Command("operator", "route", "list"))
		}
	}
}

// findSMSRule finds a platform's rule by its own check, which sends nothing: each refusal of a message lists what
// works.
func findSMSRule(
	s *session.Session, p *merchant.Profile, code string, selected operator.Selection, driver operator.Driver,
) SMSRule {
	country, _ := market.ByAlpha2(code)
	rule := SMSRule{
		Country: code, Operator: selected.Operator, Recipient: "the alias",
		Sender: country.SenderPrefix() + " and digits", SenderName: cmp.Or(output.JoinComma(p.SenderNames), "any"),
	}
	checker, isRestricted := driver.(operator.MessageChecker)
	if !isRestricted {
		return rule
	}
	call := operator.SMSCall{Sender: rule.Sender, SenderName: rule.SenderName, SenderNames: p.SenderNames}
	pin := operator.ParsePin(selected.Account, selected.Platform)
	call.Platform, call.AccountID, call.Country = pin.Platform, pin.Account, code
	for range 3 { // a recipient, a sender and a name that no platform takes
		refused := checker.CheckMessage(s, call)
		if refused == nil {
			break
		}
		works := cmp.Or(refused.Value, "none works: "+refused.Error())
		switch refused.Part[strings.LastIndex(refused.Part, ".")+1:] {
		case "X-Operator-ISE2":
			rule.Recipient = works
			call.ISE2 = "+" + country.CallingCode + strings.Repeat("7", country.NationalLengths[0])
		case "senderName":
			rule.SenderName, call.SenderName = works, ""
		default: // senderAddress, or the account lacks one
			rule.Sender, call.Sender = works, works
		}
	}
	return rule
}
