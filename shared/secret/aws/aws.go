// Package aws fetches secrets from AWS Secrets Manager. Package secret does the caching.
package aws

import (
	"context"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"mobilegateway/shared/logsafe"
)

// SecretsManager is the part of the Secrets Manager client that Source needs.
type SecretsManager interface {
	GetSecretValue(context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options)) (
		*secretsmanager.GetSecretValueOutput, error)
}

// Source implements secret.Source over Secrets Manager.
type Source struct {
	api SecretsManager
}

// New makes a source over a client.
func New(api SecretsManager) *Source { return &Source{api: api} }

// Fetch reads the version AWSCURRENT of a secret by name or ARN: its string, or its bytes if it has no string. It fails
// if the service does, or if the secret is empty.
func (s *Source) Fetch(ctx context.Context, id string) ([]byte, error) {
	output, err := s.api.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: sdk.String(id)})
	if err != nil {
		return nil, logsafe.Errorf("fetch a secret: %w", err)
	}
	content := output.SecretBinary
	if output.SecretString != nil {
		content = []byte(*output.SecretString)
	}
	if len(content) == 0 {
		return nil, logsafe.New("fetch a secret: it is empty; store a value")
	}
	return content, nil
}
