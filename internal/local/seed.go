package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"mobilegateway/internal/operatorstub/platforms"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/shared/operator"
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
	return d.updateSecret(ctx, d.Names["OperatorSecret"], stored, credentials)
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
		if err := d.updateSecret(ctx, name, stored, ring); err != nil {
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
	if err := d.updateSecret(ctx, publicName, public, next.Public); err != nil { // first: see keyring.Pair
		return err
	}
	return d.updateSecret(ctx, privateName, private, next.Private)
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

// updateSecret writes a secret's value if it differs from the stored one.
func (d Deployment) updateSecret(ctx context.Context, name string, stored, value []byte) error {
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
