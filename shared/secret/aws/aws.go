// Package aws fetches secrets from AWS Secrets Manager. It does not cache: package secret does.
package aws

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"mobilegateway/shared/secret"
)

// SecretsManager is the one call of the Secrets Manager client that is used.
type SecretsManager interface {
	GetSecretValue(ctx context.Context, input *secretsmanager.GetSecretValueInput, options ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// Source is a secret.Source over Secrets Manager.
type Source struct {
	api SecretsManager
}

var _ secret.Source = (*Source)(nil)

// New makes a source over a client (awsclient's Secrets).
func New(api SecretsManager) *Source { return &Source{api: api} }

// Fetch reads the version AWSCURRENT of a secret, by name or ARN: its string, or its bytes where it has no string. It
// fails where the service does, or the secret is empty.
func (s *Source) Fetch(ctx context.Context, id string) (secret.Value, error) {
	output, err := s.api.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: sdk.String(id)})
	if err != nil {
		return secret.Value{}, fmt.Errorf("fetch a secret: %w", err)
	}
	value := secret.Value{Bytes: output.SecretBinary, Version: sdk.ToString(output.VersionId)}
	if output.SecretString != nil {
		value.Bytes = []byte(*output.SecretString)
	}
	if len(value.Bytes) == 0 {
		return secret.Value{}, errors.New("fetch a secret: it is empty")
	}
	return value, nil
}
