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

	"mobilegateway/internal/local/secrets"
	"mobilegateway/shared/awsclient"
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

func get(t *testing.T, client *secretsmanager.Client, stage string) string {
	t.Helper()
	out, err := client.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{
		SecretId: aws.String("s"), VersionStage: aws.String(stage),
	})
	if err != nil {
		return ""
	}
	return aws.ToString(out.SecretString)
}

func put(t *testing.T, client *secretsmanager.Client, value string, stages ...string) string {
	t.Helper()
	out, err := client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: aws.String("s"), SecretString: aws.String(value), VersionStages: stages,
	})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.VersionId)
}

func TestRotationWithSDK(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.json")
	client := newClient(t, open(t, path))
	created, err := client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: aws.String("s"), SecretString: aws.String("one"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, client, "AWSCURRENT"); got != "one" {
		t.Errorf("current is %q", got)
	}
	put(t, client, "two")
	current, previous := get(t, client, "AWSCURRENT"), get(t, client, "AWSPREVIOUS")
	if current != "two" || previous != "one" {
		t.Errorf("current %q, previous %q", current, previous)
	}
	pending := put(t, client, "three", "AWSPENDING")
	if got := get(t, client, "AWSCURRENT"); got != "two" {
		t.Errorf("current is %q while three is pending", got)
	}
	described, err := client.DescribeSecret(t.Context(), &secretsmanager.DescribeSecretInput{SecretId: created.ARN})
	if err != nil {
		t.Fatal(err)
	}
	for id, stages := range described.VersionIdsToStages {
		if slices.Contains(stages, "AWSCURRENT") {
			current = id
		}
	}
	_, err = client.UpdateSecretVersionStage(t.Context(), &secretsmanager.UpdateSecretVersionStageInput{
		SecretId: aws.String("s"), VersionStage: aws.String("AWSCURRENT"),
		MoveToVersionId: aws.String(pending), RemoveFromVersionId: aws.String(current),
	})
	if err != nil {
		t.Fatal(err)
	}
	reopened := newClient(t, open(t, path))
	for stage, want := range map[string]string{"AWSCURRENT": "three", "AWSPREVIOUS": "two", "AWSPENDING": "three"} {
		if got := get(t, reopened, stage); got != want {
			t.Errorf("%s is %q, want %q", stage, got, want)
		}
	}
	listed, err := reopened.ListSecrets(t.Context(), &secretsmanager.ListSecretsInput{})
	if err != nil || len(listed.SecretList) != 1 || aws.ToString(listed.SecretList[0].Name) != "s" {
		t.Errorf("list %+v, %v", listed, err)
	}
}

func TestBinaryValuesAndVersionsByID(t *testing.T) {
	client := newClient(t, open(t, filepath.Join(t.TempDir(), "secrets.json")))
	_, err := client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: aws.String("s"), SecretBinary: []byte{0, 255},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String("s")})
	if err != nil || string(got.SecretBinary) != "\x00\xff" || got.CreatedDate == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	id := aws.ToString(got.VersionId)
	put(t, client, "later")
	old, err := client.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{
		SecretId: aws.String("s"), VersionId: aws.String(id),
	})
	if err != nil {
		t.Fatal(err)
	}
	if string(old.SecretBinary) != "\x00\xff" || !slices.Equal(old.VersionStages, []string{"AWSPREVIOUS"}) {
		t.Errorf("the old version has value %q and stages %v", old.SecretBinary, old.VersionStages)
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
	wantErrorKind(t, "a label without a version", err, "ResourceNotFoundException")
	_, err = client.CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: aws.String("s")})
	wantErrorKind(t, "a name that is taken", err, "ResourceExistsException")
	_, err = client.DeleteSecret(t.Context(), &secretsmanager.DeleteSecretInput{SecretId: aws.String("s")})
	wantErrorKind(t, "an unknown operation", err, "UnknownOperationException")
	_, err = client.UpdateSecretVersionStage(t.Context(), &secretsmanager.UpdateSecretVersionStageInput{
		SecretId: aws.String("s"), VersionStage: aws.String("AWSCURRENT"),
		MoveToVersionId: aws.String("20000000-0000-0000-0000-000000000000"),
	})
	wantErrorKind(t, "a label without the version that loses it", err, "InvalidRequestException")
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
	if value := get(t, client, "AWSCURRENT"); value != "first" {
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
	if value := get(t, newClient(t, open(t, path)), "AWSCURRENT"); value != "b" {
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
