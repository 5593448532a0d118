package local

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
)

// Deployment is a stack that runs elsewhere than in a Run, and is to be given what a Run has: secrets, the sandbox as
// every operator, and the two demo merchants. It is for tests of deployments: nobody's money stands behind it.
type Deployment struct {
	// Client reaches the stack's tables and secrets.
	Client *awsclient.Client
	// MerchantTable is the table's name.
	MerchantTable string
	// OperatorSecret is the name or ARN of the operators' credentials, KeySecrets those of the key rings; WebhookSecret is
	// the one of them whose keys sign notifications.
	OperatorSecret string
	KeySecrets     []string
	WebhookSecret  string
	// BaseURL, SandboxURL and InboxURL are what run.json is to tell. OperatorURL is the sandbox as the functions reach it.
	BaseURL, SandboxURL, InboxURL, OperatorURL string
	// SandboxToken is what the sandbox accepts.
	SandboxToken string
	// Now is the clock.
	Now func() time.Time
}

// Furnish puts the secrets, onboards the merchants and tells what run.json would. It is for a stack that has neither.
func (d Deployment) Furnish(ctx context.Context) (Info, error) {
	info := Info{BaseURL: d.BaseURL, SandboxURL: d.SandboxURL, InboxURL: d.InboxURL, PIDs: PIDs{Functions: map[string][]int{}}}
	credentials, err := json.Marshal(operatorCredentials(d.OperatorURL, d.SandboxToken))
	if err != nil {
		return info, err
	}
	if err := d.put(ctx, d.OperatorSecret, credentials); err != nil {
		return info, err
	}
	var webhookRing *keyring.Ring
	for _, name := range d.KeySecrets {
		text, err := keyring.Append(nil, rand.Reader, d.Now())
		if err != nil {
			return info, err
		}
		if err := d.put(ctx, name, text); err != nil {
			return info, err
		}
		if name == d.WebhookSecret {
			webhookRing, err = keyring.Parse(text)
			if err != nil {
				return info, err
			}
		}
	}
	info.Shop, info.SecondMerchant, err = d.onboard(ctx, webhookRing)
	return info, err
}

// AddKeys adds a key to every ring, as rotation does; it signs only when every function has had the time to read it.
func (d Deployment) AddKeys(ctx context.Context) error {
	for _, name := range d.KeySecrets {
		held, err := d.Client.Secrets().GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(name)})
		if err != nil {
			return fmt.Errorf("get a secret: %w", err)
		}
		text, err := keyring.Append([]byte(aws.ToString(held.SecretString)), rand.Reader, d.Now())
		if err != nil {
			return err
		}
		if err := d.put(ctx, name, text); err != nil {
			return err
		}
	}
	return nil
}

// put writes a secret's value.
func (d Deployment) put(ctx context.Context, name string, value []byte) error {
	_, err := d.Client.Secrets().PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: aws.String(name), SecretString: aws.String(string(value)),
	})
	if err != nil {
		return fmt.Errorf("put a secret: %w", err)
	}
	return nil
}

// onboard makes the two demo merchants.
func (d Deployment) onboard(ctx context.Context, ring *keyring.Ring) (first, second Shop, err error) {
	registry := merchantdynamo.NewRegistry(d.Client.DynamoDB(), d.MerchantTable)
	var shops []Shop
	for _, demo := range demoMerchants() {
		profile, err := merchant.New(demo.name, rand.Reader, d.Now())
		if err != nil {
			return first, second, err
		}
		demo.entitle(profile)
		demo.notify(profile, strings.TrimPrefix(d.InboxURL, "http://"))
		held, err := issue(profile, ring, d.Now())
		if err != nil {
			return first, second, err
		}
		if err := registry.Create(ctx, profile); err != nil {
			return first, second, fmt.Errorf("onboard %s: %w", demo.name, err)
		}
		shops = append(shops, demo.shop(profile, held, ring))
	}
	return shops[0], shops[1], nil
}
