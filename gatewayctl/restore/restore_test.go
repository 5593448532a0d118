package restore_test

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/restore"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/telemetry"
)

// moment is the moment to which the ledger was restored: an hour before the command.
const moment = "2026-03-01T11:00:00Z"

// lostAt is a time that the restore lost.
var lostAt = time.Date(2026, 3, 1, 11, 30, 0, 0, time.UTC)

// logLine is a line as the functions write it.
func logLine(operation, merchantName, key string, at time.Time) string {
	line := telemetry.NewLogLine(operation, at)
	line.SetMerchant(merchantName)
	line.SetTransactionKey(key)
	line.SetRouting("sandbox", "CI", map[string]string{"pay": "ussd"}[operation])
	line.SetStatus(201)
	var text strings.Builder
	if err := line.Write(&text); err != nil {
		panic(err)
	}
	return strings.TrimSpace(text.String())
}

// file writes lines into a file, compressed if its name ends with .gz.
func file(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	text := strings.Join(lines, "\n") + "\n"
	if !strings.HasSuffix(name, ".gz") {
		gatewayctltest.WriteFile(t, path, text)
		return path
	}
	to, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	packed := gzip.NewWriter(to)
	if _, err := packed.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// newLoss is a shop whose operator does not respond.
func newLoss(t *testing.T) (*gatewayctltest.Tool, merchants.Onboarding) {
	t.Helper()
	d, shop := gatewayctltest.NewShop(t)
	d.UseSandboxOperator()
	return d, shop
}

func check(log string) string { return "restore check --timeout 1s --at " + moment + " --log " + log }

// only is the result of the one merchant.
func only(t *testing.T, views []restore.View) restore.View {
	t.Helper()
	if len(views) != 1 {
		t.Fatalf("%d results, want 1: %+v", len(views), views)
	}
	return views[0]
}

func change(d *gatewayctltest.Tool, line string) restore.View {
	d.T.Helper()
	return only(d.T, gatewayctltest.Change[[]restore.View](d, line))
}

// Each kind of key becomes an unknown entry. A dry run stores nothing, and a second run changes nothing.
func TestStoresWhatTheLedgerLacks(t *testing.T) {
	d, shop := newLoss(t)
	present := d.AddDeliveredPayment(shop, 1, lostAt)
	d.AddDeliveredPayment(shop, 7, lostAt.Add(-time.Hour))
	log := file(t, "lines.log.gz",
		"START RequestId: 6bc28136 Version: 12",
		"2026-03-01T11:30:00.000Z "+logLine("pay", "ShopA", "ShopA_1", lostAt),
		logLine("pay", "ShopA", "ShopA_2", lostAt),
		logLine("pay", "ShopA", "ShopA_2", lostAt.Add(time.Minute)),
		logLine("notif", "ShopA", "ShopA_3", lostAt),
		logLine("charge", "ShopA", "c-4", lostAt),
		logLine("sms", "ShopA", "s-5", lostAt),
		logLine("sweep", "", "ShopA_6", lostAt),
		logLine("pay", "ShopA", "ShopA_7", lostAt.Add(-time.Hour)),
		`{"level":"INFO","message":"a line of Lambda itself"}`,
	)
	dryRun := only(t, gatewayctltest.Query[[]restore.View](d, check(log)))
	d.Equal("entries after the dry run", len(d.Ledger.All()), 2)
	want := restore.View{Merchant: "ShopA", Keys: 6, Present: 1, Stored: 5, NoAmount: 2, Status: "active"}
	d.Equal("the dry run", dryRun, want)
	d.Equal("the run", change(d, check(log)), want)
	for _, key := range []ledger.Key{
		{Kind: ledger.Payment, ID: "ShopA_2"}, {Kind: ledger.Payment, ID: "ShopA_3"},
		{Kind: ledger.Charge, ID: ledger.ChargeID(shop.ID, "c-4", "")},
		{Kind: ledger.Charge, ID: ledger.ChargeID(shop.ID, "", "c-4")},
		{Kind: ledger.SMS, ID: ledger.SMSID(shop.ID, "s-5")},
	} {
		e := d.MustReadEntry(key)
		facts := []any{e.State, " ", e.Request.Restored(), e.CreatedAt.Equal(lostAt), e.Merchant.ID == shop.ID}
		d.Equal(key.String(), fmt.Sprint(facts...), "unknown true true true")
		d.Equal("the account of "+key.String(), e.Route.Account, "a1")
	}
	d.Equal("what the ledger has", d.MustReadEntry(present.Key), present)
	before := d.Ledger.All()
	again := change(d, check(log))
	d.Equal("a second run", again, restore.View{Merchant: "ShopA", Keys: 6, Present: 6, Status: "active"})
	d.Equal("entries after a second run", d.Ledger.All(), before)
}

// A lookup with a final status ends a payment, and gives it its amount. Without a response it stays unknown.
func TestLookups(t *testing.T) {
	d, _ := gatewayctltest.NewShop(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:] {
		case "ShopA_1":
			_, _ = w.Write([]byte(`{"status":"SUCCESS","order-id":"ShopA_1","amount":500,"currency":"XOF"}`))
		case "ShopA_2":
			_, _ = w.Write([]byte(`{"status":"PENDING","order-id":"ShopA_2"}`))
		case "ShopA_3":
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"requestError":{"serviceException":{"messageId":"SVC0002",` +
				`"text":"Invalid input value for message part %1","variables":["order_id"]}}}`))
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(server.Close)
	d.UseAccount("sandbox", "a1", server.URL, "t")
	var lines []string
	for number := range 4 {
		lines = append(lines, logLine("pay", "ShopA", fmt.Sprint("ShopA_", number+1), lostAt))
	}
	view := change(d, check(file(t, "lines.log", lines...)))
	d.Equal("result", view, restore.View{
		Merchant: "ShopA", Keys: 4, Stored: 4, Final: 1, NoAmount: 4, Status: "active"})
	for id, want := range map[string]string{
		"ShopA_1": "done successful 500 1", "ShopA_2": "unknown pending 0 0", "ShopA_3": "unknown pending 0 0",
		"ShopA_4": "unknown pending 0 0",
	} {
		e := d.MustReadEntry(ledger.Key{Kind: ledger.Payment, ID: id})
		d.Equal(id, fmt.Sprint(e.State, " ", e.Status, " ", e.Amount.Minor, " ", len(e.Outbox.Waiting)), want)
	}
	if e := d.MustReadEntry(ledger.Key{Kind: ledger.Payment, ID: "ShopA_3"}); e.DueAt.IsZero() {
		t.Error("the sweep does not look up a payment that its operator does not know")
	}
}

// A merchant whose keys are masked is suspended until its list was read. Its list has the keys, and the amounts.
func TestMaskedKeys(t *testing.T) {
	d, shop := newLoss(t)
	other := d.Onboard("ShopB")
	log := file(t, "lines.log", logLine("charge", "ShopA", "tel-0707070707", lostAt),
		logLine("charge", "ShopA", strings.Repeat("k", 100), lostAt),
		logLine("sms", "ShopA", "gws_secret", lostAt),
		logLine("charge", "ShopB", "c-1", lostAt),
		logLine("charge", "ShopA", "c-2", lostAt))
	d.ExpectOutput(check(log), "missing")
	d.Equal("status after a dry run", status(d, shop.ID), merchant.StatusActive)
	code, _, stderr := d.Exec(check(log) + gatewayctltest.Confirm)
	const advice = "ShopA is suspended: the keys of 3 log lines are masked"
	if code != gatewayctl.ExitDone || !strings.Contains(stderr, advice) ||
		!strings.Contains(stderr, "--list ShopA=FILE") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	d.Equal("status", status(d, shop.ID), merchant.StatusSuspended)
	d.Equal("status of the other merchant", status(d, other.ID), merchant.StatusActive)
	generation := profile(d, shop.ID).TokenGeneration
	d.ExpectOutput(check(log)+gatewayctltest.Confirm, "missing")
	d.Equal("suspensions", profile(d, shop.ID).TokenGeneration, generation)

	list := file(t, "list.csv", "\ufeffkind,client_correlator,reference_code,amount,created_at",
		"charge,tel-0707070707,REF-1,500,2026-03-01T11:30:00Z",
		"charge,,REF-2,,", "charge,old,REF-3,,2026-02-01T11:30:00Z")
	code, _, stderr = d.Exec(check(log) + " --list ShopA=" + list + gatewayctltest.Confirm)
	if code != gatewayctl.ExitDone || !strings.Contains(stderr, "no row of its list explains 2 of 3 log lines") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	d.ExpectOutput(check(log)+" --list ShopA="+list, "incomplete")
	whole := file(t, "list.csv", "kind,client_correlator,reference_code,amount,created_at",
		"charge,tel-0707070707,REF-1,500,2026-03-01T11:30:00Z",
		"charge,"+strings.Repeat("k", 100)+",,,", "sms,gws_secret,,,", "charge,,REF-2,,")
	code, _, stderr = d.Exec(check(log) + " --list ShopA=" + whole + gatewayctltest.Confirm)
	if code != gatewayctl.ExitDone || !strings.Contains(stderr, "gatewayctl merchant resume ShopA") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	e := d.MustReadEntry(ledger.Key{Kind: ledger.Charge, ID: ledger.ChargeID(shop.ID, "tel-0707070707", "REF-1")})
	facts := []any{e.State, " ", e.Amount.Minor, e.Amount.Currency, " ", e.Route.UpstreamKey}
	d.Equal("the charge of the list", fmt.Sprint(facts...), "unknown 500XOF ShopA.tel-0707070707")
	owner, err := d.Ledger.ChargeOfReference(t.Context(), shop.ID, "REF-1")
	if err != nil || owner != e.ID {
		t.Errorf("REF-1 is of %q (%v), want the charge: another correlator must not charge it again", owner, err)
	}
}

func profile(d *gatewayctltest.Tool, id string) *merchant.Profile {
	d.T.Helper()
	p, err := d.Merchants.Profile(d.T.Context(), id)
	if err != nil || p == nil {
		d.T.Fatal(p, err)
	}
	return p
}

func status(d *gatewayctltest.Tool, id string) string {
	d.T.Helper()
	return profile(d, id).Status
}

// A list of another time explains no masked or torn line. The keys of such a line stay unknown, so that its merchant
// stays suspended. A row of before the moment explains the line of its retry.
func TestListOfAnotherTime(t *testing.T) {
	masked, torn := logLine("charge", "ShopA", "tel-0707070707", lostAt), logLine("pay", "ShopA", "ShopA_2", lostAt)
	_, afterName, _ := strings.Cut(torn, `"Merchant":"ShopA"`)
	torn = strings.TrimSuffix(torn, afterName)
	const other, first = "charge,c-9,2026-03-01T11:30:00Z", "charge,tel-0707070707,2026-02-27T11:30:00Z"
	for name, c := range map[string]struct{ line, row, want string }{
		"a masked key, and another one": {masked, other, "incomplete 1 suspended"},
		"a masked key of an older row":  {masked, first, "read 0 active"},
		"the masked key as an SMS":      {masked, strings.Replace(first, "charge", "sms", 1), "incomplete 1 suspended"},
		"a torn line, and a later row":  {torn, other, "read 0 active"},
		"a torn line, and an older row": {torn, first, "incomplete 1 suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := newLoss(t)
			list := file(t, "list.csv", "kind,client_correlator,created_at", c.row)
			view := change(d, check(file(t, "lines.log", c.line))+" --list ShopA="+list)
			d.Equal("result", fmt.Sprint(view.List, " ", view.Unlisted, " ", view.Status), c.want)
		})
	}
}

// A list shows which of its two keys a charge has, so that log lines add no second one.
func TestListIsExact(t *testing.T) {
	for name, row := range map[string]string{"correlator": "charge,k-1,R-1", "reference": "charge,,k-1"} {
		t.Run(name, func(t *testing.T) {
			d, _ := newLoss(t)
			line := logLine("charge", "ShopA", "k-1", lostAt)
			log := file(t, "lines.log", line, line)
			list := file(t, "list.csv", "kind,client_correlator,reference_code", row)
			d.Equal("keys", change(d, check(log)+" --list ShopA="+list).Keys, 1)
		})
	}
}

// A torn line counts as a masked one of the merchant that it names. One that names none refuses the whole run.
func TestTornLines(t *testing.T) {
	whole := logLine("pay", "ShopA", "ShopA_2", lostAt)
	_, afterName, _ := strings.Cut(whole, `"Merchant":"ShopA"`)
	begin := strings.TrimSuffix(whole, afterName)
	d, shop := newLoss(t)
	view := change(d, check(file(t, "lines.log", begin)))
	d.Equal("masked", view.Masked, 1)
	d.Equal("status", status(d, shop.ID), merchant.StatusSuspended)
	for name, line := range map[string]string{
		"its begin": whole[:strings.Index(whole, `"Merchant"`)], "its end": afterName,
	} {
		t.Run(name, func(t *testing.T) {
			d, shop := newLoss(t)
			log := file(t, "lines.log", logLine("pay", "ShopA", "ShopA_1", lostAt), line)
			d.ExpectFailed(check(log), "lines.log:2: the log line is torn and names no merchant")
			d.Equal("entries", len(d.Ledger.All()), 0)
			d.Equal("status", status(d, shop.ID), merchant.StatusActive)
		})
	}
}

// A run that fails half way is run again, and ends the same.
func TestResumes(t *testing.T) {
	d, _ := newLoss(t)
	log := file(t, "lines.log", logLine("pay", "ShopA", "ShopA_1", lostAt), logLine("pay", "ShopA", "ShopA_2", lostAt))
	d.Ledger.InjectFaults(func(c storetest.Call) storetest.Fault {
		if c.Operation == storetest.Insert && c.Key.ID == "ShopA_2" {
			return storetest.FailedBeforeApply
		}
		return storetest.NoFault
	})
	d.ExpectFailed(check(log), "")
	d.Equal("entries", len(d.Ledger.All()), 1)
	d.Ledger.InjectFaults(nil)
	view := change(d, check(log))
	d.Equal("the second run", fmt.Sprint(view.Present, view.Stored), "1 1")
}

func TestWrongInput(t *testing.T) {
	d, _ := newLoss(t)
	log := file(t, "lines.log", logLine("pay", "Gone", "Gone_1", lostAt))
	d.ExpectExit("restore check --at "+moment, gatewayctl.ExitUsage, "--log FILE")
	d.ExpectExit("restore check --at 2026-03-02 --log "+log, gatewayctl.ExitUsage, "in the future")
	d.ExpectFailed(check(log), "there is no merchant Gone: restore the merchant table first")
	for row, want := range map[string]string{
		"other,1,,":      "kind must be charge, pay or sms",
		"pay,ShopB_1,,":  "id must be the order_id, ShopA_ and digits",
		"sms,,,":         "a sms needs its client_correlator",
		"charge,x,c-1,":  "id is not that of its client_correlator",
		"charge,,c-1,5x": "amount: money: not a plain decimal amount",
	} {
		list := file(t, "list.csv", "kind,id,client_correlator,amount", row)
		d.ExpectFailed("restore check --at "+moment+" --list ShopA="+list, want)
	}
	d.ExpectFailed("restore check --at "+moment+" --list Gone="+log, `there is no merchant "Gone"`)
	d.Equal("entries", len(d.Ledger.All()), 0)
}
