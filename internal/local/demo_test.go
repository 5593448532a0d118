package local_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"

	"mobilegateway/internal/localtest"
	"mobilegateway/shared/awsclient"
)

// platforms is the operators' secret as a test reads and writes it.
type platforms map[string]struct {
	Current  string                    `json:"current"`
	Accounts map[string]map[string]any `json:"accounts"`
}

// readOperatorSecret returns a client of a run's secrets, the name of the operators' secret and its value.
func readOperatorSecret(t *testing.T, r *localtest.Gateway) (*secretsmanager.Client, string, platforms) {
	t.Helper()
	environment := r.Environment()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	name := environment["OPERATOR_CREDENTIALS_SECRET"]
	in := &secretsmanager.GetSecretValueInput{SecretId: aws.String(name)}
	stored, err := client.SecretsManager().GetSecretValue(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	var value platforms
	if err := json.Unmarshal([]byte(aws.ToString(stored.SecretString)), &value); err != nil {
		t.Fatal(err)
	}
	return client.SecretsManager(), name, value
}

// TestOperatorAccountsSurviveRestart adds accounts as gatewayctl operator set does, makes one of them current, and
// starts again, where the sandbox has another port.
func TestOperatorAccountsSurviveRestart(t *testing.T) {
	options := localtest.Options{Dir: t.TempDir()}
	first := localtest.Start(t, options)
	client, name, value := readOperatorSecret(t, first)
	theirs := map[string]any{
		"base_url": "https://orange.example", "access_token": "t", "a_later_field": map[string]any{"n": "1"},
	}
	orange, mtn := value["orange"], value["mtn"]
	orange.Current, orange.Accounts["theirs"] = "theirs", theirs
	mtn.Accounts["second"] = theirs
	value["orange"] = orange
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{
		SecretId: aws.String(name), SecretString: aws.String(string(text)),
	})
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	second := localtest.Start(t, options)
	_, _, value = readOperatorSecret(t, second)
	for operator, want := range map[string]struct{ current, added string }{
		"orange": {"theirs", "theirs"}, "mtn": {"local", "second"}, "sandbox": {"local", "local"},
	} {
		got := value[operator]
		if got.Current != want.current {
			t.Errorf("the current account of %s is %s, want %s", operator, got.Current, want.current)
		}
		if got.Accounts[want.added] == nil {
			t.Errorf("%s lost its account %s", operator, want.added)
		}
		if address, sandbox := got.Accounts["local"]["base_url"], second.Info().SandboxURL; address != sandbox {
			t.Errorf("the local account of %s has the address %v, want the sandbox at %s", operator, address, sandbox)
		}
	}
	if difference := cmp.Diff(theirs, value["orange"].Accounts["theirs"]); difference != "" {
		t.Errorf("the added account differs (-want +got):\n%s", difference)
	}
}
