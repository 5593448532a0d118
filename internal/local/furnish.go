package local

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
)

// Deployment is a stack that runs elsewhere than in a Run, and is to be given what a Run has: secrets, the sandbox as
// every operator, and the demo merchants. It is for tests of deployments: nobody's money stands behind it.
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

// Furnish puts the secrets, onboards the merchants and tells what run.json would. It is for a stack without these
// merchants; a ring that has keys keeps them.
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
		text, err := d.ring(ctx, name)
		if err != nil {
			return info, err
		}
		if name == d.WebhookSecret {
			webhookRing, err = keyring.Parse(text)
			if err != nil {
				return info, err
			}
		}
	}
	shops, err := d.onboard(ctx, webhookRing)
	if err != nil {
		return info, err
	}
	info.Shop, info.SecondMerchant, info.LimitedMerchant = shops[0], shops[1], shops[2]
	return info, nil
}

// ring is the value of a ring's secret, which is given its first key where it has none.
func (d Deployment) ring(ctx context.Context, name string) ([]byte, error) {
	held, err := d.Held(ctx, name)
	if err != nil || len(held) > 0 {
		return held, err
	}
	text, err := keyring.Append(nil, rand.Reader, d.Now())
	if err != nil {
		return nil, err
	}
	return text, d.put(ctx, name, text)
}

// Held is a secret's value, nil where it has none yet.
func (d Deployment) Held(ctx context.Context, name string) ([]byte, error) {
	held, err := d.Client.Secrets().GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(name)})
	var none *types.ResourceNotFoundException
	if errors.As(err, &none) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get a secret: %w", err)
	}
	return []byte(aws.ToString(held.SecretString)), nil
}

// AddKeys adds a key to every ring, as rotation does; it signs only when every function has had the time to read it.
func (d Deployment) AddKeys(ctx context.Context) error {
	for _, name := range d.KeySecrets {
		held, err := d.Held(ctx, name)
		if err != nil {
			return err
		}
		text, err := keyring.Append(held, rand.Reader, d.Now())
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

// onboard makes the demo merchants.
func (d Deployment) onboard(ctx context.Context, ring *keyring.Ring) ([]Shop, error) {
	registry := merchantdynamo.NewRegistry(d.Client.DynamoDB(), d.MerchantTable)
	var shops []Shop
	for _, demo := range demoMerchants() {
		profile, err := merchant.New(demo.name, rand.Reader, d.Now())
		if err != nil {
			return nil, err
		}
		demo.entitle(profile)
		demo.notify(profile, d.InboxURL)
		held, err := issue(profile, ring, d.Now())
		if err != nil {
			return nil, err
		}
		if err := registry.Create(ctx, profile); err != nil {
			return nil, fmt.Errorf("onboard %s: %w", demo.name, err)
		}
		shops = append(shops, demo.shop(profile, held, ring))
	}
	return shops, nil
}
