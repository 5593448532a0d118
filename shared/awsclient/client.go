// Package awsclient makes the clients of the AWS services that the functions use, by hand: region and credentials from
// the environment, one HTTP client with tight limits, and a small pool of Amazon's own roots.
//
// It does not read configuration files, profiles or instance metadata: a function has none of them, and looking for them
// costs start-up time and two megabytes of program. Its invariant: every attempt ends within attemptTimeout, so that a
// lost answer is asked for again while the request still has time.
package awsclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// Limits of a call. Three attempts and two pauses take 4.7 s at worst.
const (
	maxAttempts    = 3
	attemptTimeout = 1500 * time.Millisecond
	firstBackoff   = 50 * time.Millisecond // before the second attempt; three times as long before the third
)

// Client holds what the service clients share: configuration, connections and endpoints. It is safe for concurrent use.
type Client struct {
	config                 aws.Config
	http                   *http.Client
	dynamoDBEndpoint       string // endpoint from the environment, "" for the region's own
	secretsManagerEndpoint string

	// The service clients are made on first use, and once: a function has several parts that call the same service.
	dynamoDB       func() *dynamodb.Client
	secretsManager func() *secretsmanager.Client
}

// New makes a client from the environment: AWS_REGION (else AWS_DEFAULT_REGION), the credentials that Lambda sets, and
// the endpoints AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL_SECRETS_MANAGER or AWS_ENDPOINT_URL for both, as the SDK's
// own loader reads them. env is os.Getenv in a bootstrap. It fails where no region is set or the embedded roots are
// damaged. Nothing is sent.
func New(env func(string) string) (*Client, error) {
	region := cmp.Or(env("AWS_REGION"), env("AWS_DEFAULT_REGION"))
	if region == "" {
		return nil, errors.New("AWS_REGION is not set")
	}
	roots, err := amazonRoots()
	if err != nil {
		return nil, err
	}
	defaultEndpoint := env("AWS_ENDPOINT_URL")
	client := &http.Client{
		Transport:     newTransport(roots),
		Timeout:       attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c := &Client{
		config: aws.Config{
			Region:      region,
			Credentials: credentials(env),
			HTTPClient:  client,
			Retryer:     newRetryer,
		},
		http:                   client,
		dynamoDBEndpoint:       cmp.Or(env("AWS_ENDPOINT_URL_DYNAMODB"), defaultEndpoint),
		secretsManagerEndpoint: cmp.Or(env("AWS_ENDPOINT_URL_SECRETS_MANAGER"), defaultEndpoint),
	}
	c.dynamoDB, c.secretsManager = sync.OnceValue(c.newDynamoDB), sync.OnceValue(c.newSecretsManager)
	return c, nil
}

// DynamoDB is the client of DynamoDB.
func (c *Client) DynamoDB() *dynamodb.Client { return c.dynamoDB() }

// SecretsManager is the client of Secrets Manager.
func (c *Client) SecretsManager() *secretsmanager.Client { return c.secretsManager() }

func (c *Client) newDynamoDB() *dynamodb.Client {
	return dynamodb.NewFromConfig(c.config, func(o *dynamodb.Options) {
		if c.dynamoDBEndpoint != "" {
			o.BaseEndpoint = aws.String(c.dynamoDBEndpoint)
		}
	})
}

func (c *Client) newSecretsManager() *secretsmanager.Client {
	return secretsmanager.NewFromConfig(c.config, func(o *secretsmanager.Options) {
		if c.secretsManagerEndpoint != "" {
			o.BaseEndpoint = aws.String(c.secretsManagerEndpoint)
		}
	})
}

// credentials reads the environment at each retrieval: a frozen function may wake with new ones.
func credentials(env func(string) string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		found := aws.Credentials{
			AccessKeyID:     env("AWS_ACCESS_KEY_ID"),
			SecretAccessKey: env("AWS_SECRET_ACCESS_KEY"),
			SessionToken:    env("AWS_SESSION_TOKEN"),
			Source:          "environment",
		}
		if found.AccessKeyID == "" || found.SecretAccessKey == "" {
			return aws.Credentials{}, errors.New("AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set")
		}
		return found, nil
	})
}

// newRetryer is the SDK's standard retryer with short pauses: its own may wait a second and more, which a payment has
// no time for. The pauses need no jitter: a function works on one request at a time.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = maxAttempts
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
			if attempt <= 1 {
				return firstBackoff, nil
			}
			return 3 * firstBackoff, nil
		})
	})
}

// RunInitTasks runs the work of the init phase in parallel (open a connection, fetch a secret) and waits for all of it. What
// fails is in the joined error, for the log alone: the first request simply does that work again.
func RunInitTasks(ctx context.Context, tasks ...func(context.Context) error) error {
	errs := make([]error, len(tasks))
	var group sync.WaitGroup
	for i, task := range tasks {
		group.Go(func() { errs[i] = task(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// OpenDynamoDB opens a connection to DynamoDB and leaves it in the pool for the first call: a plain GET of the endpoint,
// which the service answers with its health and for which nobody needs a permission. Any answer will do.
func (c *Client) OpenDynamoDB(ctx context.Context) error {
	params := dynamodb.EndpointParameters{Region: aws.String(c.config.Region)}
	if c.dynamoDBEndpoint != "" {
		params.Endpoint = aws.String(c.dynamoDBEndpoint)
	}
	endpoint, err := dynamodb.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, params)
	if err != nil {
		return fmt.Errorf("resolve the DynamoDB endpoint: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint.URI.String(), nil)
	if err != nil {
		return fmt.Errorf("open DynamoDB: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("open DynamoDB: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // what matters is that it was read to its end
	_, err = io.CopyN(io.Discard, response.Body, maxDrainBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("open DynamoDB: %w", err)
	}
	return nil
}
