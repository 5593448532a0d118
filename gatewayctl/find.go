package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// findDays is how many days find searches without --since.
const findDays = 7

type findCommand struct {
	Value    string `arg:"" help:"An order_id, key, reference, id or telephone number."`
	Merchant string `placeholder:"NAME" help:"Only this merchant's transactions; of all merchants if not given."`
	Since    utcDay `placeholder:"DAY" help:"From this UTC day, yesterday or today on; the last 7 days if not given."`
}

type foundView struct {
	entryView
	FoundBy string `json:"found_by" col:"FOUND BY"`
	Show    string `json:"show" col:"COMMAND"`
}

type findResult struct {
	Matches  []foundView `json:"matches"`
	Searched []string    `json:"searched"`
	// LogCommand finds the log lines of a request id, if the value can be one.
	LogCommand string `json:"log_command,omitempty"`
}

// errNothingFound ends a search without a match. It does not repeat the value, which may be a telephone number.
var errNothingFound = errors.New("no transaction has this value: search more days with --since")

type finder struct {
	*session
	value     string
	merchants []*merchant.Profile // only their transactions count
	result    findResult
	found     map[ledger.Key]bool
}

// Run searches by key first: one read for each thing that the value can be. Only if no key has it, or with --since, it
// reads the days.
func (c *findCommand) Run(s *session) error {
	merchants, err := s.merchantsNamed(c.Merchant)
	if err != nil {
		return err
	}
	since := cmp.Or(c.Since.Time, s.Now().UTC().Truncate(day).Add(-findDays*day))
	f := &finder{session: s, value: strings.TrimSpace(c.Value), merchants: merchants, found: map[ledger.Key]bool{}}
	f.result.Matches, f.result.LogCommand = []foundView{}, f.logCommand(since)
	err = f.searchKeys()
	if err == nil && (len(f.result.Matches) == 0 || !c.Since.IsZero()) {
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
	err = s.show(f.result, listRows(f.result.Matches))
	if len(f.result.Matches) == 0 {
		err = errors.Join(err, errNothingFound)
	}
	return err
}

// merchantsNamed returns the merchant with a name or an id, or without a name all merchants.
func (s *session) merchantsNamed(nameOrID string) ([]*merchant.Profile, error) {
	if nameOrID == "" {
		return s.allMerchants()
	}
	p, err := s.findMerchant(nameOrID)
	return []*merchant.Profile{p}, err
}

func (f *finder) add(e *ledger.Entry, field string) {
	isOwner := func(p *merchant.Profile) bool { return p.ID == e.MerchantID }
	if e == nil || f.found[e.Key] || !slices.ContainsFunc(f.merchants, isOwner) {
		return
	}
	f.found[e.Key] = true
	subject := map[ledger.Kind]string{ledger.Payment: "payment"}[e.Kind]
	show := f.toolCommand(cmp.Or(subject, string(e.Kind)), "show", e.ID)
	f.result.Matches = append(f.result.Matches, foundView{entryViewOf(e), field, show})
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// toolCommand is a command line of this tool, for a person to run.
func (s *session) toolCommand(arguments ...string) string {
	words := []string{"gatewayctl"}
	if s.Local {
		words = append(words, "--"+localFlag)
	}
	for _, word := range arguments {
		words = append(words, shellWord(word))
	}
	return strings.Join(words, " ")
}

// shellWord quotes a word for a shell if it needs quotes.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// searchKeys reads the items that can have the value in their keys.
func (f *finder) searchKeys() error {
	read := func(field string, kind ledger.Kind, id string) error {
		e, err := f.stores.Ledger.Get(f, ledger.Key{Kind: kind, ID: id})
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
			id, readErr := f.stores.Ledger.ChargeOfReference(f, p.ID, value)
			if err = errors.Join(err, readErr); err == nil && id != "" {
				err = read("referenceCode", ledger.Charge, id)
			}
		}
	}
	f.result.Searched = append(f.result.Searched, "by key: order_id, id of a charge or SMS, and clientCorrelator, "+
		"referenceCode or upstream key of "+plural(len(f.merchants), "merchant"))
	return err
}

// searchDays reads all transactions of the merchants that were created from a day on.
func (f *finder) searchDays(since time.Time) error {
	count := 0
	for _, p := range f.merchants {
		for e, err := range entriesSince(f.session, p, since) {
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
		since.Format(time.DateOnly), plural(len(f.merchants), "merchant"), plural(count, "transaction")))
	return nil
}

// readProgress is the number of transactions between two lines of progress, also where all that is due is read.
const readProgress = 10000

// entriesSince reads the entries that a merchant created from a time on, with progress.
func entriesSince(s *session, p *merchant.Profile, since time.Time) iter.Seq2[*ledger.Entry, error] {
	return func(yield func(*ledger.Entry, error) bool) {
		count := 0
		since = latestTime(since, p.CreatedAt)
		fmt.Fprintf(s.Stderr, "Reading the days of %s from %s.\n", p.Name, since.UTC().Format(time.DateOnly))
		for e, err := range entriesBetween(s, p.ID, since, s.Now()) {
			if !yield(e, cmp.Or(err, s.Err())) {
				return
			}
			if count++; count%readProgress == 0 {
				fmt.Fprintf(s.Stderr, "%s: %d transactions read\n", e.CreatedAt.Format(time.DateOnly), count)
			}
		}
	}
}

// matchingField names the field of an entry that has a value, "" for none.
func matchingField(e *ledger.Entry, value string) string {
	fields := []struct{ name, value string }{
		{"order_id or id", e.ID}, {"clientCorrelator", e.Correlator}, {"referenceCode", e.ReferenceCode},
		{"upstream key", e.UpstreamKey}, {"Transaction-id", e.TransactionID},
		{"operator's reference", e.OperatorReference}, {"operator's reference", e.Claim.OperatorReference},
		{"operator's reference", e.ManualReference},
		{"reference", e.MerchantReference}, {"callbackData", e.CallbackData},
	}
	for _, n := range slices.Concat(e.Delivered, e.Outbox) {
		fields = append(fields, struct{ name, value string }{"webhook-id", n.ID})
	}
	for _, f := range fields {
		if value != "" && (f.value == value || uuidOf(value) != "" && uuidOf(f.value) == uuidOf(value)) {
			return f.name
		}
	}
	for _, number := range []string{e.MSISDN, e.MSISDNReported, e.Claim.MSISDN} {
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

// logCommand is the command that finds the log lines of a request id, "" for another value. No table has request ids.
func (f *finder) logCommand(since time.Time) string {
	id := uuidOf(f.value)
	if id == "" {
		return ""
	}
	if f.Local {
		return fmt.Sprintf("grep -h %s %s/log/*.log", id, shellWord(cmp.Or(f.Getenv(localVariable), localFolder)))
	}
	stack, _, named := strings.Cut(f.LedgerTable, "-LedgerTable")
	if !named {
		stack = "$S" // as docs/operations.md sets it
	}
	return fmt.Sprintf(`for f in charge pay sms status token notif receipt; do aws logs filter-log-events `+
		`--log-group-name "/%s/$f" --filter-pattern '{ $.RequestID = "%s" }' --start-time %d `+
		`--query 'events[].message' --output text; done`, stack, id, since.UnixMilli())
}
