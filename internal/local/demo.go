package local

import (
	"context"
	"crypto/rand"
	"net"
	"slices"
	"strings"
	"time"

	"mobilegateway/internal/local/file"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
)

// demoMerchant is a merchant that Seed onboards.
type demoMerchant struct {
	name      string
	countries []string // alpha-2, the home country first
	gwToken   string
	gwAlias   string // the last four digits select the outcome of a charge: success
	limited   bool
}

// The limits of the third demo merchant.
const (
	demoRequestsPerSecond = 5
	demoBurst             = 20
	demoDailyXOF          = 1_000_000
)

// demoMerchants are the three merchants of run.json, in its order. The second one may not use Tunisia, and the third
// one has limits.
func demoMerchants() []demoMerchant {
	all := market.Alpha2s()
	withoutTunisia := slices.DeleteFunc(slices.Clone(all), func(code string) bool { return code == "TN" })
	return []demoMerchant{
		{name: "DemoShop", countries: all, gwToken: "demo-gw-token", gwAlias: "demo-alias-2000"},
		{name: "OtherShop", countries: withoutTunisia, gwToken: "other-gw-token", gwAlias: "other-alias-2000"},
		{
			name: "LimitedShop", countries: all, gwToken: "limited-gw-token", gwAlias: "limited-alias-2000",
			limited: true,
		},
	}
}

// demoState is demo.json: the issued secrets. The gateway itself keeps only their hashes.
type demoState struct {
	SandboxToken string                       `json:"sandbox_token"`
	Merchants    map[string]issuedCredentials `json:"merchants"` // by name
}

type issuedCredentials struct {
	ID           string `json:"id"`
	AccessToken  string `json:"access_token"`
	ClientSecret string `json:"client_secret"`
}

// readDemoState reads demo.json, and creates it with a new token for the sandbox if it is missing.
func (r *Gateway) readDemoState() (demoState, error) {
	var state demoState
	if err := file.ReadJSON(r.dataPath("demo.json"), &state); err != nil || state.SandboxToken != "" {
		return state, err
	}
	state.SandboxToken = rand.Text()
	return state, r.writeDemoState(state)
}

func (r *Gateway) writeDemoState(state demoState) error {
	return file.ReplaceJSON(r.dataPath("demo.json"), state)
}

// seed seeds the run's own tables and secrets.
func (r *Gateway) seed(ctx context.Context) error {
	state, err := r.readDemoState()
	if err != nil {
		return withResetHint(err)
	}
	environment := r.awsEnvironment()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		return err
	}
	r.sandboxToken = state.SandboxToken
	r.info, err = Deployment{
		Client: client, Names: r.template.References, SandboxToken: state.SandboxToken,
		BaseURL: listenerURL(r.listeners.api), SandboxURL: listenerURL(r.listeners.sandbox),
		InboxURL: listenerURL(r.listeners.inbox), stubs: r.stubs, demo: state, saveDemo: r.writeDemoState,
	}.Seed(ctx)
	if err != nil {
		return withResetHint(err)
	}
	r.inbox.SetSecrets(r.info.WebhookSecret, r.info.SecondMerchant.WebhookSecret, r.info.LimitedMerchant.WebhookSecret)
	return nil
}

func issueCredentials(profile *merchant.Profile, ring *keyring.Ring, now time.Time) (issuedCredentials, error) {
	token, err := merchant.LongLivedToken.Issue(profile, rand.Reader, now)
	if err != nil {
		return issuedCredentials{}, err
	}
	secret, err := merchant.ClientSecret.Issue(profile, rand.Reader, now)
	if err != nil {
		return issuedCredentials{}, err
	}
	if _, err := merchant.IssueWebhookSecret(profile, ring.SigningKey(now, 0).Number, false, now); err != nil {
		return issuedCredentials{}, err
	}
	return issuedCredentials{ID: profile.ID, AccessToken: token, ClientSecret: secret}, profile.Validate(true)
}

func (d demoMerchant) grantPermissions(p *merchant.Profile) {
	p.Operations = []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS}
	p.Countries, p.Operators = d.countries, operator.Names()
	p.OnBehalfOf = []string{d.name}
	if d.limited {
		p.RequestsPerSecond, p.Burst = demoRequestsPerSecond, demoBurst
		p.DailyAmounts = map[string]int64{"XOF": demoDailyXOF}
	}
}

// setNotificationURL sends a profile's notifications to an inbox, given by its base address.
func (d demoMerchant) setNotificationURL(p *merchant.Profile, inbox string) {
	_, address, _ := strings.Cut(inbox, "://")
	p.NotifURL = inbox + "/notifications/" + d.name
	p.NotificationHosts = []string{address}
	if host, _, err := net.SplitHostPort(address); err == nil {
		p.NotificationHosts = []string{host, address}
	}
}

func (d demoMerchant) runCredentials(
	p *merchant.Profile, issued issuedCredentials, ring *keyring.Ring,
) MerchantCredentials {
	credentials := MerchantCredentials{
		AccessToken: issued.AccessToken, ClientID: p.ID, ClientSecret: issued.ClientSecret,
		Merchant: d.name, OnBehalfOf: d.name, GWToken: d.gwToken, GWAlias: d.gwAlias,
		ServiceID: serviceID, ApplicationID: applicationID, ContactID: contactID,
	}
	if len(p.WebhookSecrets) > 0 {
		newest := p.WebhookSecrets[0]
		if key, found := ring.FindKey(newest.KeyNumber); found {
			credentials.WebhookSecret = webhook.DeriveSecret(key, p.ID, newest.Version).Text()
		}
	}
	return credentials
}
