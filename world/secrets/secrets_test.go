package secrets_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/awsclient"
	"mobilegateway/world/secrets"
)

// ids returns a generator of version ids in order, in the service's length.
func ids() func() string {
	var last atomic.Int64
	return func() string {
		text := strconv.FormatInt(last.Add(1), 10)
		return "00000000-0000-0000-0000-000000000000"[:36-len(text)] + text
	}
}

func open(t *testing.T, path string) *secrets.Store {
	t.Helper()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	store, err := secrets.Open(path, func() time.Time { return now }, ids())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// openWithSecret returns a store with a secret s without a value, and a client of it.
func openWithSecret(t *testing.T, path string) (*secrets.Store, *secretsmanager.Client) {
	t.Helper()
	store := open(t, path)
	if err := store.Ensure("s"); err != nil {
		t.Fatal(err)
	}
	return store, newClient(t, store)
}

// newClient returns the SDK's client, configured like the functions'.
func newClient(t *testing.T, store *secrets.Store) *secretsmanager.Client {
	t.Helper()
	server := httptest.NewServer(store)
	t.Cleanup(server.Close)
	environment := map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": server.URL,
	}
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	return client.SecretsManager()
}

// get returns the current value, "" after an error.
func get(t *testing.T, client *secretsmanager.Client) string {
	t.Helper()
	out, err := client.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String("s")})
	if err != nil {
		return ""
	}
	return aws.ToString(out.SecretString)
}

func put(t *testing.T, client *secretsmanager.Client, value string) string {
	t.Helper()
	out, err := client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: aws.String("s"), SecretString: aws.String(value),
	})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.VersionId)
}

func TestRotationWithSDK(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.json")
	_, client := openWithSecret(t, path)
	put(t, client, "one")
	second, third := put(t, client, "two"), put(t, client, "three")
	client = newClient(t, open(t, path))
	out, err := client.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String("s")})
	if err != nil {
		t.Fatal(err)
	}
	if aws.ToString(out.SecretString) != "three" || aws.ToString(out.VersionId) != third ||
		!slices.Equal(out.VersionStages, []string{"AWSCURRENT"}) || out.CreatedDate == nil {
		t.Errorf("the current version is %+v, want three as %s", out, third)
	}
	described, err := client.DescribeSecret(t.Context(), &secretsmanager.DescribeSecretInput{SecretId: out.ARN})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{second: {"AWSPREVIOUS"}, third: {"AWSCURRENT"}}
	if difference := cmp.Diff(want, described.VersionIdsToStages); difference != "" {
		t.Errorf("the stages differ (-want +got):\n%s", difference)
	}
}

func TestServiceErrors(t *testing.T) {
	_, client := openWithSecret(t, filepath.Join(t.TempDir(), "secrets.json"))
	put(t, client, "value")
	first, err := client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: aws.String("s"), SecretString: aws.String("x"),
		ClientRequestToken: aws.String("10000000-0000-0000-0000-000000000000"),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: aws.String("s"), SecretString: aws.String("x"), ClientRequestToken: first.VersionId,
	})
	if err != nil {
		t.Errorf("the same request again: %v", err)
	}
	put(t, client, "later")
	_, err = client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: aws.String("s"), SecretString: aws.String("y"), ClientRequestToken: first.VersionId,
	})
	wantErrorKind(t, "a token with another value", err, "ResourceExistsException")
	_, err = client.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String("none")})
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) {
		t.Errorf("the error of an unknown secret is %v, want ResourceNotFoundException", err)
	}
	_, err = client.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{
		SecretId: aws.String("s"), VersionStage: aws.String("AWSPENDING"),
	})
	wantErrorKind(t, "a parameter that is not supported", err, "InvalidParameterException")
	_, err = client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{SecretId: aws.String("s")})
	wantErrorKind(t, "a value that is not a text", err, "InvalidParameterException")
	_, err = client.DeleteSecret(t.Context(), &secretsmanager.DeleteSecretInput{SecretId: aws.String("s")})
	wantErrorKind(t, "an unknown operation", err, "UnknownOperationException")
}

func wantErrorKind(t *testing.T, what string, err error, kind string) {
	t.Helper()
	var refused smithy.APIError
	if !errors.As(err, &refused) || refused.ErrorCode() != kind {
		t.Errorf("%s: the error is %v, want %s", what, err, kind)
	}
}

func TestSecretWithoutValue(t *testing.T) {
	store, client := openWithSecret(t, filepath.Join(t.TempDir(), "secrets.json"))
	_, err := client.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String("s")})
	wantErrorKind(t, "no value yet", err, "ResourceNotFoundException")
	put(t, client, "first")
	if err := store.Ensure("s"); err != nil {
		t.Fatal(err)
	}
	if value := get(t, client); value != "first" {
		t.Errorf("Ensure changed the value of a secret that exists to %q", value)
	}
}

func TestFilePersistence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.json")
	_, client := openWithSecret(t, path)
	put(t, client, "a")
	put(t, client, "b")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v, want 0600", info.Mode(), err)
	}
	if value := get(t, newClient(t, open(t, path))); value != "b" {
		t.Errorf("after a restart the value is %q, want b", value)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Open(path, time.Now, ids()); err == nil {
		t.Error("a damaged file was accepted")
	}
}

// TestConcurrentReadsAndWrites: a later call does not change a response. The race detector checks it.
func TestConcurrentReadsAndWrites(t *testing.T) {
	_, client := openWithSecret(t, filepath.Join(t.TempDir(), "secrets.json"))
	put(t, client, "0")
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for n := range 25 {
				var err error
				if i == 0 {
					_, err = client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
						SecretId: aws.String("s"), SecretString: aws.String(strconv.Itoa(n)),
					})
				} else {
					_, err = client.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{
						SecretId: aws.String("s"),
					})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
