package deployment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secrettypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/counts/daycount"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/circuit"
	circuitdynamo "mobilegateway/shared/circuit/dynamo"
	"mobilegateway/shared/dailyamount"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/limit"
	limitdynamo "mobilegateway/shared/limit/dynamo"
	"mobilegateway/shared/localhost"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/shared/pause"
	webhookdynamo "mobilegateway/shared/webhook/dynamo"
)

// secretsManagerStore is a SecretStore in Secrets Manager.
type secretsManagerStore struct{ client *secretsmanager.Client }

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
	sum := sha256.Sum256([]byte(name + "\x00" + versions["AWSCURRENT"] + "\x00" + versions["AWSPREVIOUS"]))
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
		return SecretChangedError(current.Name)
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

// Connect opens a deployment's stores by the variables of the AWS SDKs: AWS_REGION, the credentials unless env has
// them, and AWS_ENDPOINT_URL_* for a local run. It sends no request.
func Connect(env System, p Names) (*Stores, error) {
	if p.LedgerTable == "" || p.MerchantTable == "" {
		return nil, output.UsageError("LEDGER_TABLE and MERCHANT_TABLE are not set: name the stack by --stack, " +
			"or the tables, or use --local")
	}
	client, err := awsclient.New(env.Getenv)
	if err != nil {
		return nil, output.UsageError("%w", err)
	}
	config := client.Config()
	if env.Credentials != nil {
		config.Credentials = env.Credentials
	}
	tables := dynamodb.NewFromConfig(config, func(o *dynamodb.Options) { o.BaseEndpoint = endpointOf(env, "DYNAMODB") })
	secrets := secretsmanager.NewFromConfig(config, func(o *secretsmanager.Options) {
		o.BaseEndpoint = endpointOf(env, "SECRETS_MANAGER")
	})
	stores := &Stores{
		Merchants:      merchantdynamo.NewRegistry(tables, p.MerchantTable),
		Ledger:         ledgerdynamo.New(tables, p.LedgerTable), // writes the plain form, which each program reads
		Batches:        ledgerdynamo.NewBatchReader(tables, p.LedgerTable),
		Profiles:       profileReader{batchReader{tables, p.MerchantTable}},
		EndpointHealth: webhookdynamo.New(tables, p.LedgerTable, env.Now),
		Secrets:        secretsManagerStore{secrets},
		Sleep:          pause.For,
	}
	stores.Audit = auditlog.Table{Client: tables, Name: p.MerchantTable}
	stores.connectAudit(config, env, p)
	// Only a refund of a daily amount, the rate of lookups and the circuits need this table. Without it unknown resolve
	// refuses entries that may need a refund, lookups are not limited, and the commands of circuits refuse.
	if p.LimitTable != "" {
		limits := limitdynamo.New(tables, p.LimitTable)
		stores.DailyAmounts = &dailyamount.Counter{Store: limits, Now: env.Now, Rand: env.Rand, Sleep: pause.For}
		stores.LookupRates = limit.NewRateLimiter(limits, env.Now)
		stores.Counts = daycount.Table{Client: tables, Name: p.LimitTable}
		store := circuitdynamo.New(tables, p.LimitTable)
		stores.CircuitForms = circuitReader{batchReader{tables, p.LimitTable}}
		stores.Circuits = &circuit.Writer{Store: store, Now: env.Now, Rand: env.Rand}
	}
	return stores, nil
}

// connectAudit adds the copies of the audit and the caller. A deployment is local if its tables and its secrets are at
// a loopback address. Only there the user of the machine is the caller, and a file may have the copies.
func (s *Stores) connectAudit(config aws.Config, env System, p Names) {
	isLocal := isLoopback(endpointOf(env, "DYNAMODB")) && isLoopback(endpointOf(env, "SECRETS_MANAGER"))
	file := env.Getenv(auditFileVariable)
	switch {
	case isLocal && file != "":
		s.AuditCopies = auditlog.FileCopies{Path: file}
	case p.AuditLogGroup != "":
		logs := cloudwatchlogs.NewFromConfig(config, func(o *cloudwatchlogs.Options) {
			o.BaseEndpoint = endpointOf(env, "CLOUDWATCH_LOGS")
		})
		s.AuditCopies = auditlog.LogCopies{Client: logs, Group: p.AuditLogGroup}
	}
	if isLocal {
		s.Caller = func(context.Context) (string, error) { return "local:" + env.User, nil }
		return
	}
	s.Caller = func(ctx context.Context) (string, error) {
		identity, err := sts.NewFromConfig(config, func(o *sts.Options) {
			if endpointOf(env, "DYNAMODB") != nil { // AWS's own tables trust only AWS's own identities
				o.BaseEndpoint = endpointOf(env, "STS")
			}
		}).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return "", fmt.Errorf("AWS does not confirm who you are: %w", err)
		}
		return aws.ToString(identity.Arn), nil
	}
}

// auditFileVariable has the path of the file with the copies of a local run.
const auditFileVariable = "AUDIT_LOG_FILE"

// endpointOf returns the address of a service from the environment, nil for AWS's own.
func endpointOf(env System, service string) *string {
	address := cmp.Or(env.Getenv("AWS_ENDPOINT_URL_"+service), env.Getenv("AWS_ENDPOINT_URL"))
	if address == "" {
		return nil
	}
	return &address
}

// isLoopback reports whether the host of an address is this machine.
func isLoopback(address *string) bool {
	parsed, err := url.Parse(aws.ToString(address))
	return err == nil && localhost.IsLoopback(parsed.Hostname())
}
