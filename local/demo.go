package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"mobilegateway/internal/file"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/webhook"
	"mobilegateway/world/operators/platforms"
)

// Deployment is a stack to seed for a demo or a test: Seed gives it keys, the sandbox as every operator, and the demo
// merchants. The local run, the benchmark and the end-to-end tests all seed by it. It must not be a stack that moves
// real money.
type Deployment struct {
	// Client reaches the stack's tables and secrets.
	Client *awsclient.Client
	// Names are the names or ARNs of its resources by logical id: a stack's outputs or a template's references. The
	// secrets must exist; they need no value.
	Names map[string]string
	// BaseURL, SandboxURL and InboxURL are the addresses for run.json. Operators' credentials contain SandboxURL.
	BaseURL, SandboxURL, InboxURL string
	// SandboxToken is the access token that the sandbox accepts.
	SandboxToken string

	stubs    *platforms.Config     // the stubs of operators; nil: the sandbox is every operator
	demo     demoState             // what an earlier Seed issued
	saveDemo func(demoState) error // stores it before each new profile; nil: it is not stored
}

// Seed writes the secrets, onboards the demo merchants and returns the content of run.json. A key ring with keys keeps
// them, and so do operators' accounts that a person added. It returns merchant.ErrNameTaken if a merchant exists whose
// credentials are lost.
func (d Deployment) Seed(ctx context.Context) (Info, error) {
	info := Info{
		BaseURL: d.BaseURL, SandboxURL: d.SandboxURL, InboxURL: d.InboxURL, PIDs: PIDs{Functions: map[string][]int{}},
	}
	if d.stubs != nil {
		info.StubsURL = d.stubs.URL
	}
	if err := d.writeOperators(ctx); err != nil {
		return info, err
	}
	if err := d.addKeys(ctx, func(ring []byte) bool { return len(ring) == 0 }); err != nil {
		return info, err
	}
	merchants, err := d.onboardMerchants(ctx)
	if err != nil {
		return info, err
	}
	info.MerchantCredentials, info.SecondMerchant, info.LimitedMerchant = merchants[0], merchants[1], merchants[2]
	return info, nil
}

// writeOperators writes the accounts of the sandbox, and of the stubs with their routes, into the operators' secret.
func (d Deployment) writeOperators(ctx context.Context) error {
	stored, err := d.SecretValue(ctx, d.Names["OperatorSecret"])
	if err != nil {
		return err
	}
	operators, routes := sandboxCredentials(d.SandboxURL, d.SandboxToken), map[string][]operator.Route(nil)
	if d.stubs != nil {
		routes = platforms.Routes()
		maps.Copy(operators, stubCredentials(*d.stubs))
	}
	credentials, err := mergeOperatorAccounts(stored, operators, routes)
	if err != nil {
		return err
	}
	return d.UpdateSecret(ctx, d.Names["OperatorSecret"], stored, credentials)
}

// RouteToStubs leads the operators of a seeded stack to stubs, and the SMS of its second merchant to Orange's. It
// returns the new content of run.json.
func (d Deployment) RouteToStubs(ctx context.Context, info Info, stubs platforms.Config) (Info, error) {
	d.stubs, info.StubsURL = &stubs, stubs.URL
	if err := d.writeOperators(ctx); err != nil {
		return info, err
	}
	registry := merchantdynamo.NewRegistry(d.Client.DynamoDB(), d.Names["MerchantTable"])
	profile, err := registry.Profile(ctx, info.SecondMerchant.ClientID)
	if err != nil {
		return info, err
	}
	changed := profile.Clone()
	changed.Operators = []string{"orange"}
	return info, registry.Update(ctx, changed)
}

// AddRingKeys adds a key to every key ring, as rotation does. A new key signs once every function has had the time to
// read it.
func (d Deployment) AddRingKeys(ctx context.Context) error {
	return d.addKeys(ctx, func([]byte) bool { return true })
}

// addKeys adds a key to the key rings that needsKey selects by their stored value.
func (d Deployment) addKeys(ctx context.Context, needsKey func(ring []byte) bool) error {
	if err := d.addTokenKey(ctx, needsKey); err != nil {
		return err
	}
	for _, secret := range []string{"CallbackKeySecret", "WebhookKeySecret"} {
		name := d.Names[secret]
		stored, err := d.SecretValue(ctx, name)
		if err != nil {
			return err
		}
		if !needsKey(stored) {
			continue
		}
		ring, err := keyring.AddKey(stored, rand.Reader, time.Now())
		if err != nil {
			return err
		}
		if err := d.UpdateSecret(ctx, name, stored, ring); err != nil {
			return err
		}
	}
	return nil
}

// addTokenKey adds a key to both rings of token keys if needsKey selects one of them. A private ring without a public
// one is from an earlier version, whose keys more than one function could read: it is replaced.
func (d Deployment) addTokenKey(ctx context.Context, needsKey func(ring []byte) bool) error {
	privateName, publicName := d.Names["TokenKeySecret"], d.Names["TokenPublicKeySecret"]
	private, err := d.SecretValue(ctx, privateName)
	if err != nil {
		return err
	}
	public, err := d.SecretValue(ctx, publicName)
	if err != nil || !needsKey(private) && !needsKey(public) {
		return err
	}
	stored := keyring.Pair{Private: private, Public: public}
	if len(public) == 0 {
		stored = keyring.Pair{}
	}
	next, err := stored.AddKey(rand.Reader, time.Now())
	if err != nil {
		return err
	}
	if err := d.UpdateSecret(ctx, publicName, public, next.Public); err != nil { // first: see keyring.Pair
		return err
	}
	return d.UpdateSecret(ctx, privateName, private, next.Private)
}

// SecretValue returns a secret's value, nil if it has none yet.
func (d Deployment) SecretValue(ctx context.Context, name string) ([]byte, error) {
	stored, err := d.Client.SecretsManager().GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{
		SecretId: aws.String(name),
	})
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the secret %s: %w", name, err)
	}
	return []byte(aws.ToString(stored.SecretString)), nil
}

// UpdateSecret writes a secret's value if it differs from the stored one.
func (d Deployment) UpdateSecret(ctx context.Context, name string, stored, value []byte) error {
	if string(stored) == string(value) {
		return nil
	}
	_, err := d.Client.SecretsManager().PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: aws.String(name), SecretString: aws.String(string(value)),
	})
	if err != nil {
		return fmt.Errorf("put the secret %s: %w", name, err)
	}
	return nil
}

// onboardMerchants creates the demo merchants that are missing and sends the notifications of all to the inbox.
func (d Deployment) onboardMerchants(ctx context.Context) ([]MerchantCredentials, error) {
	text, err := d.SecretValue(ctx, d.Names["WebhookKeySecret"])
	if err != nil {
		return nil, err
	}
	ring, err := keyring.Parse(text)
	if err != nil {
		return nil, err
	}
	if d.demo.Merchants == nil {
		d.demo.Merchants = map[string]issuedCredentials{}
	}
	registry := merchantdynamo.NewRegistry(d.Client.DynamoDB(), d.Names["MerchantTable"])
	var merchants []MerchantCredentials
	for _, demo := range demoMerchants() {
		profile, err := d.ensureMerchant(ctx, registry, ring, demo)
		if err != nil {
			return nil, fmt.Errorf("onboard %s: %w", demo.name, err)
		}
		merchants = append(merchants, demo.runCredentials(profile, d.demo.Merchants[demo.name], ring))
	}
	return merchants, nil
}

// ensureMerchant returns the merchant's profile and creates it if it is missing.
func (d Deployment) ensureMerchant(
	ctx context.Context, registry merchant.Registry, ring *keyring.Ring, demo demoMerchant,
) (*merchant.Profile, error) {
	profile, err := registry.Profile(ctx, d.demo.Merchants[demo.name].ID)
	if err != nil {
		return nil, err
	}
	if profile != nil {
		changed := profile.Clone()
		demo.setNotificationURL(changed, d.InboxURL)
		if changed.NotifURL == profile.NotifURL {
			return profile, nil
		}
		return changed, registry.Update(ctx, changed)
	}
	profile, err = merchant.New(demo.name, rand.Reader, time.Now())
	if err != nil {
		return nil, err
	}
	demo.grantPermissions(profile)
	demo.setNotificationURL(profile, d.InboxURL)
	issued, err := issueCredentials(profile, ring, time.Now())
	if err != nil {
		return nil, err
	}
	d.demo.Merchants[demo.name] = issued
	if d.saveDemo != nil { // before the profile: a run that dies between the two creates the profile again
		if err := d.saveDemo(d.demo); err != nil {
			return nil, err
		}
	}
	err = registry.Create(ctx, profile)
	if errors.Is(err, merchant.ErrNameTaken) {
		err = fmt.Errorf("its credentials are lost: %w", err)
	}
	return profile, err
}

// demoMerchant is a merchant that Seed onboards.
type demoMerchant struct {
	name      string
	countries []string // alpha-2, the home country first
	gwToken   string
	gwAlias   string // the last four digits select the outcome of a charge: success
	limited   bool
	reads     bool // may list its transactions and its operators, and have notifications sent again
}

// The limits of the third demo merchant.
const (
	demoRequestsPerSecond = 5
	demoBurst             = 20
	demoDailyXOF          = 1_000_000
)

// demoMerchants are the three merchants of run.json, in its order. Only the first one has every entitlement. The second
// one may not use Tunisia, and the third one has limits.
func demoMerchants() []demoMerchant {
	all := market.Alpha2s()
	withoutTunisia := slices.DeleteFunc(slices.Clone(all), func(code string) bool { return code == "TN" })
	return []demoMerchant{
		{
			name: "DemoShop", countries: all, gwToken: "demo-gw-token", gwAlias: "demo-alias-2000", reads: true,
		},
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
	if d.reads {
		p.Operations = merchant.Operations()
	}
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
