package accounts_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
)

// statusServer is an operator's server that has no orders and records the last request.
type statusServer struct {
	*httptest.Server
	lastRequest string
}

func newStatusServer(t *testing.T) *statusServer {
	l := &statusServer{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.lastRequest = r.Method + " " + r.RequestURI + " " + string(body)
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(l.Close)
	return l
}

// The tool looks up statuses in the protocol of each platform's own driver, as the functions do. The guide to a new
// operator runs this test with a driver of its own.
func TestOperatorCheckUsesEachProtocol(t *testing.T) {
	const checkOrder = "check-gatewayctl_1"
	for _, name := range operator.Platforms() {
		t.Run(name, func(t *testing.T) {
			row, _ := operator.FindCapabilities(name)
			_, served := drivers.NewDirectory(nil, nil, nil).AccountFields(name)
			if !served || !row.HasStatusLookup {
				t.Skip("it has no driver yet, or no status lookup")
			}
			server, d := newStatusServer(t), gatewayctltest.New(t)
			e := d.MustReadEntry(d.AddUnknownPayment(d.Onboard("ShopA")))
			e.Route.Operator, e.Request.Channel, e.Route.Country = row.Reach[0].Operator, row.Channels[0],
				row.Countries()[0]
			e.Route.Account, e.DriverData, e.Amount.AsSent = name+"/a1", "key1", "1"
			d.Ledger.Overwrite(e)
			d.UseAccount(name, "a1", server.URL, "t")
			own, _ := drivers.NewDirectory(secret.Static(d.Input), nil, d.Clock()).StatusLookup(e)
			probe := e.Clone()
			probe.ID, probe.DriverData = checkOrder, checkOrder
			probe.Route.UpstreamKey, _ = operator.NewPaymentKey(row.KeyForm, checkOrder, strings.NewReader(checkOrder))
			for line, entry := range map[string]*ledger.Entry{
				"operator check " + name: probe, "unknown resolve pay " + e.ID: e,
			} {
				call := operator.StatusCall{Call: operator.NewCall(entry), Channel: e.Request.Channel, Lang: "en",
					Amount: "1"}
				own.LookUpPayment(t.Context(), call)
				expected := server.lastRequest
				server.lastRequest = ""
				d.Exec(line)
				if expected == "" || server.lastRequest != expected {
					t.Errorf("%s sent %q, want %q", line, server.lastRequest, expected)
				}
			}
		})
	}
}

func TestOperators(t *testing.T) {
	address, methods := gatewayctltest.NewTokenServer(t)
	d := gatewayctltest.New(t)
	good, bad := gatewayctltest.NewAccount(t, "orange", address, "good"),
		gatewayctltest.NewAccount(t, "orange", address, "bad")
	d.Input = strings.Replace(gatewayctltest.CredentialsOf(t, "orange", "a1", good), "orange", "Orange", 1)
	d.Apply("operator set -")
	d.MustRun("operator check", nil)
	d.Input = gatewayctltest.CredentialsOf(t, "mtn", "m", good)
	d.Apply("operator set -")
	d.Input = gatewayctltest.CredentialsOf(t, "orange", "a2", bad)
	d.Apply("operator set -")
	d.ExpectJSON("merged accounts", "operator list", []accounts.AccountView{
		{Operator: "mtn", Account: "m", Current: true, BaseURL: address}, {Operator: "orange", Account: "a1",
			Current: false, BaseURL: address}, {Operator: "orange", Account: "a2", Current: true, BaseURL: address},
	})
	code, out, stderr := d.Exec("operator check")
	if code != gatewayctl.ExitFailed || strings.Count(out, " true ") < 8 || strings.Count(out, "responded 401 ") != 4 ||
		strings.Contains(out+stderr, "good") || strings.Contains(out+stderr, "bad") {
		t.Errorf("check: exit %d, %s%s", code, out, stderr)
	}
	d.MustRun("operator check mtn", nil)
	d.Equal("what the checks sent", len(methods), 1)
	d.Equal("lookups for five checked accounts", methods[http.MethodGet], 5)
	d.ExpectExit("operator check sandbox", gatewayctl.ExitFailed, "no credentials")
	d.ExpectExit("operator set /nowhere/file", gatewayctl.ExitUsage, "/nowhere/file")
}

// A check names the operation that an account cannot serve, and the countries without a sender.
func TestOperatorCheckIsByOperation(t *testing.T) {
	address, _ := gatewayctltest.NewTokenServer(t)
	d, account := gatewayctltest.New(t), gatewayctltest.NewAccount(t, "sandbox", address, "good")
	delete(account, "service_id") // stored by an earlier version
	delete(account, "user_sms.sender.CD")
	account["contact_id"] = "v\n"
	d.Vault.Values["operators"] = []byte(gatewayctltest.CredentialsOf(t, "sandbox", "a1", account))
	results, _ := gatewayctltest.QueryExit[[]accounts.OperationCheck](d, "operator check", gatewayctl.ExitFailed)
	got := map[string]string{}
	for _, r := range results {
		got[r.Operation] = r.Error
		d.Equal(r.Operation, r.OK, r.Error == "")
	}
	d.Equal("errors", got, map[string]string{
		"charge": "service_id is missing", "pay": "",
		"sms":      "contact_id has spaces at its ends, or characters that are not printable ASCII",
		"user-sms": "user_sms.sender is missing for CD",
	})
}

// A file is read strictly: each fault is named, and nothing is changed.
func TestOperatorSetIsStrict(t *testing.T) {
	d := gatewayctltest.New(t)
	d.UseSandboxOperator()
	before := string(d.Vault.Values["operators"])
	for text, want := range map[string]string{
		`{"other":{"current":"a"}}`:                                                  `"other"`,
		`{"sandbox":{"current":"a9"}}`:                                               "sandbox.current",
		`{"sandbox":{"currentt":"a1"}}`:                                              "sandbox.currentt: unknown field",
		`{"sandbox":{"accounts":{"a1":{"acess_token":"x"}}}}`:                        "a1.acess_token: unknown field",
		`{"sandbox":{"accounts":{"a1":{"Access_Token":"x"}}}}`:                       "a1.Access_Token: unknown field",
		`{"sandbox":{"accounts":{"a1":{"access_token":7}}}}`:                         "a1.access_token: is not a text",
		`{"sandbox":{"accounts":{"a1":{"access_token":null}}}}`:                      "a1.access_token: is not a text",
		`{"sandbox":{"accounts":{"a1":{"access_token":{}}}}}`:                        "a1.access_token: is not a text",
		`{"sandbox":{"accounts":{"a1":{"access_token":""}}}}`:                        "a1.access_token: is empty",
		`{"sandbox":{"accounts":{"a1":{"access_token":"Bearer x"}}}}`:                "has a space",
		`{"sandbox":{"accounts":{"a1":{"user_sms":"x"}}}}`:                           "a1.user_sms: is not an object",
		`{"sandbox":{"accounts":{"a1":{"user_sms.gw_token":"x"}}}}`:                  `"user_sms.gw_token"`,
		`{"sandbox":{"accounts":{"a1":{"user_sms":{"sender":{"ci":"tel:+2251"}}}}}}`: "sender.CI|",
		`{"sandbox":{"accounts":{"a1":{"user_sms":{"sender":{"CI":"2251"}}}}}}`:      "sender.CI: is not a sender",
		`{"sandbox":{"accounts":{"a1":"x"}}}`:                                        "accounts.a1: is not an object",
		`{"sandbox":{"accounts":[]}}`:                                                "accounts: is not an object",
		`{"sandbox":{"accounts":{"":{}}}}`:                                           "the id",
		`{"sandbox":{"current":1}}`:                                                  "sandbox.current: is not the id",
		`{"sandbox":{},"SANDBOX":{}}`:                                                "twice",
		`{"sandbox":{"current":"a1","current":"a1"}}`:                                "sandbox.current",
		`{"sandbox":{"current":"a2","accounts":{"a2":{"access_token":"x"}}}}`: "a2 is incomplete: " +
			"base_url is missing; service_id is missing",
		`{SECRET`: "JSON object",
		`[]`:      "JSON object",
		` `:       "empty",
	} {
		d.Input = text
		d.ExpectBoth("operator set -", gatewayctl.ExitUsage, want)
	}
	d.Input = `{"sandbox":{"accounts":{"a1":{"base_url":"http://hunter2@127.0.0.1:1","service_id":"hunter2 "}}}}`
	d.ExpectWithout("operator set -", gatewayctl.ExitUsage, "hunter2") // an error quotes no value
	d.Equal("the credentials", string(d.Vault.Values["operators"]), before)
}

// A file may name a part of an account: the rest stays, also what this version does not know.
func TestOperatorSetMergesFields(t *testing.T) {
	d := gatewayctltest.New(t)
	account := gatewayctltest.NewAccount(t, "sandbox", "https://op.example", "t1")
	account["later.field"] = "kept"
	d.Vault.Values["operators"] = []byte(gatewayctltest.CredentialsOf(t, "sandbox", "a1", account))
	for _, input := range []string{`{}`, `{"sandbox":{"current":"a1","accounts":{"a1":{"access_token":"t1"}}}}`} {
		d.Input = input
		d.ExpectBoth("operator set -", gatewayctl.ExitFailed, "nothing changes")
	}
	d.Equal("audit records of no change", len(d.Audit.Records), 0)
	d.Input = `{"sandbox":{"accounts":{"a1":{"access_token":"t2","base_url":"https://op.example",
		"user_sms":{"gw_token":"v","sender":{"SN":"tel:+2211"},"sender_name":"Payments"}}}}}`
	want := []accounts.CredentialChange{
		{Operator: "sandbox", Account: "a1", Field: "access_token", From: "(secret)", To: "(secret, changed)"},
		{Operator: "sandbox", Account: "a1", Field: "user_sms.gw_token", From: "(secret)", To: "(secret, not changed)"},
		{Operator: "sandbox", Account: "a1", Field: "user_sms.sender.SN", From: "tel:+2250000", To: "tel:+2211"},
		{Operator: "sandbox", Account: "a1", Field: "user_sms.sender_name", From: "v", To: "Payments"},
	}
	d.ExpectJSON("the difference", "operator set -", want)
	d.Apply("operator set -")
	maps.Copy(account, map[string]string{
		"access_token": "t2", "user_sms.sender.SN": "tel:+2211", "user_sms.sender_name": "Payments",
	})
	d.Equal("the account", credentials.ReadFields(storedAccount(d, "sandbox", "a1")), account)
	d.ExpectOutput("audit", "sandbox a1: access_token, user_sms.sender.SN, user_sms.sender_name")
}

func TestRotateToken(t *testing.T) {
	d := gatewayctltest.New(t)
	d.ExpectExit("operator rotate-token sandbox", gatewayctl.ExitFailed, "no account")
	d.UseSandboxOperator()
	d.Input = "hunter2\n"
	d.ExpectExit("operator rotate-token sandbox --account a9", gatewayctl.ExitFailed, `no account "a9"`)
	d.ExpectExit("operator rotate-token other", gatewayctl.ExitFailed, "no account")
	d.ExpectOutput("operator rotate-token Sandbox", "access_token", "(secret, changed)")
	d.Apply("operator rotate-token sandbox")
	account := gatewayctltest.NewAccount(t, "sandbox", "http://127.0.0.1:1", "hunter2")
	d.Equal("the account", credentials.ReadFields(storedAccount(d, "sandbox", "a1")), account)
	d.ExpectBoth("operator rotate-token sandbox", gatewayctl.ExitFailed, "nothing changes")
	for input, want := range map[string]string{"": "empty", "Bearer hunter2": "has a space", `{"a":1}`: "JSON"} {
		d.Input = input
		d.ExpectBoth("operator rotate-token sandbox -", gatewayctl.ExitUsage, want)
	}
	delete(account, "service_id") // stored by an earlier version
	d.Vault.Values["operators"] = []byte(gatewayctltest.CredentialsOf(t, "sandbox", "a1", account))
	d.Input = "renewed"
	d.ExpectBoth("operator rotate-token sandbox", gatewayctl.ExitDone, "a1 is incomplete: service_id is missing")
	d.ExpectOutput("audit", "rotate an operator's token")
	d.ExpectWithout("audit", gatewayctl.ExitDone, "hunter2")
}

// The dry run tries the new token by a status lookup, and only warns: --yes stores what the person decided.
func TestRotateTokenTriesTheToken(t *testing.T) {
	address, methods := gatewayctltest.NewTokenServer(t)
	d := gatewayctltest.New(t)
	d.Vault.Values["operators"] = []byte(gatewayctltest.CredentialsOf(t, "sandbox", "a1",
		gatewayctltest.NewAccount(t, "sandbox", address, "old")))
	for token, want := range map[string]string{"good": "accepts the new token", "mistyped": "Warning: a status"} {
		d.Input = token
		d.ExpectExit("operator rotate-token sandbox", gatewayctl.ExitDone, want)
		d.ExpectWithout("operator rotate-token sandbox", gatewayctl.ExitDone, token+"\n")
	}
	d.Equal("calls of the operator", methods, map[string]int{http.MethodGet: 4})
	d.Apply("operator rotate-token sandbox")
	d.Equal("calls with --yes", methods[http.MethodGet], 4)
}

// decision "operator-credentials": an account in use is neither moved to another contract nor dropped.
func TestAccountInUse(t *testing.T) {
	const moved = `{"sandbox":{"accounts":{"a1":{"base_url":"http://127.0.0.1:2"}}}}`
	replaced := gatewayctltest.CredentialsOf(t, "sandbox", "a2",
		gatewayctltest.NewAccount(t, "sandbox", "http://127.0.0.1:2", "t"))
	for name, c := range map[string]struct {
		use  func(d *gatewayctltest.Tool, shop merchants.Onboarding)
		want string // "" if both changes are made
	}{
		"not used": {func(*gatewayctltest.Tool, merchants.Onboarding) {}, ""},
		"final": {func(d *gatewayctltest.Tool, shop merchants.Onboarding) { d.AddDeliveredPayment(shop, 1, d.Now) },
			""},
		"unknown payment": {func(d *gatewayctltest.Tool, shop merchants.Onboarding) { d.AddUnknownPayment(shop) },
			"1 transaction that may still call the operator, such as payment ShopA_1"},
		"unknown charge": {func(d *gatewayctltest.Tool, shop merchants.Onboarding) {
			e := d.MustReadEntry(d.AddUnknownCharge(shop, "c1"))
			e.Route.Account, e.Route.Operator, e.Poll.At = "a1", "sandbox", d.Now.Add(24*time.Hour)
			e.Reschedule()
			d.Ledger.Overwrite(e)
		}, "such as charge"},
		"SMS due to the payer": {func(d *gatewayctltest.Tool, shop merchants.Onboarding) {
			e := d.AddDeliveredPayment(shop, 1, d.Now)
			e.UserSMS.State, e.UserSMS.At = ledger.UserSMSDue, d.Now.Add(time.Minute)
			e.Reschedule()
			d.Ledger.Overwrite(e)
		}, "such as payment ShopA_1"},
		"changed a minute ago": {func(d *gatewayctltest.Tool, _ merchants.Onboarding) {
			d.Input = `{"sandbox":{"accounts":{"a2":{"user_sms":{"sender_name":"Other"}}}}}`
			d.Now = d.Now.Add(time.Minute)
			d.Apply("operator set -")
			d.Now = d.Now.Add(-time.Minute)
		}, "try again then"},
	} {
		t.Run(name, func(t *testing.T) {
			d, shop := gatewayctltest.NewShop(t)
			d.UseSandboxOperator()
			d.Input = moved
			d.ExpectBoth("operator set -", gatewayctl.ExitFailed,
				"it is current, and merchant ShopA may use the operator")
			d.Input = replaced
			d.ExpectBoth("operator set - --replace", gatewayctl.ExitFailed, "cannot be dropped: it is current")
			d.Apply("operator set -")
			d.Now = d.Now.Add(time.Minute)
			c.use(d, shop)
			d.Now = d.Now.Add(4*time.Minute + time.Second)
			for input, line := range map[string]string{moved: "operator set -", replaced: "operator set - --replace"} {
				d.Input = input
				if c.want == "" {
					d.MustRun(line, nil)
				} else {
					d.ExpectBoth(line, gatewayctl.ExitFailed, c.want)
				}
			}
			d.Input = `{"sandbox":{"accounts":{"a1":{"access_token":"renewed"}}}}`
			d.Apply("operator set -")
		})
	}
}

// An entry that becomes due earlier while the due index is read, page by page, still counts: it must not lose its
// account.
func TestAccountOfAMovedEntryIsNotDropped(t *testing.T) {
	const shard = 0
	d, shop := gatewayctltest.NewShop(t)
	d.UseSandboxOperator()
	d.Input = gatewayctltest.CredentialsOf(t, "sandbox", "a2",
		gatewayctltest.NewAccount(t, "sandbox", "http://127.0.0.1:2", "t"))
	d.Apply("operator set -")
	d.Now = d.Now.Add(5 * time.Minute)
	numbers := []int{}
	for number := 1; len(numbers) <= ledgerdynamo.MaxPage; number++ {
		key := ledger.Key{Kind: ledger.Payment, ID: fmt.Sprintf("%s_%d", shop.Name, number)}
		if ledger.DueShard(key) == shard {
			numbers = append(numbers, number)
		}
	}
	for _, number := range numbers[1:] {
		d.AddDeliveredPayment(shop, number, d.Now, func(e *ledger.Entry) {
			e.Outbox.Waiting = e.Outbox.Delivered
			e.Outbox.Waiting[0].NextAttemptAt, e.Outbox.Delivered = d.Now.Add(time.Hour), nil
		})
	}
	moved := d.AddPendingPayment(shop, numbers[0], d.Now, func(e *ledger.Entry) {
		e.Poll.At = d.Now.Add(2 * time.Hour)
	})
	d.Ledger.SetCrashPoint("after "+string(storetest.DueKeys), func() { // the first page has been read
		moved.Poll.At = d.Now
		moved.Reschedule()
		d.Ledger.Overwrite(moved)
	})
	d.ExpectFailed("operator set - --replace", "such as payment "+moved.ID)
	if dueAt := d.MustReadEntry(moved.Key).DueAt; !dueAt.Equal(ledger.Timestamp(d.Now)) {
		t.Errorf("the entry is due at %s: it was not moved", dueAt)
	}
}

// An entry needs its account while it may still be sent, retried or looked up, or while its payer's SMS is due.
func TestMayCallOperator(t *testing.T) {
	for name, c := range map[string]struct {
		entry ledger.Entry
		want  bool
	}{
		"reserved SMS": {ledger.Entry{Call: ledger.Call{State: ledger.Reserved}}, true},
		"unknown SMS":  {ledger.Entry{Call: ledger.Call{State: ledger.Unknown}}, true},
		"sent SMS": {ledger.Entry{
			Call: ledger.Call{State: ledger.Done}, Progress: ledger.Progress{Status: ledger.MessageWaiting},
		}, false},
		"refused charge": {ledger.Entry{Call: ledger.Call{State: ledger.Refused}}, false},
		"pending payment": {ledger.Entry{
			Call: ledger.Call{State: ledger.Done}, Progress: ledger.Progress{Status: ledger.Pending},
		}, true},
		"successful payment": {ledger.Entry{
			Call: ledger.Call{State: ledger.Done}, Progress: ledger.Progress{Status: ledger.Successful},
		}, false},
		"released payment": {ledger.Entry{
			Call: ledger.Call{State: ledger.Released}, Progress: ledger.Progress{Status: ledger.Pending},
		}, false},
		"released payment, claim": {
			ledger.Entry{
				Call:     ledger.Call{State: ledger.Released},
				Progress: ledger.Progress{Claim: ledger.Claim{Status: ledger.Successful}},
			}, true,
		},
		"successful payment, SMS": {ledger.Entry{
			Progress: ledger.Progress{Status: ledger.Successful}, UserSMS: ledger.UserSMS{State: ledger.UserSMSDue},
		}, true},
		"successful payment, sent": {ledger.Entry{
			Progress: ledger.Progress{Status: ledger.Successful}, UserSMS: ledger.UserSMS{State: ledger.UserSMSSent},
		}, false},
	} {
		c.entry.Kind = ledger.SMS
		switch {
		case strings.Contains(name, "payment"):
			c.entry.Kind = ledger.Payment
		case strings.Contains(name, "charge"):
			c.entry.Kind = ledger.Charge
		}
		gatewayctltest.Equal(t, name, entries.MayCallOperator(&c.entry), c.want)
	}
}
