package pages

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
	"mobilegateway/world/operators/platforms"
)

// endingOrder are the ways in which a payment ends without being paid, in the order of the page's columns.
var endingOrder = []ledger.FailureReason{
	ledger.RefusedByPayer, ledger.NotEnoughFunds, ledger.LimitReached, ledger.WalletUnknown, ledger.TimedOut,
	ledger.OperatorError,
}

// endingOf is what a constant that a driver maps a word to means. Other constants end no payment, or end it paid.
var endingOf = map[string]ledger.FailureReason{
	"RefusedByPayer": ledger.RefusedByPayer, "Cancelled": ledger.RefusedByPayer,
	"NotEnoughFunds": ledger.NotEnoughFunds, "LimitReached": ledger.LimitReached,
	"WalletUnknown": ledger.WalletUnknown,
	"TimedOut":      ledger.TimedOut, "Expired": ledger.TimedOut, "Failed": ledger.OperatorError,
}

// endingTexts are texts of the operators whose drivers read them (decision "pay-failure-reason").
var endingTexts = map[ledger.FailureReason]string{
	ledger.RefusedByPayer: "refused by the payer", ledger.NotEnoughFunds: "not enough funds",
	ledger.LimitReached: "limit reached", ledger.WalletUnknown: "wallet not found", ledger.TimedOut: "timed out",
	ledger.OperatorError: "failed",
}

const endingKey = "DemoShop_1"

// endings describes how a platform reports a payment that was not paid.
type endings struct {
	source string // the driver's folder or file, below shared/operator
	// status makes a lookup's response for a status, and reason that for a code. text is that for a text; nil if the
	// driver reads none.
	status, reason, text func(string) string
	// refusal makes the status and the body of a refusal in the response to the payment; nil if there is none.
	refusal func(ending ledger.FailureReason, code string) (int, string)
	// codes are codes that the driver does not read from a map, or reads for another ending too. statuses are such
	// statuses. The platform's page has them.
	codes, statuses map[ledger.FailureReason][]string
	// material is that of the payments; a second one is for a later time.
	material []string
}

// fill returns a function that replaces WORD in a text.
func fill(body string) func(string) string {
	return func(word string) string { return strings.ReplaceAll(body, "WORD", word) }
}

func endingsOf() map[string]endings {
	specification := `{"order-id":"` + endingKey + `","status":"WORD"}`
	deposit := `{"depositId":"` + endingKey + `",`
	cameroon := `{"data":{"payToken":"MP1","amount":1500,"status":`
	return map[string]endings{
		"sandbox": {
			source: "status.go", status: fill(specification),
			text: fill(strings.Replace(specification, "WORD", `failed","statusDescription":"WORD`, 1)),
			refusal: func(ending ledger.FailureReason, _ string) (int, string) {
				ids := map[ledger.FailureReason]string{
					ledger.RefusedByPayer: "POL0253", ledger.NotEnoughFunds: "POL1000",
				}
				id := cmp.Or(ids[ending], "POL0001")
				return 403, `{"requestError":{"policyException":{"messageId":"` + id + `","text":"%1","variables":["` +
					endingTexts[ending] + `"]}}}`
			},
		},
		"mtn-momo": {
			source: "mtn",
			reason: fill(`{"status":"FAILED","reason":"WORD"}`),
			refusal: func(_ ledger.FailureReason, code string) (int, string) {
				return 500, `{"code":"` + code + `"}`
			},
			codes: map[ledger.FailureReason][]string{
				ledger.TimedOut: {"COULD_NOT_PERFORM_TRANSACTION"}, ledger.OperatorError: {"INTERNAL_PROCESSING_ERROR"},
			},
		},
		"pawapay": {
			source: "pawapay",
			reason: fill(`{"status":"FOUND","data":` + deposit +
				`"status":"FAILED","failureReason":{"failureCode":"WORD"}}}`),
			refusal: func(_ ledger.FailureReason, code string) (int, string) {
				return 200, deposit + `"status":"REJECTED","failureReason":{"failureCode":"` + code + `"}}`
			},
			codes: map[ledger.FailureReason][]string{
				ledger.TimedOut: {"PAYMENT_NOT_APPROVED"}, ledger.OperatorError: {"UNSPECIFIED_FAILURE"},
			},
		},
		"orange-cm": {
			source: "orangecm",
			status: fill(cameroon + `"WORD"}}`), reason: fill(cameroon + `"FAILED","inittxnstatus":"WORD"}}`),
			text: fill(cameroon + `"FAILED","inittxnstatus":"200","confirmtxnmessage":"WORD"}}`),
			refusal: func(_ ledger.FailureReason, code string) (int, string) {
				return 400, `{"message":"m","data":{"inittxnstatus":"` + code + `"}}`
			},
			material: []string{"MP1"},
		},
		"orange-webpay": {
			source: "orangewebpay", status: fill(`{"status":"WORD","order_id":"` + endingKey + `"}`),
			statuses: map[ledger.FailureReason][]string{ledger.RefusedByPayer: {"EXPIRED", "FAILED"}},
			material: []string{"token"},
		},
		"wave-checkout": {
			source: "wave",
			status: func(words string) string {
				payment, checkout, _ := strings.Cut(words, " ")
				return `{"result":[{"id":"cos-1","client_reference":"` + endingKey + `","amount":"1500",` +
					`"currency":"XOF","payment_status":"` + payment + `","checkout_status":"` + checkout + `"}]}`
			},
			statuses: map[ledger.FailureReason][]string{ // a failed attempt ends no session
				ledger.RefusedByPayer: {"cancelled open", "processing expired"},
				ledger.OperatorError:  {"processing open", "processing expired"},
			},
		},
		"flouci-checkout": {
			source:   "flouci",
			status:   fill(`{"success":true,"result":{"status":"WORD","amount":1500000}}`),
			material: []string{"id 9999999999", "id 1"}, // before the end of the page, and after it
		},
	}
}

// mappedWord matches the lines of a driver's maps: a word, or two, and the constant that they are mapped to.
var mappedWord = regexp.MustCompile(`"(\w+)"(?:, "(\w+)"\})?:\s+ledger\.(\w+)`)

// words returns the words of each ending that the driver maps: codes are those that it maps to a reason, statuses those
// that it maps to a status.
func (e endings) words(t *testing.T) (codes, statuses map[ledger.FailureReason][]string) {
	t.Helper()
	codes, statuses = map[ledger.FailureReason][]string{}, map[ledger.FailureReason][]string{}
	base := filepath.Join(rootDir, "shared", "operator", e.source)
	files, err := filepath.Glob(filepath.Join(base, "*.go"))
	if files == nil {
		files = []string{base}
	}
	for _, name := range files {
		source, readErr := os.ReadFile(name)
		if err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, found := range mappedWord.FindAllStringSubmatch(string(source), -1) {
			ending, ends := endingOf[found[3]]
			to := statuses
			if !slices.Contains([]string{"Cancelled", "Expired", "Failed"}, found[3]) {
				to = codes
			}
			if ends {
				to[ending] = append(to[ending], strings.TrimSpace(found[1]+" "+found[2]))
			}
		}
	}
	for ending, more := range e.codes {
		codes[ending] = append(codes[ending], more...)
	}
	for ending, more := range e.statuses {
		statuses[ending] = append(statuses[ending], more...)
	}
	return codes, statuses
}

// responses returns the lookups' responses of an ending. A platform that does not report it has that of any other
// failure.
func (e endings) responses(t *testing.T, ending ledger.FailureReason) []string {
	codes, statuses := e.words(t)
	var bodies []string
	for _, code := range codes[ending] {
		bodies = append(bodies, e.reason(code))
	}
	for _, status := range statuses[ending] {
		bodies = append(bodies, e.status(status))
	}
	if e.text != nil {
		bodies = append(bodies, e.text(endingTexts[ending]))
	}
	if len(bodies) == 0 && ending != ledger.OperatorError {
		return e.responses(t, ledger.OperatorError)
	}
	return bodies
}

// platformServer responds to a driver's requests with one response. Token exchanges succeed.
type platformServer struct {
	status int
	body   string
}

// RoundTrip implements http.RoundTripper.
func (s *platformServer) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := s.status, s.body
	if strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), "/token") {
		status, body = 200, `{"access_token":"token","expires_in":3600}`
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(body))}, nil
}

// sampleAccounts returns a platform's accounts by their ids.
func sampleAccounts(platform string) map[string]map[string]any {
	config := platforms.Config{
		URL: "https://platform.example", GatewayURL: "https://gateway.example",
		CallbackSecret: strings.Repeat("s", 32),
	}
	if platform == "sandbox" {
		return map[string]map[string]any{"stub": {
			"base_url": config.URL, "access_token": "token", "service_id": "s", "application_id": "a",
			"contact_id": "c",
		}}
	}
	return config.Accounts()[platform]
}

// sampleDriver returns the driver of a platform with its accounts, whose requests reach server.
func sampleDriver(t *testing.T, platform string, server http.RoundTripper) operator.Driver {
	t.Helper()
	accounts := sampleAccounts(platform)
	secretText, err := json.Marshal(map[string]any{platform: map[string]any{
		"current": slices.Min(slices.Collect(maps.Keys(accounts))), "accounts": accounts,
	}})
	if err != nil {
		t.Fatal(err)
	}
	directory := drivers.New(secret.Static(secretText), drivers.Outside{
		Transport: server, Now: func() time.Time { return time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC) },
	})
	driver, _, found := directory.Driver(platform)
	if !found {
		t.Fatalf("no driver for %s", platform)
	}
	return driver
}

// samplePayment returns a payment at a platform's operator in a country, with the country's account.
func samplePayment(platform, operatorName, alpha2 string) operator.PayCall {
	country, _ := market.ByAlpha2(alpha2)
	row, _ := operator.FindCapabilities(platform)
	account := "stub"
	if sampleAccounts(platform)[account] == nil {
		account += "-" + strings.ToLower(alpha2)
	}
	return operator.PayCall{
		Call: operator.Call{
			Platform: platform, AccountID: account, Operator: operatorName, Country: alpha2, MCO: country.MCO,
			UpstreamKey: endingKey, OrderID: endingKey,
		},
		Channel: row.Channels[len(row.Channels)-1], Lang: "fr", Amount: "1500", Currency: country.Currency,
		ReturnURL: "https://shop.example/", CancelURL: "https://shop.example/", NotifyURL: "https://gateway.example/c",
		Reference: "DemoShop", State: "s",
		MSISDN: "+" + country.CallingCode + strings.Repeat("7", country.NationalLengths[0]),
	}
}

// orEmpty returns texts, or an empty one if there is none.
func orEmpty(texts []string) []string {
	if len(texts) == 0 {
		return []string{""}
	}
	return texts
}

// readEnding returns what a merchant reads of a payment: its status if that implies the reason, else the reason.
func readEnding(status ledger.Status, reason ledger.FailureReason) string {
	if status == ledger.Failed {
		return "`" + string((&ledger.Entry{Progress: ledger.Progress{FailureReason: reason}}).WhyNotPaid(status)) + "`"
	}
	return "`" + string(status) + "`"
}

// endingCell returns what a merchant reads after an ending of a payment: "pending, then `failed`".
func (e endings) endingCell(t *testing.T, platform string, ending ledger.FailureReason) string {
	t.Helper()
	server := &platformServer{}
	reader, _ := sampleDriver(t, platform, server).(operator.StatusLookup)
	row, _ := operator.FindCapabilities(platform)
	pay := samplePayment(platform, row.Reach[0].Operator, row.Reach[0].Countries[0])
	var read []string
	for _, body := range e.responses(t, ending) {
		server.status, server.body = 200, body
		for _, material := range orEmpty(e.material) {
			call := operator.StatusCall{
				Call: pay.Call, Channel: pay.Channel, Lang: pay.Lang, Amount: pay.Amount, Currency: pay.Currency,
			}
			call.DriverData = material
			found := reader.LookUpPayment(t.Context(), call)
			if found.Status == "" || found.Status == ledger.Successful {
				t.Errorf("%s reads %q from %s: %v", platform, found.Status, body, found.Cause)
			}
			if word := readEnding(found.Status, found.Reason); !slices.Contains(read, word) {
				read = append(read, word)
			}
		}
	}
	pending := "`" + string(ledger.Pending) + "`"
	rest := slices.DeleteFunc(slices.Clone(read), func(word string) bool { return word == pending })
	slices.Sort(rest)
	cell := strings.Join(rest, " or ")
	if len(rest) < len(read) {
		cell = pending + ", then " + cell
	}
	return cell
}

// refusalCell returns the reasons with which a platform refuses a payment in its response: getStatus has them.
func (e endings) refusalCell(t *testing.T, platform string) string {
	t.Helper()
	if e.refusal == nil {
		return "never"
	}
	server := &platformServer{}
	driver := sampleDriver(t, platform, server)
	row, _ := operator.FindCapabilities(platform)
	pay := samplePayment(platform, row.Reach[0].Operator, row.Reach[0].Countries[0])
	pay.DriverData = orEmpty(e.material)[0]
	codes, _ := e.words(t)
	var read []string
	for _, ending := range endingOrder {
		for _, code := range orEmpty(codes[ending]) {
			server.status, server.body = e.refusal(ending, code)
			response := operator.Pay(t.Context(), driver, pay)
			if response.Outcome != operator.Refused {
				continue
			}
			word := readEnding(ledger.Failed, operator.RefusalReason(response.Fault))
			if !slices.Contains(read, word) {
				read = append(read, word)
			}
		}
	}
	return strings.Join(read, ", ")
}

// TestEndingsAreDocumented compares the page's table of endings with what each driver makes of its platform's reports:
// of every word that it maps, and of those that the platform's page has.
func TestEndingsAreDocumented(t *testing.T) {
	columns := []string{
		"Platform", "Operators", "Refuses or cancels", "Lacks funds", "Over a limit", "No wallet", "Late",
		"Anything else", "`failureReason` after a 403 at once",
	}
	text := "| " + strings.Join(columns, " | ") + " |\n|" + strings.Repeat("---|", len(columns)) + "\n"
	all := endingsOf()
	for _, platform := range operator.Platforms() {
		row, _ := operator.FindCapabilities(platform)
		isAsSandbox := row.DriverName == "gateway" && platform != "sandbox"
		if !slices.Contains(row.Operations, operator.AccountPay) || isAsSandbox {
			continue
		}
		e, known := all[platform]
		if !known {
			t.Errorf("%s has payments, and this test has no reports of it", platform)
			continue
		}
		cells := []string{"`" + platform + "`", servedCell(row)}
		for _, ending := range endingOrder {
			cells = append(cells, e.endingCell(t, platform, ending))
		}
		text += "| " + strings.Join(append(cells, e.refusalCell(t, platform)), " | ") + " |\n"
	}
	comparePrinted(t, merchantsPage, "endings", text)
}

// servedCell names the operators and the channels of a platform: "`wave`: web".
func servedCell(row operator.Capabilities) string {
	if row.DriverName == "gateway" {
		return "any with the specification's own protocol"
	}
	var names []string
	for _, reach := range row.Reach {
		names = append(names, "`"+reach.Operator+"`")
	}
	return strings.Join(names, ", ") + ": " + strings.Join(row.Channels, ", ")
}
