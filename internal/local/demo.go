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
	SandboxToken string                       `json:"sandbox_token"`
	Merchants    map[string]issuedCredentials `json:"merchants"` // by name
}

// issuedCredentials is a merchant's issued secrets.
type issuedCredentials struct {
	ID           string `json:"id"`
	AccessToken  string `json:"access_token"`
	ClientSecret string `json:"client_secret"`
}

// readDemoState reads the run's own state, or begins with none.
func (r *Gateway) readDemoState() (demoState, error) {
	state := demoState{Merchants: map[string]issuedCredentials{}}
	text, err := os.ReadFile(r.dataPath("demo.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		return state, withResetHint(fmt.Errorf("%s: %w", r.dataPath("demo.json"), err))
	}
	return state, nil
}

func (r *Gateway) writeDemoState(state demoState) error {
	text, err := json.MarshalIndent(state, "", " ")
	if err != nil {
		return err
	}
	return file.Replace(r.dataPath("demo.json"), text)
}

// seedSecrets gives every key ring its first key and the operators their credentials, which all lead to the sandbox. What
// a person set beside them stays.
func (r *Gateway) seedSecrets(context.Context) error {
	state, err := r.readDemoState()
	if err != nil {
		return err
	}
	if state.SandboxToken == "" {
		token := make([]byte, 24)
		_, _ = rand.Read(token) // never fails since Go 1.24
		state.SandboxToken = base64.RawURLEncoding.EncodeToString(token)
		if err := r.writeDemoState(state); err != nil {
			return err
		}
	}
	r.info.sandboxToken = state.SandboxToken
	for _, id := range []string{"TokenKeySecret", "CallbackKeySecret", "WebhookKeySecret"} {
		name := r.template.SecretName(id)
		if _, found := r.secrets.CurrentValue(name); found {
			continue
		}
		ring, err := keyring.AddKey(nil, rand.Reader, r.config.Now())
		if err != nil {
			return err
		}
		if err := r.secrets.Put(name, string(ring)); err != nil {
			return err
		}
	}
	name := r.template.SecretName("OperatorSecret")
	stored, _ := r.secrets.CurrentValue(name)
	credentials, err := mergeOperatorAccounts(stored, operatorCredentials(listenerURL(r.listeners.sandbox), state.SandboxToken))
	if err != nil {
		return withResetHint(err)
	}
	return r.secrets.Put(name, credentials)
}

// storedOperator is an operator in the secret, its accounts as they were written.
type storedOperator struct {
	Current  string                     `json:"current"`
	Accounts map[string]json.RawMessage `json:"accounts"`
}

// mergeOperatorAccounts puts the run's own accounts into the operators' secret that is held, "" for none: they are renewed, as the
// sandbox's address may be another than before. Accounts that a person added stay, and so does a current one among them.
func mergeOperatorAccounts(stored string, own map[string]any) (string, error) {
	platforms := map[string]storedOperator{}
	if stored != "" && (json.Unmarshal([]byte(stored), &platforms) != nil || platforms == nil) {
		return "", errors.New("the operators' secret is not the JSON it should be") // without the parser's words, which may quote it
	}
	text, err := json.Marshal(own)
	if err != nil {
		return "", err
	}
	var localOperators map[string]storedOperator
	if err := json.Unmarshal(text, &localOperators); err != nil {
		return "", err
	}
	for name, merged := range localOperators {
		previous := platforms[name]
		for id, account := range previous.Accounts {
			if _, isLocal := merged.Accounts[id]; !isLocal {
				merged.Accounts[id] = account
			}
		}
		if _, found := merged.Accounts[previous.Current]; found {
			merged.Current = previous.Current
		}
		platforms[name] = merged
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

// onboardMerchants makes the demo merchants where they are missing, and has their notifications sent to this run's inbox.
func (r *Gateway) onboardMerchants(ctx context.Context) error {
	environment := r.awsEnvironment()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		return err
	}
	registry := merchantdynamo.NewRegistry(client.DynamoDB(), r.template.Table("MerchantTable").Name)
	text, _ := r.secrets.CurrentValue(r.template.SecretName("WebhookKeySecret"))
	ring, err := keyring.Parse([]byte(text))
	if err != nil {
		return withResetHint(err)
	}
	state, err := r.readDemoState()
	if err != nil {
		return err
	}
	var merchants []MerchantCredentials
	for _, demo := range demoMerchants() {
		profile, err := r.ensureMerchant(ctx, registry, ring, demo, &state)
		if err != nil {
			return fmt.Errorf("onboard %s: %w", demo.name, err)
		}
		merchants = append(merchants, demo.runCredentials(profile, state.Merchants[demo.name], ring))
	}
	r.info.MerchantCredentials, r.info.SecondMerchant, r.info.LimitedMerchant = merchants[0], merchants[1], merchants[2]
	r.inbox.SetSecrets(merchants[0].WebhookSecret, merchants[1].WebhookSecret, merchants[2].WebhookSecret)
	return nil
}

// ensureMerchant gives the merchant's profile, made or found.
func (r *Gateway) ensureMerchant(ctx context.Context, registry merchant.Registry, ring *keyring.Ring, demo demoMerchant, state *demoState) (*merchant.Profile, error) {
	profile, err := registry.Profile(ctx, state.Merchants[demo.name].ID)
	if err != nil {
		return nil, err
	}
	inbox := listenerURL(r.listeners.inbox)
	if profile != nil {
		changed := profile.Clone()
		demo.setNotificationURL(changed, inbox)
		if changed.NotifURL == profile.NotifURL {
			return profile, nil
		}
		return changed, registry.Update(ctx, changed)
	}
	profile, err = merchant.New(demo.name, rand.Reader, r.config.Now())
	if err != nil {
		return nil, err
	}
	demo.grantPermissions(profile)
	demo.setNotificationURL(profile, inbox)
	stored, err := issueCredentials(profile, ring, r.config.Now())
	if err != nil {
		return nil, err
	}
	state.Merchants[demo.name] = stored // before the profile: a run cut short between the two makes the profile anew
	if err := r.writeDemoState(*state); err != nil {
		return nil, err
	}
	err = registry.Create(ctx, profile)
	if errors.Is(err, merchant.ErrNameTaken) {
		return nil, withResetHint(errors.New("the table has this merchant, but its credentials are gone"))
	}
	return profile, err
}

// issueCredentials gives a new profile its credentials.
func issueCredentials(profile *merchant.Profile, ring *keyring.Ring, now time.Time) (issuedCredentials, error) {
	token, err := merchant.IssueToken(profile, rand.Reader, now)
	if err != nil {
		return issuedCredentials{}, err
	}
	secret, err := merchant.IssueClientSecret(profile, rand.Reader, now)
	if err != nil {
		return issuedCredentials{}, err
	}
	if _, err := merchant.IssueWebhookSecret(profile, ring.SigningKey(now, 0).Number, false, now); err != nil {
		return issuedCredentials{}, err
	}
	return issuedCredentials{ID: profile.ID, AccessToken: token, ClientSecret: secret}, profile.Validate(true)
}

// grantPermissions gives a profile what the demo merchant may use.
func (d demoMerchant) grantPermissions(p *merchant.Profile) {
	p.Operations = []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS}
	p.Countries, p.Operators = d.countries, operator.Names()
	p.OnBehalfOf = []string{d.name}
	if d.limited {
		p.RequestsPerSecond, p.Burst = demoRequestsPerSecond, demoBurst
		p.DailyAmounts = map[string]int64{"XOF": demoDailyXOF}
	}
}

// setNotificationURL points a profile's notifications to an inbox, given by its base address.
func (d demoMerchant) setNotificationURL(p *merchant.Profile, inbox string) {
	_, address, _ := strings.Cut(inbox, "://")
	p.NotifURL = inbox + "/notifications/" + d.name
	p.NotificationHosts = []string{address}
	if host, _, err := net.SplitHostPort(address); err == nil {
		p.NotificationHosts = []string{host, address}
	}
}

// runCredentials is what run.json tells of a merchant.
func (d demoMerchant) runCredentials(p *merchant.Profile, stored issuedCredentials, ring *keyring.Ring) MerchantCredentials {
	merchantCredentials := MerchantCredentials{
		AccessToken: stored.AccessToken, ClientID: p.ID, ClientSecret: stored.ClientSecret, Merchant: d.name, OnBehalfOf: d.name,
		ServiceID: serviceID, ApplicationID: applicationID, ContactID: contactID, GWToken: d.gwToken, GWAlias: d.gwAlias,
	}
	if len(p.WebhookSecrets) > 0 {
		newest := p.WebhookSecrets[0]
		if key, found := ring.FindKey(newest.KeyNumber); found {
			merchantCredentials.WebhookSecret = webhook.DeriveSecret(key, p.ID, newest.Version).Text()
		}
	}
	return merchantCredentials
}
