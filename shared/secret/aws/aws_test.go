package aws_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/secret/aws"
)

// stubSecretsManager returns one output or error, and records the requested id.
type stubSecretsManager struct {
	out         *secretsmanager.GetSecretValueOutput
	err         error
	requestedID string
}

func (a *stubSecretsManager) GetSecretValue(
	_ context.Context, input *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options),
) (*secretsmanager.GetSecretValueOutput, error) {
	a.requestedID = sdk.ToString(input.SecretId)
	return a.out, a.err
}

func TestFetch(t *testing.T) {
	down := errors.New("service is down")
	type output = secretsmanager.GetSecretValueOutput
	cases := []struct {
		name string
		out  *output
		err  error
		want []byte // nil: Fetch fails
	}{
		{"string", &output{SecretString: sdk.String("s")}, nil, []byte("s")},
		{"binary", &output{SecretBinary: []byte("b")}, nil, []byte("b")},
		{"empty", &output{SecretString: sdk.String("")}, nil, nil},
		{"neither", &output{}, nil, nil},
		{"error", nil, down, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			api := &stubSecretsManager{out: c.out, err: c.err}
			value, err := aws.New(api).Fetch(t.Context(), "operators")
			if diff := cmp.Diff(c.want, value); diff != "" {
				t.Errorf("the value differs (-want +got):\n%s", diff)
			}
			if fails := c.want == nil; (err != nil) != fails || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("error %v, want one: %v", err, fails)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "fetch a secret") {
				t.Errorf("the error %q does not name the action", err)
			}
			if api.requestedID != "operators" {
				t.Errorf("Fetch requested %q", api.requestedID)
			}
		})
	}
}
