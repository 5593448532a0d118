// Package awsclient makes the AWS service clients without the SDK's config loader. Region and credentials come from the
// environment. One HTTP client has tight limits and a small pool of Amazon's own root certificates.
//
// It does not read configuration files, profiles or instance metadata. A function has none of them, and the loader
// costs start-up time and two megabytes of program. Its invariant: every attempt ends within attemptTimeout, so that a
// call with a lost response is retried while the request still has time.
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

// Limits of a call. Three attempts and two backoffs take at most 4.7 s.
const (
	maxAttempts    = 3
	attemptTimeout = 1500 * time.Millisecond
	firstBackoff   = 50 * time.Millisecond // before the second attempt; three times as long before the third
)

// Client has the service clients and their connections. It is safe for concurrent use.
type Client struct {
	// DynamoDB and SecretsManager return the service clients, which are made once, on first use.
	DynamoDB       func() *dynamodb.Client
	SecretsManager func() *secretsmanager.Client

	config           aws.Config
	http             *http.Client
	dynamoDBEndpoint *string // from the environment, nil for the region's own
}

// New makes a client from the environment: AWS_REGION (else AWS_DEFAULT_REGION), the credentials that Lambda sets, and
// AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL_SECRETS_MANAGER or AWS_ENDPOINT_URL for both, as in the SDK's loader. env
// is os.Getenv in a bootstrap. It fails if no region is set or an embedded root is damaged. It sends nothing.
func New(env func(string) string) (*Client, error) {
	region := cmp.Or(env("AWS_REGION"), env("AWS_DEFAULT_REGION"))
	if region == "" {
		return nil, errors.New("AWS_REGION is not set: set it to the region of the tables")
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
	config := aws.Config{Region: region, Credentials: credentials(env), HTTPClient: client, Retryer: newRetryer}
	dynamoDBEndpoint := optionalText(cmp.Or(env("AWS_ENDPOINT_URL_DYNAMODB"), defaultEndpoint))
	secretsManagerEndpoint := optionalText(cmp.Or(env("AWS_ENDPOINT_URL_SECRETS_MANAGER"), defaultEndpoint))
	return &Client{
		config: config, http: client, dynamoDBEndpoint: dynamoDBEndpoint,
		DynamoDB: sync.OnceValue(func() *dynamodb.Client {
			return dynamodb.NewFromConfig(config, func(o *dynamodb.Options) { o.BaseEndpoint = dynamoDBEndpoint })
		}),
		SecretsManager: sync.OnceValue(func() *secretsmanager.Client {
			return secretsmanager.NewFromConfig(config, func(o *secretsmanager.Options) {
				o.BaseEndpoint = secretsManagerEndpoint
			})
		}),
	}, nil
}

// Config returns the configuration for the client of another service. It has no endpoint of the environment.
func (c *Client) Config() aws.Config { return c.config }

// optionalText returns nil for "".
func optionalText(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// credentials reads the environment at each retrieval, because a frozen function may wake with new credentials.
func credentials(env func(string) string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		found := aws.Credentials{
			AccessKeyID:     env("AWS_ACCESS_KEY_ID"),
			SecretAccessKey: env("AWS_SECRET_ACCESS_KEY"),
			SessionToken:    env("AWS_SESSION_TOKEN"),
			Source:          "environment",
		}
		if found.AccessKeyID == "" || found.SecretAccessKey == "" {
			return aws.Credentials{}, errors.New("AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set: set both")
		}
		return found, nil
	})
}

// newRetryer returns the SDK's standard retryer with short backoffs: its own may wait longer than a second, and a
// payment does not have that time. They have no jitter, because a function handles one request at a time.
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

// RunInitTasks runs the tasks of the init phase in parallel (open a connection, fetch a secret) and waits for all of
// them. The joined error is for the log only: the first request repeats failed work.
func RunInitTasks(ctx context.Context, tasks ...func(context.Context) error) error {
	errs := make([]error, len(tasks))
	var group sync.WaitGroup
	for i, task := range tasks {
		group.Go(func() { errs[i] = task(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// OpenDynamoDB opens a connection to DynamoDB and leaves it in the pool for the first call. It sends a plain GET to the
// endpoint, which returns the service's health without any permission. Every response is a success.
func (c *Client) OpenDynamoDB(ctx context.Context) error {
	endpoint, err := dynamodb.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, dynamodb.EndpointParameters{
		Region: aws.String(c.config.Region), Endpoint: c.dynamoDBEndpoint,
	})
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
	defer func() { _ = response.Body.Close() }() // only reading to the end matters
	_, err = io.CopyN(io.Discard, response.Body, maxDrainBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("open DynamoDB: %w", err)
	}
	return nil
}
