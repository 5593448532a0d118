package transactions

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/search"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// matchingField names the field of an entry that has a value, "" for none.
func matchingField(e *ledger.Entry, value string) string {
	fields := []struct{ name, value string }{
		{"order_id or id", e.ID}, {"clientCorrelator", e.Request.Correlator},
		{"referenceCode", e.Request.ReferenceCode},
		{"upstream key", e.Route.UpstreamKey}, {"Transaction-id", e.Request.TransactionID},
		{"operator's reference", e.Reference()}, {"operator's reference", e.Claim.OperatorReference},
		{"operator's reference", e.Manual.Reference},
		{"reference", e.Request.Reference}, {"callbackData", e.Request.CallbackData},
	}
	for _, n := range slices.Concat(e.Outbox.Delivered, e.Outbox.Waiting) {
		fields = append(fields, struct{ name, value string }{"webhook-id", n.ID})
	}
	for _, f := range fields {
		if value != "" && (f.value == value || uuidOf(value) != "" && uuidOf(f.value) == uuidOf(value)) {
			return f.name
		}
	}
	for _, number := range []string{e.Request.MSISDN, e.Payer, e.Claim.MSISDN} {
		if sameNumber(number, value) {
			return "MSISDN"
		}
	}
	return ""
}

// minNumberDigits is the length of the shortest telephone number that find compares, without its leading zeros.
const minNumberDigits = 8

// sameNumber reports whether two texts are one telephone number: equal digits, with or without a calling code.
func sameNumber(a, b string) bool {
	shorter, longer := numberDigits(a), numberDigits(b)
	if len(shorter) > len(longer) {
		shorter, longer = longer, shorter
	}
	return len(shorter) >= minNumberDigits && strings.HasSuffix(longer, shorter)
}

// numberDigits are the digits of a telephone number without leading zeros, "" for another text.
func numberDigits(text string) string {
	digits := strings.NewReplacer(" ", "", "-", "", ".", "").Replace(strings.TrimPrefix(text, "tel:"))
	digits = strings.TrimPrefix(digits, "+")
	if strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return strings.TrimLeft(digits, "0")
}

// uuidPattern matches a UUID in small letters, as our ids and the request ids of API Gateway are.
var uuidPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// uuidOf is a UUID in small letters, "" for another text. Some systems show it in capitals.
func uuidOf(text string) string {
	if text = strings.ToLower(text); uuidPattern.MatchString(text) {
		return text
	}
	return ""
}

// findDays is how many days find searches without --since.
const findDays = 7

// Find is the command find.
type Find struct {
	Value string `arg:"" optional:"" help:"An order_id, key, reference, id or telephone number; or use the filters."`
	filterFlags

	Since string `placeholder:"TIME" help:"${find_since_help}"`
	Until string `placeholder:"TIME" help:"Before this UTC time, or to the end of this UTC day; now if not given."`
	session.WatchFlag
	Continue string `placeholder:"TOKEN" help:"The next page of a search with filters, as the page before printed it."`
}

// Validate refuses filters beside a value, and a line without both.
func (c *Find) Validate() error {
	others := c.filterFlags
	others.Merchant = ""
	switch {
	case c.Value != "" && (others != filterFlags{} || c.Until != "" || c.Continue != ""):
		return errors.New("a value takes only --merchant and --since: filters search without a value")
	case c.Value == "" && c.filterFlags == filterFlags{} && c.Since == "" && c.Until == "" && c.Continue == "":
		return errors.New(`expected "<value>", or filters such as --amount 1005 --payer 34 --since 10:30`)
	}
	return nil
}

// Run searches a value by key first: one read for each thing that it can be. Only if no key has it, or with --since, it
// reads the days. Without a value it searches by the filters.
func (c *Find) Run(s *session.Session) error {
	if c.Value == "" {
		return c.search(s)
	}
	var from search.Span
	if c.Since != "" {
		var err error
		if from, err = search.ParseSpan(c.Since, s.Now()); err != nil {
			return output.UsageError("--since: %w", err)
		}
	}
	merchants, err := s.MerchantsNamed(c.Merchant)
	if err != nil {
		return err
	}
	since := cmp.Or(from.Begin, s.Now().UTC().Truncate(session.Day).Add(-findDays*session.Day))
	f := &finder{Session: s, value: strings.TrimSpace(c.Value), merchants: merchants, found: map[ledger.Key]bool{}}
	f.result.Matches, f.result.LogCommand = []foundView{}, f.logCommand(since)
	err = f.searchKeys()
	if err == nil && (len(f.result.Matches) == 0 || c.Since != "") {
		err = f.searchDays(since)
	}
	if err != nil {
		return err
	}
	slices.SortStableFunc(f.result.Matches, func(a, b foundView) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for _, text := range f.result.Searched {
		fmt.Fprintln(s.Stderr, "Searched", text)
	}
	if f.result.LogCommand != "" && len(f.result.Matches) == 0 {
		fmt.Fprintf(s.Stderr, "If it is a request id, this shows its log lines:\n%s\n", f.result.LogCommand)
	}
	err = s.Show(f.result, output.ListRows(f.result.Matches))
	if len(f.result.Matches) == 0 {
		notFound := errNothingFound
		if strings.Contains(c.Value, "**") {
			notFound = errMasked
		}
		err = errors.Join(err, notFound)
	}
	return err
}

type foundView struct {
	entries.View
	FoundBy string `json:"found_by" col:"FOUND BY"`
	Show    string `json:"show" col:"COMMAND"`
}

// FindResult is what a search found, and where it searched.
type FindResult struct {
	Matches  []foundView `json:"matches"`
	Searched []string    `json:"searched"`
	// LogCommand finds the log lines of a request id, if the value can be one.
	LogCommand string `json:"log_command,omitempty"`
}

// errNothingFound ends a search without a match. It does not repeat the value, which may be a telephone number.
// errMasked ends one for a key as the logs show it.
var (
	errNothingFound = errors.New("no transaction has this value: search more days with --since")
	errMasked       = errors.New("no transaction has this value, because its digits are masked: let the merchant say " +
		"its own value, or find the transaction by the time of the log line with list")
)

type finder struct {
	*session.Session
	value     string
	merchants []*merchant.Profile // only their transactions count
	result    FindResult
	found     map[ledger.Key]bool
}

func (f *finder) add(e *ledger.Entry, field string) {
	isOwner := func(p *merchant.Profile) bool { return p.ID == e.Merchant.ID }
	if e == nil || f.found[e.Key] || !slices.ContainsFunc(f.merchants, isOwner) {
		return
	}
	f.found[e.Key] = true
	show := f.Command(strings.ToLower(entries.KindLabel(e.Kind)), "show", e.ID)
	f.result.Matches = append(f.result.Matches, foundView{entries.ViewOf(e), field, show})
}

// searchKeys reads the items that can have the value in their keys.
func (f *finder) searchKeys() error {
	read := func(field string, kind ledger.Kind, id string) error {
		e, err := f.Stores.Ledger.Get(f, ledger.Key{Kind: kind, ID: id})
		f.add(e, field)
		return err
	}
	id := cmp.Or(uuidOf(f.value), f.value)
	err := errors.Join(read("order_id", ledger.Payment, f.value), read("id", ledger.Charge, id),
		read("id", ledger.SMS, id))
	for _, p := range f.merchants {
		if err != nil {
			return err
		}
		// An upstream key names its merchant: "<Name>.<clientCorrelator>" or "<Name>~<referenceCode>".
		for _, value := range slices.Compact([]string{f.value, strings.TrimPrefix(f.value, p.Name+".")}) {
			err = errors.Join(err, read("clientCorrelator", ledger.Charge, ledger.ChargeID(p.ID, value, "")),
				read("clientCorrelator", ledger.SMS, ledger.SMSID(p.ID, value)))
		}
		for _, value := range slices.Compact([]string{f.value, strings.TrimPrefix(f.value, p.Name+"~")}) {
			id, readErr := f.Stores.Ledger.ChargeOfReference(f, p.ID, value)
			if err = errors.Join(err, readErr); err == nil && id != "" {
				err = read("referenceCode", ledger.Charge, id)
			}
		}
	}
	f.result.Searched = append(f.result.Searched, "by key: order_id, id of a charge or SMS, and clientCorrelator, "+
		"referenceCode or upstream key of "+output.Plural(len(f.merchants), "merchant"))
	return err
}

// searchDays reads all transactions of the merchants that were created from a day on.
func (f *finder) searchDays(since time.Time) error {
	count := 0
	for _, p := range f.merchants {
		for e, err := range entries.Since(f.Session, p, since) {
			if err != nil {
				return err
			}
			if field := matchingField(e, f.value); field != "" {
				f.add(e, field)
			}
			count++
		}
	}
	f.result.Searched = append(f.result.Searched, fmt.Sprintf("the days from %s on, of %s: %s",
		since.Format(time.DateOnly), output.Plural(len(f.merchants), "merchant"), output.Plural(count, "transaction")))
	return nil
}

// logCommand is the command that finds the log lines of a request id, "" for another value. No table has request ids.
func (f *finder) logCommand(since time.Time) string {
	id := uuidOf(f.value)
	if id == "" {
		return ""
	}
	if f.Local {
		return fmt.Sprintf("grep -h %s %s/log/*.log", id,
			session.ShellWord(cmp.Or(f.Getenv(session.LocalVariable), session.LocalFolder)))
	}
	stack, _, named := strings.Cut(f.LedgerTable, "-LedgerTable")
	if !named {
		stack = "$S" // as docs/operations.md sets it
	}
	return fmt.Sprintf(`for f in charge pay sms status token notif receipt; do aws logs filter-log-events `+
		`--log-group-name "/%s/$f" --filter-pattern '{ $.RequestID = "%s" }' --start-time %d `+
		`--query 'events[].message' --output text; done`, stack, id, since.UnixMilli())
}
