package accounts_test

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/sandbox"
)

// credentialsMutation is a way to spoil a file of credentials.
type credentialsMutation struct {
	name  string
	apply func(document map[string]any)
}

// mutateCredentials returns mutations of each part of a document. The part is missing, misspelt, in another case, of a
// wrong type, empty or another value. It has a space, a line break, or an extra part beside it.
func mutateCredentials(document map[string]any) []credentialsMutation {
	var mutations []credentialsMutation
	add := func(path []string, name string, change func(parent map[string]any, key string)) {
		apply := func(root map[string]any) {
			for _, key := range path[:len(path)-1] {
				root, _ = root[key].(map[string]any)
			}
			change(root, path[len(path)-1])
		}
		mutations = append(mutations, credentialsMutation{strings.Join(path, ".") + " " + name, apply})
	}
	rename := func(to func(string) string) func(map[string]any, string) {
		return func(parent map[string]any, key string) {
			value := parent[key]
			delete(parent, key)
			parent[to(key)] = value
		}
	}
	replace := func(value any) func(map[string]any, string) {
		return func(parent map[string]any, key string) { parent[key] = value }
	}
	var walk func(path []string, object map[string]any)
	walk = func(path []string, object map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(object)) {
			at := append(slices.Clone(path), key)
			add(at, "missing", func(parent map[string]any, key string) { delete(parent, key) })
			add(at, "misspelt", rename(func(key string) string { return key[:len(key)-1] }))
			add(at, "in another case", rename(strings.ToTitle))
			add(at, "with an extra part", func(parent map[string]any, _ string) { parent["extra"] = "x" })
			for _, value := range []any{nil, 7, true, []any{"x"}, map[string]any{"x": "y"}, "", "other", " x", "x\n"} {
				text, _ := json.Marshal(value)
				add(at, "as "+string(text), replace(value))
			}
			if below, isObject := object[key].(map[string]any); isObject {
				walk(at, below)
			}
		}
	}
	walk(nil, document)
	return mutations
}

// credentialsWorld is a deployment whose operator is the real sandbox.
type credentialsWorld struct {
	*gatewayctltest.Tool
	address string
	calls   int
}

func newCredentialsWorld(t *testing.T) *credentialsWorld {
	platform, err := sandbox.New(sandbox.Config{
		Tokens: []string{"good"}, BaseURL: "https://sandbox.example",
		Config: kit.Config{After: func(time.Duration, func()) {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(platform.Handler())
	t.Cleanup(func() {
		server.Close()
		_ = platform.Close()
	})
	return &credentialsWorld{Tool: gatewayctltest.New(t), address: server.URL}
}

// accountFields reads all stored accounts: each field by its operator, account and path, and the current accounts.
func (w *credentialsWorld) accountFields() map[string]string {
	fields := map[string]string{}
	platforms, _ := storedPlatforms(w.Tool)
	for name, platform := range platforms {
		fields[name+"  current"] = platform.Current
		for id, account := range platform.Accounts {
			for path, value := range credentials.ReadFields(account) {
				fields[name+" "+id+" "+path] = value
			}
		}
	}
	return fields
}

// setMutated runs operator set with a mutated file. A refused file changes nothing. An accepted file changes exactly
// the fields that the dry run displayed. It reports whether the file was accepted.
func (w *credentialsWorld) setMutated(t *testing.T, mutated map[string]any) bool {
	text, err := json.Marshal(mutated)
	if err != nil {
		t.Fatal(err)
	}
	w.Input = string(text)
	before := w.accountFields()
	dryCode, displayed, dryError := w.Exec("operator set - --json")
	code, done, failure := w.Exec("operator set - --json" + gatewayctltest.Confirm)
	if code != dryCode || done != displayed {
		t.Fatalf("dry run: exit %d, %s%s; change: exit %d, %s%s", dryCode, displayed, dryError, code, done, failure)
	}
	after := w.accountFields()
	if code != gatewayctl.ExitDone {
		gatewayctltest.Equal(t, "what a refused file changed", after, before)
		return false
	}
	var changes []accounts.CredentialChange
	if err := json.Unmarshal([]byte(displayed), &changes); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		key := c.Operator + " " + c.Account + " " + c.Field
		switch {
		case !strings.HasPrefix(c.To, "(secret"):
			before[key] = c.To
		case c.To != "(secret, not changed)":
			if before[key] == after[key] {
				t.Errorf("%s was displayed as changed", key)
			}
			before[key] = after[key]
		}
	}
	gatewayctltest.Equal(t, "what an accepted file changed, beyond what was displayed", after, before)
	return true
}

// checkNeverBlamed makes a correct charge, payment and SMS: they succeed, or the fault is the gateway's own.
func (w *credentialsWorld) checkNeverBlamed(t *testing.T) (succeeded int) {
	driver, _, _ := drivers.NewDirectory(secret.Static(w.Vault.Values["operators"]), nil, w.Clock()).Driver("sandbox")
	id, err := driver.FindAccount(t.Context(), "sandbox", "")
	if err != nil && fault.FromError(err).Kind != fault.IntegrationRejected {
		t.Error(err)
	}
	w.calls++
	charge, sms := operatortest.SampleCharge("sandbox", id), operatortest.SampleSMS("sandbox", id)
	payment := operatortest.SamplePay("sandbox", id, "web")
	for _, call := range []*operator.Call{&charge.Call, &sms.Call, &payment.Call} {
		call.Platform = "sandbox"
	}
	for _, key := range []*string{&charge.UpstreamKey, &charge.ReferenceCode, &sms.UpstreamKey, &payment.UpstreamKey} {
		*key += strconv.Itoa(w.calls)
	}
	for name, result := range map[string]operator.Result{
		"charge": operator.Charge(t.Context(), driver, charge), "sms": operator.SendSMS(t.Context(), driver, sms),
		"pay": operator.Pay(t.Context(), driver, payment).Result,
	} {
		switch {
		case result.Outcome == operator.Succeeded:
			succeeded++
		case result.Fault.Kind == fault.OperatorError:
			t.Errorf("%s: the merchant is blamed: %v", name, result.Fault)
		}
	}
	return succeeded
}

// A mutated file is refused, or does exactly what the displayed difference says. No mutation makes our own mistake look
// like a mistake of a merchant's correct request.
func TestMutatedCredentials(t *testing.T) {
	parse := func(text string) (document map[string]any) {
		_ = json.Unmarshal([]byte(text), &document) // our own text
		return document
	}
	mutations, accepted := 0, 0
	for _, id := range []string{"a1", "a2"} { // the stored account, and a new one
		w := newCredentialsWorld(t)
		account := gatewayctltest.NewAccount(t, "sandbox", w.address, "good")
		stored := gatewayctltest.CredentialsOf(t, "sandbox", "a1", account)
		account["user_sms.sender_name"] = "New name"
		for path := range account {
			if strings.HasPrefix(path, "user_sms.sender.") && path != "user_sms.sender.CI" {
				delete(account, path)
			}
		}
		file := gatewayctltest.CredentialsOf(t, "sandbox", id, account)
		cases := append(mutateCredentials(parse(file)), credentialsMutation{"unchanged", func(map[string]any) {}})
		for _, mutation := range cases {
			mutations++
			t.Run(id+" "+mutation.name, func(t *testing.T) {
				w.Vault.Values["operators"], w.Audit.Stored = []byte(stored), nil
				document := parse(file)
				mutation.apply(document)
				wasAccepted := w.setMutated(t, document)
				succeeded := w.checkNeverBlamed(t)
				if !wasAccepted && succeeded != 3 {
					t.Errorf("a refused file stopped %d operations", 3-succeeded)
				}
				if wasAccepted {
					accepted++
				}
				if mutation.name == "unchanged" && (!wasAccepted || succeeded != 3) {
					t.Errorf("the good file: accepted %v, %d operations work", wasAccepted, succeeded)
				}
				w.Vault.Values["operators"], _ = json.Marshal(document) // as a person may, past the tool
				w.checkNeverBlamed(t)
			})
		}
	}
	if mutations < 100 || accepted < 10 || accepted > mutations/2 {
		t.Errorf("%d files, %d of them accepted", mutations, accepted)
	}
}

// Without a merchant that may use the operator, a mistake of the first set can be corrected in place.
func TestFirstCredentialsCanBeCorrected(t *testing.T) {
	d := gatewayctltest.New(t)
	d.UseSandboxOperator()
	d.Input = `{"sandbox":{"accounts":{"a1":{"base_url":"https://op.example"}}}}`
	d.Apply("operator set -")
	d.Input = gatewayctltest.CredentialsOf(t, "orange", "a1",
		gatewayctltest.NewAccount(t, "orange", "https://op.example", "t"))
	d.Apply("operator set - --replace")
	d.ExpectJSON("accounts", "operator list",
		[]accounts.AccountView{{Operator: "orange", Account: "a1", Current: true, BaseURL: "https://op.example"}})
}
