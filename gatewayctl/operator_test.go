package gatewayctl

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/secret"
)

// newAccount returns an account of a platform with each field that an operation needs, by their paths.
func newAccount(t *testing.T, platform, baseURL, token string) map[string]string {
	t.Helper()
	schema, err := findAccountSchema(platform)
	if err != nil {
		t.Fatal(err)
	}
	account := map[string]string{}
	for _, field := range schema.fields {
		values := slices.DeleteFunc(sampleValues(), func(value string) bool { return field.Check(value) != nil })
		if len(values) == 0 {
			t.Fatalf("no sample value for %s of %s", field.Path, platform)
		}
		group, each := strings.CutSuffix(field.Path, countrySuffix)
		if !each {
			account[field.Path] = values[0]
			continue
		}
		for _, code := range schema.row.Countries() {
			account[group+"."+code] = values[0]
		}
	}
	if account["path_word"] != "" {
		account["header_prefix"], account["path_word"] = "X-Operator", strings.TrimPrefix(resource.EndUserID, "acr:")
	}
	account["base_url"] = baseURL
	if account["access_token"] != "" {
		account["access_token"] = token
	}
	return account
}

// credentialsOf returns a file with one account, which is the current one.
func credentialsOf(t *testing.T, operatorName, id string, account map[string]string) string {
	t.Helper()
	fields, err := mergeAccount(nil, account)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(credentialsByOperator{operatorName: {id, map[string]json.RawMessage{id: fields}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

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
	for _, name := range operator.Platforms() {
		t.Run(name, func(t *testing.T) {
			schema, err := findAccountSchema(name)
			if err != nil || !schema.row.HasStatusLookup {
				t.Skip("it has no driver yet, or no status lookup")
			}
			server, d := newStatusServer(t), newTestTool(t)
			e := d.mustReadEntry(d.addUnknownPayment(d.onboardShop()))
			row := schema.row
			e.Operator, e.Channel, e.Country = row.Reach[0].Operator, row.Channels[0], row.Countries()[0]
			e.Account, e.Material, e.AmountAsSent = name+"/a1", "key1", "1"
			d.ledger.Overwrite(e)
			d.input = credentialsOf(t, name, "a1", newAccount(t, name, server.URL, "t"))
			d.apply("operator set -")
			own, _ := drivers.NewDirectory(secret.Static(d.input), nil, d.nowFunc()).StatusLookup(e)
			probe := e.Clone()
			probe.ID, probe.Material = checkOrderID, checkOrderID
			probe.UpstreamKey, _ = operator.NewPaymentKey(row.KeyForm, checkOrderID, strings.NewReader(checkOrderID))
			for line, entry := range map[string]*ledger.Entry{
				"operator check " + name: probe, "unknown resolve pay " + e.ID: e,
			} {
				call := operator.StatusCall{Call: operator.NewCall(entry), Channel: e.Channel, Lang: "en", Amount: "1"}
				own.LookUpPayment(t.Context(), call)
				expected := server.lastRequest
				server.lastRequest = ""
				d.run(line)
				if expected == "" || server.lastRequest != expected {
					t.Errorf("%s sent %q, want %q", line, server.lastRequest, expected)
				}
			}
		})
	}
}

// newTokenServer is an operator's server that accepts the token "good" and has no orders. It records the methods.
func newTokenServer(t *testing.T) (address string, methods map[string]int) {
	methods = map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods[r.Method]++
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"requestError":{"serviceException":{"messageId":"SVC0002",` +
			`"text":"Invalid input value for message part %1","variables":["order_id"]}}}`))
	}))
	t.Cleanup(server.Close)
	return server.URL, methods
}

func TestOperators(t *testing.T) {
	address, methods := newTokenServer(t)
	d := newTestTool(t)
	good, bad := newAccount(t, "orange", address, "good"), newAccount(t, "orange", address, "bad")
	d.input = strings.Replace(credentialsOf(t, "orange", "a1", good), "orange", "Orange", 1)
	d.apply("operator set -")
	d.mustRun("operator check", nil)
	d.input = credentialsOf(t, "mtn", "m", good)
	d.apply("operator set -")
	d.input = credentialsOf(t, "orange", "a2", bad)
	d.apply("operator set -")
	checkEqual(t, "merged accounts", query[[]accountView](d, "operator list"), []accountView{
		{"mtn", "m", true, address}, {"orange", "a1", false, address}, {"orange", "a2", true, address},
	})
	code, out, stderr := d.run("operator check")
	if code != ExitFailed || strings.Count(out, " true ") < 8 || strings.Count(out, "401") != 4 ||
		strings.Contains(out+stderr, "good") || strings.Contains(out+stderr, "bad") {
		t.Errorf("check: exit %d, %s%s", code, out, stderr)
	}
	d.mustRun("operator check mtn", nil)
	checkEqual(t, "what the checks sent", len(methods), 1)
	checkEqual(t, "lookups for five checked accounts", methods[http.MethodGet], 5)
	d.expectExit("operator check sandbox", ExitFailed, "no credentials")
	d.expectExit("operator set /nowhere/file", ExitUsage, "/nowhere/file")
}

// A check names the operation that an account cannot serve, and the countries without a sender.
func TestOperatorCheckIsByOperation(t *testing.T) {
	address, _ := newTokenServer(t)
	d, account := newTestTool(t), newAccount(t, "sandbox", address, "good")
	delete(account, "service_id") // stored by an earlier version
	delete(account, "user_sms.sender.CD")
	account["contact_id"] = "v\n"
	d.vault.values["operators"] = []byte(credentialsOf(t, "sandbox", "a1", account))
	code, out, _ := d.run("operator check --json")
	var results []operationCheck
	if err := json.Unmarshal([]byte(out), &results); err != nil || code != ExitFailed {
		t.Fatalf("exit %d, %v in %s", code, err, out)
	}
	got := map[string]string{}
	for _, r := range results {
		got[r.Operation] = r.Error
		checkEqual(t, r.Operation, r.OK, r.Error == "")
	}
	checkEqual(t, "errors", got, map[string]string{
		"charge": "service_id is missing", "pay": "",
		"sms":      "contact_id has spaces at its ends, or characters that are not printable ASCII",
		"user-sms": "user_sms.sender is missing for CD",
	})
}

// A file is read strictly: each fault is named, and nothing is changed.
func TestOperatorSetIsStrict(t *testing.T) {
	d := newTestTool(t)
	d.useSandboxOperator()
	before := string(d.vault.values["operators"])
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
		d.input = text
		d.expectBoth("operator set -", ExitUsage, want)
	}
	d.input = `{"sandbox":{"accounts":{"a1":{"base_url":"http://hunter2@127.0.0.1:1","service_id":"hunter2 "}}}}`
	_, out, stderr := d.run("operator set -")
	if strings.Contains(out+stderr, "hunter2") {
		t.Errorf("an error quotes a value: %s%s", out, stderr)
	}
	checkEqual(t, "the credentials", string(d.vault.values["operators"]), before)
}

// A file may name a part of an account: the rest stays, also what this version does not know.
func TestOperatorSetMergesFields(t *testing.T) {
	d := newTestTool(t)
	account := newAccount(t, "sandbox", "https://op.example", "t1")
	account["later.field"] = "kept"
	d.vault.values["operators"] = []byte(credentialsOf(t, "sandbox", "a1", account))
	for _, input := range []string{`{}`, `{"sandbox":{"current":"a1","accounts":{"a1":{"access_token":"t1"}}}}`} {
		d.input = input
		d.expectBoth("operator set -", ExitFailed, "nothing changes")
	}
	checkEqual(t, "audit records of no change", len(d.audit.records), 0)
	d.input = `{"sandbox":{"accounts":{"a1":{"access_token":"t2","base_url":"https://op.example",
		"user_sms":{"gw_token":"v","sender":{"SN":"tel:+2211"},"sender_name":"Payments"}}}}}`
	want := []credentialChange{
		{Operator: "sandbox", Account: "a1", Field: "access_token", From: "(secret)", To: "(secret, changed)"},
		{Operator: "sandbox", Account: "a1", Field: "user_sms.gw_token", From: "(secret)", To: "(secret, not changed)"},
		{Operator: "sandbox", Account: "a1", Field: "user_sms.sender.SN", From: "tel:+2250000", To: "tel:+2211"},
		{Operator: "sandbox", Account: "a1", Field: "user_sms.sender_name", From: "v", To: "Payments"},
	}
	checkEqual(t, "the difference", query[[]credentialChange](d, "operator set -"), want)
	d.apply("operator set -")
	maps.Copy(account, map[string]string{
		"access_token": "t2", "user_sms.sender.SN": "tel:+2211", "user_sms.sender_name": "Payments",
	})
	checkEqual(t, "the account", credentials.ReadFields(d.storedAccount("sandbox", "a1")), account)
	d.expectOutput("audit", "sandbox a1: access_token, user_sms.sender.SN, user_sms.sender_name")
}

func TestRotateToken(t *testing.T) {
	d := newTestTool(t)
	d.expectExit("operator rotate-token sandbox", ExitFailed, "no account")
	d.useSandboxOperator()
	d.input = "hunter2\n"
	d.expectExit("operator rotate-token sandbox --account a9", ExitFailed, `no account "a9"`)
	d.expectExit("operator rotate-token other", ExitFailed, "no account")
	d.expectOutput("operator rotate-token Sandbox", "access_token", "(secret, changed)")
	d.apply("operator rotate-token sandbox")
	account := newAccount(t, "sandbox", "http://127.0.0.1:1", "hunter2")
	checkEqual(t, "the account", credentials.ReadFields(d.storedAccount("sandbox", "a1")), account)
	d.expectBoth("operator rotate-token sandbox", ExitFailed, "nothing changes")
	for input, want := range map[string]string{"": "empty", "Bearer hunter2": "has a space", `{"a":1}`: "JSON"} {
		d.input = input
		d.expectBoth("operator rotate-token sandbox -", ExitUsage, want)
	}
	delete(account, "service_id") // stored by an earlier version
	d.vault.values["operators"] = []byte(credentialsOf(t, "sandbox", "a1", account))
	d.input = "renewed"
	d.expectBoth("operator rotate-token sandbox", ExitDone, "a1 is incomplete: service_id is missing")
	_, out, stderr := d.run("audit")
	if !strings.Contains(out, "rotate an operator's token") || strings.Contains(out+stderr, "hunter2") {
		t.Errorf("audit: %s%s", out, stderr)
	}
}

// The dry run tries the new token by a status lookup, and only warns: --yes stores what the person decided.
func TestRotateTokenTriesTheToken(t *testing.T) {
	address, methods := newTokenServer(t)
	d := newTestTool(t)
	d.vault.values["operators"] = []byte(credentialsOf(t, "sandbox", "a1", newAccount(t, "sandbox", address, "old")))
	for token, want := range map[string]string{"good": "accepts the new token", "mistyped": "Warning: a status"} {
		d.input = token
		code, out, stderr := d.run("operator rotate-token sandbox")
		if code != ExitDone || !strings.Contains(stderr, want) || strings.Contains(out+stderr, token+"\n") {
			t.Errorf("%s: exit %d, without %q: %s%s", token, code, want, out, stderr)
		}
	}
	checkEqual(t, "calls of the operator", methods, map[string]int{http.MethodGet: 2})
	d.apply("operator rotate-token sandbox")
	checkEqual(t, "calls with --yes", methods[http.MethodGet], 2)
}

// decision "operator-credentials": an account in use is neither moved to another contract nor dropped.
func TestAccountInUse(t *testing.T) {
	const moved = `{"sandbox":{"accounts":{"a1":{"base_url":"http://127.0.0.1:2"}}}}`
	replaced := credentialsOf(t, "sandbox", "a2", newAccount(t, "sandbox", "http://127.0.0.1:2", "t"))
	for name, c := range map[string]struct {
		use  func(d *testTool, shop onboardingResult)
		want string // "" if both changes are made
	}{
		"not used": {func(*testTool, onboardingResult) {}, ""},
		"final":    {func(d *testTool, shop onboardingResult) { d.addDeliveredPayment(shop, 1, d.now) }, ""},
		"unknown payment": {func(d *testTool, shop onboardingResult) { d.addUnknownPayment(shop) },
			"1 transaction that may still call the operator, such as payment ShopA_1"},
		"unknown charge": {func(d *testTool, shop onboardingResult) {
			e := d.mustReadEntry(d.addUnknownCharge(shop, "c1"))
			e.Account, e.Operator, e.PollAt = "a1", "sandbox", d.now.Add(24*time.Hour)
			e.Reschedule()
			d.ledger.Overwrite(e)
		}, "such as charge"},
		"SMS due to the payer": {func(d *testTool, shop onboardingResult) {
			e := d.addDeliveredPayment(shop, 1, d.now)
			e.UserSMS, e.UserSMSAt = ledger.UserSMSDue, d.now.Add(time.Minute)
			e.Reschedule()
			d.ledger.Overwrite(e)
		}, "such as payment ShopA_1"},
		"changed a minute ago": {func(d *testTool, _ onboardingResult) {
			d.input = `{"sandbox":{"accounts":{"a2":{"user_sms":{"sender_name":"Other"}}}}}`
			d.now = d.now.Add(time.Minute)
			d.apply("operator set -")
			d.now = d.now.Add(-time.Minute)
		}, "try again then"},
	} {
		t.Run(name, func(t *testing.T) {
			d, shop := newShopTool(t)
			d.useSandboxOperator()
			d.input = moved
			d.expectBoth("operator set -", ExitFailed, "it is current, and merchant ShopA may use the operator")
			d.input = replaced
			d.expectBoth("operator set - --replace", ExitFailed, "cannot be dropped: it is current")
			d.apply("operator set -")
			d.now = d.now.Add(time.Minute)
			c.use(d, shop)
			d.now = d.now.Add(4*time.Minute + time.Second)
			for input, line := range map[string]string{moved: "operator set -", replaced: "operator set - --replace"} {
				d.input = input
				if c.want == "" {
					d.mustRun(line, nil)
				} else {
					d.expectBoth(line, ExitFailed, c.want)
				}
			}
			d.input = `{"sandbox":{"accounts":{"a1":{"access_token":"renewed"}}}}`
			d.apply("operator set -")
		})
	}
}

// An entry needs its account while it may still be sent, retried or looked up, or while its payer's SMS is due.
func TestMayCallOperator(t *testing.T) {
	for name, c := range map[string]struct {
		entry ledger.Entry
		want  bool
	}{
		"reserved SMS":       {ledger.Entry{State: ledger.Reserved}, true},
		"unknown SMS":        {ledger.Entry{State: ledger.Unknown}, true},
		"sent SMS":           {ledger.Entry{State: ledger.Done, Status: ledger.MessageWaiting}, false},
		"refused charge":     {ledger.Entry{State: ledger.Refused}, false},
		"pending payment":    {ledger.Entry{State: ledger.Done, Status: ledger.Pending}, true},
		"successful payment": {ledger.Entry{State: ledger.Done, Status: ledger.Successful}, false},
		"released payment":   {ledger.Entry{State: ledger.Released, Status: ledger.Pending}, false},
		"released payment, claim": {
			ledger.Entry{State: ledger.Released, Claim: ledger.Claim{Status: ledger.Successful}}, true,
		},
		"successful payment, SMS":  {ledger.Entry{Status: ledger.Successful, UserSMS: ledger.UserSMSDue}, true},
		"successful payment, sent": {ledger.Entry{Status: ledger.Successful, UserSMS: ledger.UserSMSSent}, false},
	} {
		c.entry.Kind = ledger.SMS
		switch {
		case strings.Contains(name, "payment"):
			c.entry.Kind = ledger.Payment
		case strings.Contains(name, "charge"):
			c.entry.Kind = ledger.Charge
		}
		checkEqual(t, name, mayCallOperator(&c.entry), c.want)
	}
}
