package local_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/local"
	"mobilegateway/proof/kits/localtest"
	"mobilegateway/shared/awsclient"
)

// platforms is the operators' secret as a test reads and writes it.
type platforms map[string]struct {
	Current  string                    `json:"current"`
	Accounts map[string]map[string]any `json:"accounts"`
}

// readOperatorSecret returns the platforms and the routes of a run's operators' secret. write replaces its content.
func readOperatorSecret(
	t *testing.T, r *localtest.Gateway,
) (value platforms, routes any, write func(document map[string]any)) {
	t.Helper()
	environment := r.Environment()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	secrets, name := local.Deployment{Client: client}, environment["OPERATOR_CREDENTIALS_SECRET"]
	text, err := secrets.SecretValue(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := errors.Join(json.Unmarshal(text, &value), json.Unmarshal(text, &document)); err != nil {
		t.Fatal(err)
	}
	write = func(document map[string]any) {
		t.Helper()
		next, err := json.Marshal(document)
		if err == nil {
			err = secrets.UpdateSecret(t.Context(), name, text, next)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return value, document["routes"], write
}

// TestOperatorAccountsSurviveRestart adds accounts as gatewayctl operator set does, makes one of them current, and
// starts again, where the sandbox has another port.
func TestOperatorAccountsSurviveRestart(t *testing.T) {
	options := localtest.Options{Dir: t.TempDir()}
	first := localtest.Start(t, options)
	value, _, write := readOperatorSecret(t, first)
	theirs := map[string]any{
		"base_url": "https://orange.example", "access_token": "t", "a_later_field": map[string]any{"n": "1"},
	}
	orange, mtn := value["orange"], value["mtn"]
	orange.Current, orange.Accounts["theirs"] = "theirs", theirs
	mtn.Accounts["second"] = theirs
	value["orange"] = orange
	routes := map[string]any{"mtn": []any{map[string]any{"country": "CI", "operation": "pay", "to": "mtn/second"}}}
	write(map[string]any{"orange": orange, "mtn": mtn, "sandbox": value["sandbox"], "routes": routes})
	first.Close()
	second := localtest.Start(t, options)
	value, keptRoutes, _ := readOperatorSecret(t, second)
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
	if difference := cmp.Diff(any(routes), keptRoutes); difference != "" {
		t.Errorf("the routes differ (-want +got):\n%s", difference)
	}
	if difference := cmp.Diff(theirs, value["orange"].Accounts["theirs"]); difference != "" {
		t.Errorf("the added account differs (-want +got):\n%s", difference)
	}
}
