// Package counts has gatewayctl's command that counts the transactions of closed days.
//
// It reads the ledger and stores counts. Its invariant: nothing is stored of a day that has not ended.
package counts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/counts/daycount"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/money"
)

// Counts is the command counts.
type Counts struct {
	Day      session.UTCDay `placeholder:"DAY" help:"Count the transactions of this UTC day; with --yes store it."`
	Merchant string         `placeholder:"NAME" help:"Only this merchant's; of all merchants if not given."`
	Since    session.UTCDay `placeholder:"DAY" help:"Show the stored counts from this UTC day on, else of 7 days."`
	Until    session.UTCDay `placeholder:"DAY" help:"To this UTC day, today if not given."`
}

// maxDays bounds the days whose stored counts are shown at once. No count is stored for longer.
const maxDays = 400

// usualDays is how many days are shown without --since.
const usualDays = 7

// Validate refuses a day beside a range.
func (c *Counts) Validate() error {
	if !c.Day.IsZero() && !(c.Since.IsZero() && c.Until.IsZero()) {
		return errors.New("--day excludes --since and --until: count the day, or show the stored counts of the range")
	}
	return nil
}

// Day is what is known of a UTC day.
type Day struct {
	Day       string          `json:"day"`
	Partial   bool            `json:"partial"`     // the day has not ended
	Merchants []MerchantCount `json:"merchants"`   // those that are counted
	Missing   []string        `json:"not_counted"` // the names of merchants that are not
}

// MerchantCount is the count of a merchant's day.
type MerchantCount struct {
	Merchant string `json:"merchant"`
	ID       string `json:"id"`
	// Change is what storing it changes: new, changed, same or kept; "" for a count that was only read, or is partial.
	Change string           `json:"change,omitempty"`
	Total  daycount.Numbers `json:"total"`
	Rows   []daycount.Row   `json:"rows"`
}

// The changes that storing a count makes.
const (
	changeNew     = "new"
	changeChanged = "changed"
	changeSame    = "same"
	changeKept    = "kept" // the stored count has transactions that the ledger does not have any more
)

const action = "count the transactions of a day"

// errNoTable is the error of a deployment without the table of limits, which has the counts.
var errNoTable = output.UsageError("LIMIT_TABLE is not set: name the table, which has the stored counts")

// Run counts a day, or shows stored counts.
func (c *Counts) Run(s *session.Session) error {
	today := s.Now().UTC().Truncate(session.Day)
	if c.Day.After(today) {
		return output.UsageError("--day %s has not begun", c.Day.Format(time.DateOnly))
	}
	isPartial := c.Day.Equal(today)
	if isPartial && s.Yes {
		return output.UsageError("--day %s has not ended (UTC): its counts are shown, and never stored",
			c.Day.Format(time.DateOnly))
	}
	profiles, err := s.MerchantsNamed(c.Merchant)
	if err != nil {
		return err
	}
	slices.SortFunc(profiles, func(a, b *merchant.Profile) int { return strings.Compare(a.Name, b.Name) })
	switch {
	case s.Stores.Counts == nil:
		return errNoTable
	case c.Day.IsZero():
		return c.showStored(s, profiles, today)
	case isPartial:
		fmt.Fprintf(s.Stderr, "%s has not ended (UTC): the counts are partial, and not stored.\n",
			c.Day.Format(time.DateOnly))
	}
	counter := &counter{Session: s, day: c.Day.Time, profiles: createdBefore(profiles, c.Day.Add(session.Day))}
	result := Day{Day: c.Day.Format(time.DateOnly), Partial: isPartial, Missing: []string{}}
	if isPartial {
		result.Merchants, err = counter.count()
	} else {
		err = s.Execute(action, c.subject(profiles), func() (done string, err error) {
			result.Merchants, done, err = counter.store()
			return done, err
		})
	}
	if err != nil {
		return err
	}
	return s.Show(result, rowsOf([]Day{result}))
}

// subject names the day and the merchants in the audit record.
func (c *Counts) subject(profiles []*merchant.Profile) string {
	of := "all merchants"
	if c.Merchant != "" {
		of = profiles[0].Name
	}
	return c.Day.Format(time.DateOnly) + " of " + of
}

// createdBefore returns the merchants that were added before a time. Others have no transaction before it.
func createdBefore(profiles []*merchant.Profile, end time.Time) []*merchant.Profile {
	return slices.DeleteFunc(slices.Clone(profiles), func(p *merchant.Profile) bool {
		return !p.CreatedAt.Before(end)
	})
}

// showStored shows the stored counts of a range, and the merchants without a count on each day.
func (c *Counts) showStored(s *session.Session, profiles []*merchant.Profile, today time.Time) error {
	first, last := c.Since.Time, c.Until.Time
	if last.IsZero() {
		last = today
	}
	if first.IsZero() {
		first = last.Add(-(usualDays - 1) * session.Day)
	}
	count := int(last.Sub(first)/session.Day) + 1
	switch {
	case count < 1:
		return output.UsageError("the range is empty: --until is a day before --since %s", first.Format(time.DateOnly))
	case count > maxDays:
		return output.UsageError("the range has %d days: show at most %d at once", count, maxDays)
	}
	var keys []daycount.Key
	for i := range count {
		at := first.Add(time.Duration(i) * session.Day)
		for _, p := range createdBefore(profiles, at.Add(session.Day)) {
			keys = append(keys, daycount.KeyOf(p.ID, at))
		}
	}
	forms, err := load(s, keys)
	if err != nil {
		return err
	}
	days := []Day{}
	for i := range count {
		at := first.Add(time.Duration(i) * session.Day)
		one, err := storedDay(forms, createdBefore(profiles, at.Add(session.Day)), at)
		if err != nil {
			return err
		}
		one.Partial = !at.Before(today)
		days = append(days, one)
	}
	return s.Show(days, rowsOf(days))
}

// storedDay is a day as it is stored.
func storedDay(forms map[daycount.Key]string, profiles []*merchant.Profile, at time.Time) (Day, error) {
	one := Day{Day: at.Format(time.DateOnly), Merchants: []MerchantCount{}, Missing: []string{}}
	for _, p := range profiles {
		form, isCounted := forms[daycount.KeyOf(p.ID, at)]
		if !isCounted {
			one.Missing = append(one.Missing, p.Name)
			continue
		}
		found, err := daycount.Decode(form)
		if err != nil {
			return one, fmt.Errorf("%s of %s: %w", one.Day, p.Name, err)
		}
		one.Merchants = append(one.Merchants, newMerchantCount(p, found))
	}
	return one, nil
}

func newMerchantCount(p *merchant.Profile, c daycount.Count) MerchantCount {
	return MerchantCount{Merchant: p.Name, ID: p.ID, Total: c.Total(), Rows: append([]daycount.Row{}, c.Rows...)}
}

// row is a row of the table for people.
type row struct {
	Day       string `col:"DAY"`
	Merchant  string `col:"MERCHANT"`
	Operator  string `col:"OPERATOR"`
	Country   string `col:"COUNTRY"`
	Operation string `col:"OPERATION"`
	Number    string `col:"NUMBER"`
	Succeeded string `col:"SUCCEEDED"`
	Failed    string `col:"FAILED"`
	Unknown   string `col:"UNKNOWN"`
	Pending   string `col:"PENDING"`
	Amounts   string `col:"AMOUNTS"`
	Note      string `col:"NOTE"`
}

// rowsOf are the rows of days: the rows of each count, and a row for each merchant without transactions or a count.
func rowsOf(days []Day) output.Table {
	var rows []row
	for _, one := range days {
		note := ""
		if one.Partial {
			note = "partial"
		}
		for _, m := range one.Merchants {
			if len(m.Rows) == 0 {
				rows = append(rows, row{Day: one.Day, Merchant: m.Merchant, Number: "0", Note: join(note, m.Change)})
			}
			for _, r := range m.Rows {
				rows = append(rows, row{
					one.Day, m.Merchant, r.Operator, r.Country, string(r.Operation), fmt.Sprint(r.Number),
					fmt.Sprint(r.Succeeded), fmt.Sprint(r.Failed), fmt.Sprint(r.Unknown), fmt.Sprint(r.Pending),
					formatAmounts(r.Numbers), join(note, m.Change),
				})
			}
		}
		for _, name := range one.Missing {
			rows = append(rows, row{Day: one.Day, Merchant: name, Note: join(note, "not counted")})
		}
	}
	return output.ListRows(rows)
}

func join(texts ...string) string {
	return output.JoinComma(slices.DeleteFunc(texts, func(text string) bool { return text == "" }))
}

// formatAmounts writes the sums in major units.
func formatAmounts(n daycount.Numbers) string {
	return output.JoinComma(output.MapAll(n.Currencies(), func(currency string) string {
		exponent, _ := market.CurrencyExponent(currency)
		return money.Format(n.Amounts[currency], exponent) + " " + currency
	}))
}
