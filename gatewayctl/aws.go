package gatewayctl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secrettypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/dailyamount"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	limitdynamo "mobilegateway/shared/limit/dynamo"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/shared/pause"
	webhookdynamo "mobilegateway/shared/webhook/dynamo"
)

// Connect opens a deployment's stores by the variables of the AWS SDKs: AWS_REGION, the credentials, and
// AWS_ENDPOINT_URL_* for a local run. It sends no request.
func Connect(env System, p Deployment) (*Stores, error) {
	if p.LedgerTable == "" || p.MerchantTable == "" {
		return nil, usageError("LEDGER_TABLE and MERCHANT_TABLE are not set: name the tables, or use --local")
	}
	client, err := awsclient.New(env.Getenv)
	if err != nil {
		return nil, usageError("%w", err)
	}
	tables := client.DynamoDB()
	stores := &Stores{
		Merchants:      merchantdynamo.NewRegistry(tables, p.MerchantTable),
		Ledger:         ledgerdynamo.New(tables, p.LedgerTable),
		EndpointHealth: webhookdynamo.New(tables, p.LedgerTable, env.Now),
		Secrets:        secretsManagerStore{client.SecretsManager()},
	}
	stores.connectAudit(client, env, p)
	// Only a refund of a daily amount needs this table. Without it unknown resolve refuses entries that may need a
	// refund.
	if p.LimitTable != "" {
		stores.DailyAmounts = &dailyamount.Counter{
			Store: limitdynamo.New(tables, p.LimitTable), Now: env.Now, Rand: env.Rand, Sleep: pause.For,
		}
	}
	return stores, nil
}

// secretsManagerStore is a SecretStore in Secrets Manager.
type secretsManagerStore struct{ client *secretsmanager.Client }

var _ SecretStore = secretsManagerStore{}

// The stages of the two versions that a revision is made of.
const (
	stageCurrent  = "AWSCURRENT"
	stagePrevious = "AWSPREVIOUS"
)

// Get implements SecretStore.
func (v secretsManagerStore) Get(ctx context.Context, name string) (StoredSecret, error) {
	current := StoredSecret{Name: name}
	revision, err := v.readRevision(ctx, name)
	if err != nil {
		return current, err
	}
	current.Revision = revision
	out, err := v.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(name)})
	if _, absent := errors.AsType[*secrettypes.ResourceNotFoundException](err); absent {
		return current, nil // it has no value yet
	}
	if err != nil {
		return current, secretError("read", name, err)
	}
	current.Value = out.SecretBinary
	if out.SecretString != nil {
		current.Value = []byte(*out.SecretString)
	}
	return current, nil
}

// readRevision returns the revision of a secret, which is made of the ids of its current and previous versions.
func (v secretsManagerStore) readRevision(ctx context.Context, name string) (string, error) {
	secret, err := v.client.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: aws.String(name)})
	if err != nil {
		return "", secretError("describe", name, err)
	}
	versions := map[string]string{}
	for id, stages := range secret.VersionIdsToStages {
		for _, stage := range stages {
			versions[stage] = id
		}
	}
	sum := sha256.Sum256([]byte(name + "\x00" + versions[stageCurrent] + "\x00" + versions[stagePrevious]))
	return hex.EncodeToString(sum[:]), nil
}

// Put implements SecretStore. The revision is the request's token: of two changes of one revision the service accepts
// the first and refuses the second, and a repeat of the same request changes nothing.
func (v secretsManagerStore) Put(ctx context.Context, current StoredSecret, value []byte) error {
	_, err := v.client.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: aws.String(current.Name), SecretString: aws.String(string(value)),
		ClientRequestToken: aws.String(current.Revision),
	})
	if _, changed := errors.AsType[*secrettypes.ResourceExistsException](err); changed {
		return secretChangedError(current.Name)
	}
	return secretError("write", current.Name, err)
}

// secretError explains the error of a request about a secret, nil for none.
func secretError(verb, name string, err error) error {
	if _, absent := errors.AsType[*secrettypes.ResourceNotFoundException](err); absent {
		return fmt.Errorf("there is no secret %s: deploy the stack that creates it", name)
	}
	if err != nil {
		return fmt.Errorf("%s secret %s: %w", verb, name, err)
	}
	return nil
}

func secretChangedError(name string) error {
	return fmt.Errorf("secret %s was changed meanwhile: run the command again", name)
}

// StoredSecret is a secret as it was read. Value is nil if it has none yet. Revision identifies what was read: Put
// refuses to overwrite another change.
type StoredSecret struct {
	Name     string
	Value    []byte
	Revision string
}

// SecretStore stores secrets. Its errors contain no value.
type SecretStore interface {
	// Get returns a secret with its current value, nil if it has none yet.
	Get(ctx context.Context, name string) (StoredSecret, error)
	// Put makes value the current one if the secret has not changed since current was read.
	Put(ctx context.Context, current StoredSecret, value []byte) error
}

// readSecret reads a secret of the deployment. variable is where its name comes from.
func readSecret(s *session, name, variable string) (StoredSecret, error) {
	if name == "" {
		return StoredSecret{}, usageError("%s is not set: name the deployment's secret, or use --local", variable)
	}
	if err := s.openStores(); err != nil {
		return StoredSecret{}, err
	}
	return s.stores.Secrets.Get(s, name)
}
