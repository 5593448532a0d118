package aws_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"mobilegateway/shared/secret/aws"
)

// stubSecretsManager answers with one output or error, and notes what was asked for.
type stubSecretsManager struct {
	out         *secretsmanager.GetSecretValueOutput
	err         error
	requestedID string
}

func (a *stubSecretsManager) GetSecretValue(_ context.Context, input *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	a.requestedID = sdk.ToString(input.SecretId)
	return a.out, a.err
}

func TestFetch(t *testing.T) {
	down := errors.New("service is down")
	cases := []struct {
		name    string
		api     *stubSecretsManager
		want    string
		version string
		fails   bool
	}{
		{"string", &stubSecretsManager{out: &secretsmanager.GetSecretValueOutput{SecretString: sdk.String("s"), VersionId: sdk.String("v1")}}, "s", "v1", false},
		{"binary", &stubSecretsManager{out: &secretsmanager.GetSecretValueOutput{SecretBinary: []byte("b")}}, "b", "", false},
		{"empty", &stubSecretsManager{out: &secretsmanager.GetSecretValueOutput{SecretString: sdk.String("")}}, "", "", true},
		{"nothing", &stubSecretsManager{out: &secretsmanager.GetSecretValueOutput{}}, "", "", true},
		{"error", &stubSecretsManager{err: down}, "", "", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			value, err := aws.New(c.api).Fetch(t.Context(), "operators")
			if (err != nil) != c.fails || string(value.Bytes) != c.want || value.Version != c.version {
				t.Fatalf("got %q, %q, %v", value.Bytes, value.Version, err)
			}
			if c.api.requestedID != "operators" {
				t.Errorf("asked for %q", c.api.requestedID)
			}
			if c.api.err != nil && (!errors.Is(err, down) || !strings.HasPrefix(err.Error(), "fetch a secret")) {
				t.Errorf("got %v", err)
			}
		})
	}
}
