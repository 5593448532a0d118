package local

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"mobilegateway/internal/local/file"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
)

// demoMerchant is a merchant that the run onboards.
type demoMerchant struct {
	name      string
	countries []string // alpha-2, the home country first
	gwToken   string
	gwAlias   string // its last four digits decide what becomes of a charge: these succeed
	limited   bool
}

// The limits of the third demo merchant.
const (
	demoRequestsPerSecond = 5
	demoBurst             = 20
	demoDailyXOF          = 1_000_000
)

// demoMerchants are the three of run.json, in its order. The second may not use Tunisia, the third has limits.
func demoMerchants() []demoMerchant {
	all := market.Alpha2s()
	withoutTunisia := slices.DeleteFunc(slices.Clone(all), func(code string) bool { return code == "TN" })
	return []demoMerchant{
		{name: "DemoShop", countries: all, gwToken: "demo-gw-token", gwAlias: "demo-alias-2000"},
		{name: "OtherShop", countries: withoutTunisia, gwToken: "other-gw-token", gwAlias: "other-alias-2000"},
		{name: "LimitedShop", countries: all, gwToken: "limited-gw-token", gwAlias: "limited-alias-2000", limited: true},
	}
}

// demoState is what the run keeps of its own, because the gateway keeps hashes alone.
type demoState struct {
	SandboxToken string              `json:"sandbox_token"`
	Merchants    map[string]heldShop `json:"merchants"` // by name
}

// heldShop is a merchant's issued secrets.
type heldShop struct {
	ID           string `json:"id"`
	AccessToken  string `json:"access_token"`
	ClientSecret string `json:"client_secret"`
}

// readDemo reads the run's own state, or begins with none.
func (r *Run) readDemo() (demoState, error) {
	state := demoState{Merchants: map[string]heldShop{}}
	text, err := os.ReadFile(r.data("demo.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		return state, damaged(fmt.Errorf("%s: %w", r.data("demo.json"), err))
	}
	return state, nil
}

func (r *Run) writeDemo(state demoState) error {
	text, err := json.MarshalIndent(state, "", " ")
	if err != nil {
		return err
	}
	return file.Replace(r.data("demo.json"), text)
}

// fillSecrets gives every key ring its first key and the operators their credentials, which all lead to the sandbox. What
// a person set beside them stays.
func (r *Run) fillSecrets(context.Context) error {
	state, err := r.readDemo()
	if err != nil {
		return err
	}
	if state.SandboxToken == "" {
		token := make([]byte, 24)
		_, _ = rand.Read(token) // never fails since Go 1.24
		state.SandboxToken = base64.RawURLEncoding.EncodeToString(token)
		if err := r.writeDemo(state); err != nil {
			return err
		}
	}
	r.info.sandboxToken = state.SandboxToken
	for _, id := range []string{"TokenKeySecret", "CallbackKeySecret", "WebhookKeySecret"} {
		name := r.template.SecretName(id)
		if _, found := r.secrets.Value(name); found {
			continue
		}
		ring, err := keyring.Append(nil, rand.Reader, r.config.Now())
		if err != nil {
			return err
		}
		if err := r.secrets.Put(name, string(ring)); err != nil {
			return err
		}
	}
	name := r.template.SecretName("OperatorSecret")
	held, _ := r.secrets.Value(name)
	credentials, err := renewOperators(held, operatorCredentials(url(r.listeners.sandbox), state.SandboxToken))
	if err != nil {
		return damaged(err)
	}
	return r.secrets.Put(name, credentials)
}

// heldPlatform is an operator in the secret, its accounts as they were written.
type heldPlatform struct {
	Current  string                     `json:"current"`
	Accounts map[string]json.RawMessage `json:"accounts"`
}

// renewOperators puts the run's own accounts into the operators' secret that is held, "" for none: they are renewed, as the
// sandbox's address may be another than before. Accounts that a person added stay, and so does a current one among them.
func renewOperators(held string, own map[string]any) (string, error) {
	platforms := map[string]heldPlatform{}
	if held != "" && (json.Unmarshal([]byte(held), &platforms) != nil || platforms == nil) {
		return "", errors.New("the operators' secret is not the JSON it should be") // without the parser's words, which may quote it
	}
	text, err := json.Marshal(own)
	if err != nil {
		return "", err
	}
	var ours map[string]heldPlatform
	if err := json.Unmarshal(text, &ours); err != nil {
		return "", err
	}
	for name, renewed := range ours {
		was := platforms[name]
		for id, account := range was.Accounts {
			if _, ownID := renewed.Accounts[id]; !ownID {
				renewed.Accounts[id] = account
			}
		}
		if _, found := renewed.Accounts[was.Current]; found {
			renewed.Current = was.Current
		}
		platforms[name] = renewed
	}
	text, err = json.Marshal(platforms)
	return string(text), err
}

// operatorCredentials is the operators' secret: each of them is the sandbox.
func operatorCredentials(address, token string) map[string]any {
	senders := map[string]string{}
	for _, c := range market.All() {
		senders[c.Alpha2] = c.SenderPrefix() + "0000"
	}
	platforms := map[string]any{}
	for _, name := range operator.Names() {
		platforms[name] = map[string]any{
			"current": "local",
			"accounts": map[string]any{"local": map[string]any{
				"base_url": address, "access_token": token,
				"service_id": serviceID, "application_id": applicationID, "contact_id": contactID,
				"user_sms": map[string]any{"gw_token": "gateway-gw-token", "sender": senders, "sender_name": "Gateway"},
			}},
		}
	}
	return platforms
}

// onboard makes the demo merchants where they are missing, and has their notifications sent to this run's inbox.
func (r *Run) onboard(ctx context.Context) error {
	environment := r.awsEnvironment()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		return err
	}
	registry := merchantdynamo.NewRegistry(client.DynamoDB(), r.template.Table("MerchantTable").Name)
	text, _ := r.secrets.Value(r.template.SecretName("WebhookKeySecret"))
	ring, err := keyring.Parse([]byte(text))
	if err != nil {
		return damaged(err)
	}
	state, err := r.readDemo()
	if err != nil {
		return err
	}
	var shops []Shop
	for _, demo := range demoMerchants() {
		profile, err := r.onboardOne(ctx, registry, ring, demo, &state)
		if err != nil {
			return fmt.Errorf("onboard %s: %w", demo.name, err)
		}
		shops = append(shops, demo.shop(profile, state.Merchants[demo.name], ring))
	}
	r.info.Shop, r.info.SecondMerchant, r.info.LimitedMerchant = shops[0], shops[1], shops[2]
	r.inbox.Trust(shops[0].WebhookSecret, shops[1].WebhookSecret, shops[2].WebhookSecret)
	return nil
}

// onboardOne gives the merchant's profile, made or found.
func (r *Run) onboardOne(ctx context.Context, registry merchant.Registry, ring *keyring.Ring, demo demoMerchant, state *demoState) (*merchant.Profile, error) {
	profile, err := registry.Profile(ctx, state.Merchants[demo.name].ID)
	if err != nil {
		return nil, err
	}
	inbox := url(r.listeners.inbox)
	if profile != nil {
		changed := profile.Clone()
		demo.notify(changed, inbox)
		if changed.NotifURL == profile.NotifURL {
			return profile, nil
		}
		return changed, registry.Update(ctx, changed)
	}
	profile, err = merchant.New(demo.name, rand.Reader, r.config.Now())
	if err != nil {
		return nil, err
	}
	demo.entitle(profile)
	demo.notify(profile, inbox)
	held, err := issue(profile, ring, r.config.Now())
	if err != nil {
		return nil, err
	}
	state.Merchants[demo.name] = held // before the profile: a run cut short between the two makes the profile anew
	if err := r.writeDemo(*state); err != nil {
		return nil, err
	}
	err = registry.Create(ctx, profile)
	if errors.Is(err, merchant.ErrNameTaken) {
		return nil, damaged(errors.New("the table has this merchant, but its credentials are gone"))
	}
	return profile, err
}

// issue gives a new profile its credentials.
func issue(profile *merchant.Profile, ring *keyring.Ring, now time.Time) (heldShop, error) {
	token, err := merchant.IssueToken(profile, rand.Reader, now)
	if err != nil {
		return heldShop{}, err
	}
	secret, err := merchant.IssueClientSecret(profile, rand.Reader, now)
	if err != nil {
		return heldShop{}, err
	}
	if _, err := merchant.IssueWebhookSecret(profile, ring.Signing(now, 0).Number, false, now); err != nil {
		return heldShop{}, err
	}
	return heldShop{ID: profile.ID, AccessToken: token, ClientSecret: secret}, profile.Check(true)
}

// entitle gives a profile what the demo merchant may use.
func (d demoMerchant) entitle(p *merchant.Profile) {
	p.Operations = []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS}
	p.Countries, p.Operators = d.countries, operator.Names()
	p.OnBehalfOf = []string{d.name}
	if d.limited {
		p.RequestsPerSecond, p.Burst = demoRequestsPerSecond, demoBurst
		p.DailyAmounts = map[string]int64{"XOF": demoDailyXOF}
	}
}

// notify points a profile's notifications to an inbox, given by its base address.
func (d demoMerchant) notify(p *merchant.Profile, inbox string) {
	_, address, _ := strings.Cut(inbox, "://")
	p.NotifURL = inbox + "/notifications/" + d.name
	p.NotificationHosts = []string{address}
	if host, _, err := net.SplitHostPort(address); err == nil {
		p.NotificationHosts = []string{host, address}
	}
}

// shop is what run.json tells of a merchant.
func (d demoMerchant) shop(p *merchant.Profile, held heldShop, ring *keyring.Ring) Shop {
	shop := Shop{
		AccessToken: held.AccessToken, ClientID: p.ID, ClientSecret: held.ClientSecret, Merchant: d.name, OnBehalfOf: d.name,
		ServiceID: serviceID, ApplicationID: applicationID, ContactID: contactID, GWToken: d.gwToken, GWAlias: d.gwAlias,
	}
	if len(p.WebhookSecrets) > 0 {
		newest := p.WebhookSecrets[0]
		if key, found := ring.Find(newest.KeyNumber); found {
			shop.WebhookSecret = webhook.DeriveSecret(key, p.ID, newest.Version).Text()
		}
	}
	return shop
}
