package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
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
	Since    utcDay `placeholder:"DAY" help:"Search each day from this one on: the last 7 days if not given."`
}

// Validate refuses an empty value.
func (c *findCommand) Validate() error {
	if strings.TrimSpace(c.Value) == "" {
		return errors.New(`expected "<value>": it is empty`)
	}
	return nil
}

// foundView is a transaction with the field that has the value.
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

// finder collects the transactions that have a value.
type finder struct {
	*session
	value  string
	owner  *merchant.Profile // the only merchant whose transactions count, nil for all
	result findResult
	found  map[ledger.Key]bool
}

// Run searches by key first: one read for each thing that the value can be. Only if no key has it, or with --since, it
// reads the days.
func (c *findCommand) Run(s *session) error {
	merchants, owner, err := s.merchantsNamed(c.Merchant)
	if err != nil {
		return err
	}
	f := &finder{session: s, value: strings.TrimSpace(c.Value), owner: owner, found: map[ledger.Key]bool{}}
	f.result.Matches, f.result.LogCommand = []foundView{}, f.logCommand(c.Since.Time)
	err = f.searchKeys(merchants)
	if err == nil && (len(f.result.Matches) == 0 || !c.Since.IsZero()) {
		err = f.searchDays(merchants, cmp.Or(c.Since.Time, s.Now().UTC().Truncate(day).Add(-findDays*day)))
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

// merchantsNamed returns the merchant with a name or an id, also as owner. Without a name it returns all of them.
func (s *session) merchantsNamed(nameOrID string) (all []*merchant.Profile, owner *merchant.Profile, err error) {
	if err := s.openStores(); err != nil {
		return nil, nil, err
	}
	if nameOrID == "" {
		all, err = s.allMerchants()
		return all, nil, err
	}
	if owner, err = s.findMerchant(nameOrID); err != nil {
		return nil, nil, err
	}
	return []*merchant.Profile{owner}, owner, nil
}

// add adds a transaction, once.
func (f *finder) add(e *ledger.Entry, field string) {
	if e == nil || f.found[e.Key] || f.owner != nil && f.owner.ID != e.MerchantID {
		return
	}
	f.found[e.Key] = true
	f.result.Matches = append(f.result.Matches, foundView{entryViewOf(e), field, f.showCommand(e.Key)})
}

// showCommand is the command that shows a transaction.
func (s *session) showCommand(key ledger.Key) string {
	command := map[ledger.Kind]string{ledger.Payment: "payment"}[key.Kind]
	return s.toolCommand(cmp.Or(command, string(key.Kind)), "show", key.ID)
}

// plainWord matches a word that a shell does not change.
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
func (f *finder) searchKeys(merchants []*merchant.Profile) error {
	read := func(field string, kind ledger.Kind, id string) error {
		e, err := f.stores.Ledger.Get(f, ledger.Key{Kind: kind, ID: id})
		f.add(e, field)
		return err
	}
	err := errors.Join(read("order_id", ledger.Payment, f.value), read("id", ledger.Charge, f.value),
		read("id", ledger.SMS, f.value))
	for _, p := range merchants {
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
		"referenceCode or upstream key of "+plural(len(merchants), "merchant"))
	return err
}

// searchDays reads all transactions of the merchants that were created from a day on.
func (f *finder) searchDays(merchants []*merchant.Profile, since time.Time) error {
	count := 0
	for _, p := range merchants {
		from := since
		if p.CreatedAt.After(from) {
			from = p.CreatedAt
		}
		fmt.Fprintf(f.Stderr, "Reading the days of %s from %s.\n", p.Name, from.UTC().Format(time.DateOnly))
		for e, err := range f.entriesBetween(p.ID, from, f.Now()) {
			if err = cmp.Or(err, f.Err()); err != nil {
				return err
			}
			if field := matchingField(e, f.value); field != "" {
				f.add(e, field)
			}
			if count++; count%findProgress == 0 {
				fmt.Fprintf(f.Stderr, "%s: %d transactions read, %d found\n", e.CreatedAt.Format(time.DateOnly), count,
					len(f.result.Matches))
			}
		}
	}
	f.result.Searched = append(f.result.Searched, fmt.Sprintf("the days from %s on, of %s: %s",
		since.Format(time.DateOnly), plural(len(merchants), "merchant"), plural(count, "transaction")))
	return nil
}

// findProgress is the number of transactions between two lines of progress.
const findProgress = 10000

// matchingField names the field of an entry that has a value, "" for none.
func matchingField(e *ledger.Entry, value string) string {
	fields := []struct{ name, value string }{
		{"order_id or id", e.ID}, {"clientCorrelator", e.Correlator}, {"referenceCode", e.ReferenceCode},
		{"upstream key", e.UpstreamKey}, {"Transaction-id", e.TransactionID},
		{"operator's reference", e.OperatorReference}, {"operator's reference", e.Claim.OperatorReference},
		{"reference", e.MerchantReference}, {"address", e.Address}, {"callbackData", e.CallbackData},
	}
	for _, n := range slices.Concat(e.Delivered, e.Outbox) {
		fields = append(fields, struct{ name, value string }{"webhook-id", n.ID})
	}
	for _, f := range fields {
		if f.value == value && value != "" {
			return f.name
		}
	}
	for _, number := range []string{e.MSISDN, e.MSISDNReported, e.Claim.MSISDN, e.Address} {
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

// requestIDPattern matches the request ids of API Gateway.
var requestIDPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// logCommand is the command that finds the log lines of a request id, "" for another value. No table has request ids.
func (f *finder) logCommand(since time.Time) string {
	if !requestIDPattern.MatchString(f.value) {
		return ""
	}
	if f.Local {
		return fmt.Sprintf("grep -h %s %s/log/*.log", f.value, shellWord(cmp.Or(f.Getenv(localVariable), localFolder)))
	}
	since = cmp.Or(since, f.Now().UTC().Truncate(day).Add(-findDays*day))
	stack, _, _ := strings.Cut(f.LedgerTable, "-LedgerTable")
	return fmt.Sprintf(`for f in charge pay sms status token notif receipt; do aws logs filter-log-events `+
		`--log-group-name "/%s/$f" --filter-pattern '{ $.RequestID = "%s" }' --start-time %d `+
		`--query 'events[].message' --output text; done`, stack, f.value, since.UnixMilli())
}
