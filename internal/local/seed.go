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

// Seed puts the secrets, onboards the merchants and tells what run.json would. It is for a stack without these
// merchants; a ring that has keys keeps them.
func (d Deployment) Seed(ctx context.Context) (Info, error) {
	info := Info{BaseURL: d.BaseURL, SandboxURL: d.SandboxURL, InboxURL: d.InboxURL, PIDs: PIDs{Functions: map[string][]int{}}}
	credentials, err := json.Marshal(operatorCredentials(d.OperatorURL, d.SandboxToken))
	if err != nil {
		return info, err
	}
	if err := d.putSecretValue(ctx, d.OperatorSecret, credentials); err != nil {
		return info, err
	}
	var webhookRing *keyring.Ring
	for _, name := range d.KeySecrets {
		text, err := d.ensureKeyRing(ctx, name)
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
	merchants, err := d.onboardMerchants(ctx, webhookRing)
	if err != nil {
		return info, err
	}
	info.MerchantCredentials, info.SecondMerchant, info.LimitedMerchant = merchants[0], merchants[1], merchants[2]
	return info, nil
}

// ensureKeyRing is the value of a ring's secret, which is given its first key where it has none.
func (d Deployment) ensureKeyRing(ctx context.Context, name string) ([]byte, error) {
	stored, err := d.SecretValue(ctx, name)
	if err != nil || len(stored) > 0 {
		return stored, err
	}
	text, err := keyring.AddKey(nil, rand.Reader, d.Now())
	if err != nil {
		return nil, err
	}
	return text, d.putSecretValue(ctx, name, text)
}

// SecretValue is a secret's value, nil where it has none yet.
func (d Deployment) SecretValue(ctx context.Context, name string) ([]byte, error) {
	stored, err := d.Client.SecretsManager().GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(name)})
	var notFound *types.ResourceNotFoundException
	if errors.As(err, &notFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get a secret: %w", err)
	}
	return []byte(aws.ToString(stored.SecretString)), nil
}

// AddRingKeys adds a key to every ring, as rotation does; it signs only when every function has had the time to read it.
func (d Deployment) AddRingKeys(ctx context.Context) error {
	for _, name := range d.KeySecrets {
		stored, err := d.SecretValue(ctx, name)
		if err != nil {
			return err
		}
		text, err := keyring.AddKey(stored, rand.Reader, d.Now())
		if err != nil {
			return err
		}
		if err := d.putSecretValue(ctx, name, text); err != nil {
			return err
		}
	}
	return nil
}

// putSecretValue writes a secret's value.
func (d Deployment) putSecretValue(ctx context.Context, name string, value []byte) error {
	_, err := d.Client.SecretsManager().PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: aws.String(name), SecretString: aws.String(string(value)),
	})
	if err != nil {
		return fmt.Errorf("put a secret: %w", err)
	}
	return nil
}

// onboardMerchants makes the demo merchants.
func (d Deployment) onboardMerchants(ctx context.Context, ring *keyring.Ring) ([]MerchantCredentials, error) {
	registry := merchantdynamo.NewRegistry(d.Client.DynamoDB(), d.MerchantTable)
	var merchants []MerchantCredentials
	for _, demo := range demoMerchants() {
		profile, err := merchant.New(demo.name, rand.Reader, d.Now())
		if err != nil {
			return nil, err
		}
		demo.grantPermissions(profile)
		demo.setNotificationURL(profile, d.InboxURL)
		stored, err := issueCredentials(profile, ring, d.Now())
		if err != nil {
			return nil, err
		}
		if err := registry.Create(ctx, profile); err != nil {
			return nil, fmt.Errorf("onboard %s: %w", demo.name, err)
		}
		merchants = append(merchants, demo.runCredentials(profile, stored, ring))
	}
	return merchants, nil
}
