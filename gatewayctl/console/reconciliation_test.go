package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl/console"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
)

// books is a console on the morning after a day with the successful payments ShopA_1 and ShopA_2.
type books struct {
	*site
	tool   *gatewayctltest.Tool
	folder string
	files  int
}

const heading = "reference,order_id,amount,currency,status,time,fee,payer\n"

func newBooks(t *testing.T, changes ...func(*console.Config)) *books {
	t.Helper()
	d, shop := gatewayctltest.NewShop(t)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d.Now = noon.Add(20 * time.Hour)
	for number := range 2 {
		d.AddDeliveredPayment(shop, number+1, noon, func(e *ledger.Entry) {
			e.OperatorReference = fmt.Sprintf("R%d", number+1)
		})
	}
	return &books{site: newSite(t, d, changes...), tool: d, folder: t.TempDir()}
}

// row is a row of a statement.
func row(reference, order, amount string) string {
	return fmt.Sprintf("%s,%s,%s,XOF,paid,2026-03-01T12:00:00Z,,\n", reference, order, amount)
}

// form is the form of a statement with rows, with changes of its fields.
func (b *books) form(rows string, changes ...string) url.Values {
	b.t.Helper()
	b.files++
	path := filepath.Join(b.folder, fmt.Sprintf("s%d.csv", b.files))
	gatewayctltest.WriteFile(b.t, path, heading+rows)
	made := url.Values{
		"token": {b.act(b.mustGet("/reconciliation")).Get("token")}, "command": {"reconcile"}, "platform": {"sandbox"},
		"account": {""}, "day": {"2026-03-01"}, "statement": {path}, "format": {"generic"}, "mapping": {""},
	}
	for i := 0; i < len(changes); i += 2 {
		made.Set(changes[i], changes[i+1])
	}
	return made
}

// result sends a form, and checks that the page has texts.
func (b *books) result(form url.Values, texts ...string) string {
	b.t.Helper()
	got := b.post("/reconciliation", form)
	page := html.UnescapeString(got.Body.String())
	if got.Code != http.StatusOK {
		b.t.Fatalf("%d %s", got.Code, mainOf(page))
	}
	for _, text := range texts {
		if !strings.Contains(page, text) {
			b.t.Errorf("the page has no %q:\n%s", text, mainOf(page))
		}
	}
	return got.Body.String()
}

// count is the number of audit records.
func (b *books) count() int { return len(b.tool.Audit.Outcomes) }

func TestEqualBooks(t *testing.T) {
	b := newBooks(t)
	audited := b.count()
	page := b.result(b.form(row("R1", "", "1000")+row("R2", "", "1000")), "Both sides are equal.", "2,000",
		"There are no differences.", "gatewayctl reconcile --platform=sandbox --day=2026-03-01 --statement="+b.folder)
	if strings.Contains(page, `role="alert"`) || b.count() == audited {
		t.Errorf("the page reports a failure, or there is no audit record: %s", mainOf(page))
	}
	b.result(b.form(""), "Differences: 2", "only ours", "-2,000")
	if left, err := os.ReadDir(b.folder); err != nil || len(left) != b.files {
		t.Errorf("the folder has %v, %v", left, err)
	}
}

// A difference has its command, and the act if the console runs it. The dry run of the act leads back to the form.
func TestDifferentBooks(t *testing.T) {
	b := newBooks(t)
	b.tool.Update(ledger.Key{Kind: ledger.Payment, ID: "ShopA_2"}, func(e *ledger.Entry) {
		e.State, e.Status, e.FinalAt = ledger.Unknown, ledger.Pending, time.Time{}
	})
	form := b.form(row("R1", "", "1001") + row("R2", "", "1000"))
	page := b.result(form, "Differences: 2", "amount differs", "1,001 XOF",
		"gatewayctl payment show ShopA_1", "only theirs 1,000",
		"gatewayctl unknown resolve pay ShopA_2 --as successful --operator-reference=R2 --yes",
		`name="word" value="--operator-reference=R2"`, `href="/transaction?id=ShopA_1&kind=pay"`)
	if strings.Contains(page, "not shown") {
		t.Errorf("the page has not all differences: %s", mainOf(page))
	}
	trial := b.post("/act", b.act(page, "unknown", "resolve", "pay", "ShopA_2", "--as", "successful",
		"--operator-reference=R2"))
	if got := trial.Body.String(); !strings.Contains(got, "Dry run: nothing was changed") {
		t.Errorf("the act: %s", mainOf(got))
	}
	b.cookies["gatewayctl-console-lang"] = "fr"
	b.result(form, "Différences : 2", "montant différent", "seulement chez eux 1", "Diffère", ">Montant<")
}

// A page has a bounded number of differences, and says how many it does not have.
func TestManyDifferences(t *testing.T) {
	b := newBooks(t)
	rows := ""
	for i := range 700 {
		rows += row(fmt.Sprintf("X%03d", i), "", "5")
	}
	page := b.result(b.form(rows), "Differences: 702", "Differences that are not shown: 202.", "with --csv has all",
		"3,500")
	if count := strings.Count(page, "gatewayctl find"); count != 500 {
		t.Errorf("the page has %d differences", count)
	}
}

// A command that fails has an error, and no result.
func TestBooksThatCannotBeCompared(t *testing.T) {
	b := newBooks(t)
	const path = "Enter the whole path of a file"
	for name, c := range map[string]struct {
		form url.Values
		text string
	}{
		"a bad amount":         {b.form(row("R1", "", "abc")), "line 2"},
		"a wrong day":          {b.form("", "day", "yesterday?"), "--day"},
		"an unknown platform":  {b.form("", "platform", "x"), "--platform"},
		"a form of another":    {b.form("", "format", "wave"), "--format wave is the form of"},
		"no file":              {b.form("", "statement", "/does/not/exist"), "no such file"},
		"no statement":         {b.form("", "statement", ""), "Enter a value."},
		"a relative path":      {b.form("", "statement", "s.csv"), path},
		"a device":             {b.form("", "mapping", "/dev/zero"), path},
		"a folder":             {b.form("", "statement", b.folder), path},
		"a settlement's error": {b.form("", "command", "settlement", "reconciled", "/does/not/exist"), "no such file"},
	} {
		page := b.result(c.form, `role="alert"`, c.text)
		if strings.Contains(page, "Both sides") || strings.Contains(page, "<caption>") {
			t.Errorf("%s has a result: %s", name, mainOf(page))
		}
	}
	for name, form := range map[string]url.Values{
		"no token": b.form("", "token", ""), "another command": b.form("", "command", "export"),
	} {
		if got := b.post("/reconciliation", form); got.Code == http.StatusOK {
			t.Errorf("%s: %s", name, mainOf(got.Body.String()))
		}
	}
}

// A text of a statement is neither markup, nor a formula in a copied table. A value of the form is never a flag.
func TestHostileStatement(t *testing.T) {
	b := newBooks(t)
	hostile := `"` + strings.ReplaceAll(strings.ReplaceAll(hostileText, "\x1b[31m", ""), `"`, `""`) + `"`
	page := hiddenInput.ReplaceAllString(b.result(b.form(row(hostile, hostile, "5")), "Differences: 3", "'=1+1"), "")
	if strings.Contains(page, "<script>") || strings.Contains(page, "<td>=") || strings.Contains(page, "\u202e") {
		t.Errorf("the page has the hostile text as it is:\n%s", mainOf(page))
	}
	b.result(b.form("", "account", "x --yes"), "'--account=x --yes'")
}

// A console without changes shows the command line of what was entered, and runs nothing.
func TestBooksOfReadOnlyConsole(t *testing.T) {
	writable := newBooks(t)
	form := writable.form("")
	b := newBooks(t, func(c *console.Config) { c.AllowChanges = false })
	audited := b.count()
	page := b.expect("/reconciliation", `method="get"`, "Show the command line")
	if strings.Contains(page, `name="token"`) {
		t.Errorf("the page has a form that runs something: %s", mainOf(page))
	}
	if got := b.post("/reconciliation", form); got.Code != http.StatusForbidden {
		t.Errorf("POST: %d", got.Code)
	}
	form.Del("token")
	page = b.expect("/reconciliation?"+form.Encode(), "gatewayctl reconcile --platform=sandbox --day=2026-03-01",
		"run this command line in a shell", `value="2026-03-01"`, "<option selected>sandbox</option>")
	if strings.Contains(page, "Both sides") || b.count() != audited {
		t.Errorf("the command ran: %s", mainOf(page))
	}
}

// A settlement has its totals, of what a result of reconcile confirms too.
func TestSettlementPage(t *testing.T) {
	b := newBooks(t)
	form := b.form("")
	result := filepath.Join(b.folder, "r.books")
	statement := filepath.Join(b.folder, "one.csv")
	gatewayctltest.WriteFile(t, statement, heading+row("R1", "", "1000"))
	b.tool.Exec("reconcile --platform sandbox --day 2026-03-01 --statement " + statement + " --result " + result)
	form.Set("command", "settlement")
	form.Set("reconciled", result)
	b.result(form, "What merchants are owed", "2,000", "1,000", "gatewayctl settlement --day=2026-03-01 --reconciled=",
		"All successes")
}
