package transactions

import (
	"fmt"
	"strings"
	"time"

	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/search"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// filterFlags are the filters of a search, in the order of search.Filter.
type filterFlags struct {
	Merchant string `placeholder:"NAME" help:"Only this merchant's transactions; of all merchants if not given."`
	Kind     string `placeholder:"KIND" help:"Only charge, pay or sms."`
	Operator string `placeholder:"NAME" help:"Only this operator (mno-name)."`
	Platform string `placeholder:"NAME" help:"Only this operator's platform, such as mtn-momo."`
	Country  string `placeholder:"CODE" help:"Only this country, such as CI."`
	Channel  string `placeholder:"NAME" help:"Only payments of this channel: web, tpe or ussd."`
	Status   string `placeholder:"STATUS" help:"Only this status, such as pending."`
	State    string `placeholder:"STATE" help:"Only this state of the call, such as unknown."`
	Amount   string `placeholder:"AMOUNT" help:"Only this amount, such as 1005 or 1.50, in any currency."`
	Payer    string `placeholder:"DIGITS" help:"Only payers whose number ends so (2 to 4 digits); with another filter."`
}

// arguments are the filters as they are typed.
func (f filterFlags) arguments() (arguments []string) {
	for _, flag := range []struct{ name, value string }{
		{"merchant", f.Merchant}, {"kind", f.Kind}, {"operator", f.Operator}, {"platform", f.Platform},
		{"country", f.Country}, {"channel", f.Channel}, {"status", f.Status}, {"state", f.State},
		{"amount", f.Amount}, {"payer", f.Payer},
	} {
		if flag.value != "" {
			arguments = append(arguments, "--"+flag.name, flag.value)
		}
	}
	return arguments
}

// FilteredResult is a page of a search by filters, the newest transaction first.
type FilteredResult struct {
	Transactions []entries.View `json:"transactions"`
	// SearchedUntil is how far back the range was searched: all that was created after it was searched.
	SearchedUntil time.Time `json:"searched_until"`
	Continue      string    `json:"continue"` // "" at the end of the range
	Calls         int       `json:"calls"`
	Throttled     bool      `json:"throttled,omitempty"` // the table throttles: the page ended early
}

// filteredRow is a row of the table for people.
type filteredRow struct {
	CreatedAt time.Time `col:"TIME"`
	Merchant  string    `col:"MERCHANT"`
	ID        string    `col:"KEY"`
	Kind      string    `col:"KIND"`
	Operator  string    `col:"OPERATOR"`
	Country   string    `col:"COUNTRY"`
	Amount    string    `col:"AMOUNT"`
	Status    string    `col:"STATUS"`
	State     string    `col:"STATE"`
	Payer     string    `col:"PAYER"`
}

func filteredRowOf(v entries.View) filteredRow {
	return filteredRow{
		v.CreatedAt, v.Merchant, v.ID, string(v.Kind), v.Operator, v.Country,
		strings.TrimSpace(v.Amount + " " + v.Currency), string(v.Status), string(v.State), shortMask(v.MSISDN),
	}
}

// shortMask keeps two stars of a masked number: its last digits are what a person compares.
func shortMask(masked string) string {
	digits := strings.TrimLeft(masked, "*")
	return masked[:min(2, len(masked)-len(digits))] + digits
}

// searchStore is what a search reads.
type searchStore struct {
	ledger.DayIndex
	deployment.BatchReader
}

// countedMerchants returns the merchants that a search reads, and how many calls this took.
func countedMerchants(s *session.Session, nameOrID string) ([]*merchant.Profile, int, error) {
	if nameOrID == "" {
		return s.CountedMerchants()
	}
	profiles, err := s.MerchantsNamed(nameOrID)
	return profiles, 2, err // the id by the name, and the profile
}

// search shows one page of a search by the filters, and the command of the next one.
func (c *Find) search(s *session.Session) error {
	if err := s.OpenStores(); err != nil {
		return err
	}
	store := searchStore{s.Stores.Ledger, s.Stores.Batches}
	page, err := search.Find(s, store, func() ([]*merchant.Profile, int, error) {
		return countedMerchants(s, c.Merchant)
	}, search.Query{
		Filter: search.Filter(c.filterFlags), Since: c.Since, Until: c.Until, Continue: c.Continue, Now: s.Now(),
	})
	if err != nil {
		return err
	}
	views := output.MapAll(page.Entries, entries.ViewOf)
	c.reportSearch(s, page, len(views))
	if len(views) == 0 && !s.JSON {
		return nil
	}
	return s.Show(FilteredResult{
		Transactions: views, SearchedUntil: page.SearchedUntil, Continue: page.Continue, Calls: page.Calls,
		Throttled: page.Throttled,
	}, output.ListRows(output.MapAll(views, filteredRowOf)))
}

// reportSearch writes how far the search came, and how it continues.
func (c *Find) reportSearch(s *session.Session, page search.Page, found int) {
	from, to := output.FormatTime(page.Range.Since), output.FormatTime(page.Range.Until)
	calls := output.Plural(page.Calls, "call")
	if page.Throttled {
		fmt.Fprintln(s.Stderr, "The ledger's table throttles reads: the page ended early.")
	}
	if page.Continue == "" {
		fmt.Fprintf(s.Stderr, "Searched all from %s to %s: %s on this page, %s.\n", from, to,
			output.Plural(found, "transaction"), calls)
		return
	}
	until := page.SearchedUntil.Format(time.TimeOnly)
	if !page.SearchedUntil.Truncate(session.Day).Equal(s.Now().UTC().Truncate(session.Day)) {
		until = output.FormatTime(page.SearchedUntil)
	}
	command := append(append([]string{"find"}, c.arguments()...), "--continue="+page.Continue) // it may begin with -
	fmt.Fprintf(s.Stderr, "From %s to %s, searched until %s: %s on this page, %s. Continue with\n%s\n", to, from, until,
		output.Plural(found, "transaction"), calls, s.Command(command...))
}
