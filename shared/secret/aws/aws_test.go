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

// api answers with one output or error, and notes what was asked for.
type api struct {
	out   *secretsmanager.GetSecretValueOutput
	err   error
	asked string
}

func (a *api) GetSecretValue(_ context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	a.asked = sdk.ToString(in.SecretId)
	return a.out, a.err
}

func TestFetch(t *testing.T) {
	down := errors.New("service is down")
	cases := []struct {
		name    string
		api     *api
		want    string
		version string
		fails   bool
	}{
		{"string", &api{out: &secretsmanager.GetSecretValueOutput{SecretString: sdk.String("s"), VersionId: sdk.String("v1")}}, "s", "v1", false},
		{"binary", &api{out: &secretsmanager.GetSecretValueOutput{SecretBinary: []byte("b")}}, "b", "", false},
		{"empty", &api{out: &secretsmanager.GetSecretValueOutput{SecretString: sdk.String("")}}, "", "", true},
		{"nothing", &api{out: &secretsmanager.GetSecretValueOutput{}}, "", "", true},
		{"error", &api{err: down}, "", "", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			value, err := aws.New(c.api).Fetch(t.Context(), "operators")
			if (err != nil) != c.fails || string(value.Current) != c.want || value.Version != c.version {
				t.Fatalf("got %q, %q, %v", value.Current, value.Version, err)
			}
			if c.api.asked != "operators" {
				t.Errorf("asked for %q", c.api.asked)
			}
			if c.api.err != nil && (!errors.Is(err, down) || !strings.HasPrefix(err.Error(), "fetch a secret")) {
				t.Errorf("got %v", err)
			}
		})
	}
}
