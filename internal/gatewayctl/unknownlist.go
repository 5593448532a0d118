package gatewayctl

import (
	"fmt"
	"slices"
	"time"

	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/operator"
)

type unknownCommands struct {
	List    unknownList    `cmd:"" help:"List what is unknown, the oldest first."`
	Resolve unknownResolve `cmd:"" help:"Settle one: by asking its operator, or by hand with --as."`
}

type unknownList struct {
	Merchant string `placeholder:"NAME" help:"Only this merchant's, of the days --from to --to, however many they are."`
	From     string `placeholder:"DAY" help:"With --merchant: the first UTC day of creation."`
	To       string `placeholder:"DAY" help:"With --merchant: the last UTC day of creation."`
}

// unknownView is an entry that nobody knows the outcome of.
type unknownView struct {
	entryView
	Age             string `json:"age"`
	Claimed         string `json:"claimed,omitempty"`
	LookupSupported bool   `json:"may_look_up"` // by resolve; else by hand
}

// Run lists the entries of the due index that are unknown, each of which has a time at which it is looked at again; or
// those of a merchant's days.
func (c *unknownList) Run(s *session) error {
	find := c.listFromIndex
	if c.Merchant != "" || c.From != "" || c.To != "" {
		find = c.listFromDays
	}
	entries, err := find(s)
	if err != nil {
		return err
	}
	views := []unknownView{}
	for _, e := range entries {
		if e.OutcomeUncertain(s.Now()) {
			views = append(views, c.viewOf(e, s.Now()))
		}
	}
	slices.SortFunc(views, func(a, b unknownView) int { return a.CreatedAt.Compare(b.CreatedAt) })
	rows := table{{"CREATED", "AGE", "KIND", "ID", "MERCHANT", "AMOUNT", "CURRENCY", "OPERATOR", "CLAIMED", "LOOKUP"}}
	for _, v := range views {
		rows = append(rows, []string{formatTime(v.CreatedAt), v.Age, string(v.Kind), v.ID, v.Merchant, v.Amount, v.Currency, v.Operator,
			v.Claimed, fmt.Sprint(v.LookupSupported)})
	}
	return s.show(views, rows)
}

// listFromIndex reads what the index says is to be looked at.
func (c *unknownList) listFromIndex(s *session) (found []*ledger.Entry, err error) {
	stores, err := s.openStores()
	if err != nil {
		return nil, err
	}
	for shard := range ledger.DueShards {
		keys, err := stores.Ledger.DueKeys(s, shard, s.Now().Add(365*day), ledgerdynamo.MaxPage)
		if err != nil {
			return nil, err
		}
		if len(keys) == ledgerdynamo.MaxPage {
			fmt.Fprintf(s.Stderr, "Part %d of the index has more than %s: later ones are not looked at; --merchant looks at all of one.\n", shard, plural(len(keys), "entry"))
		}
		entries, err := s.readEntries(keys)
		if err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(entries, func(e *ledger.Entry) bool { return !e.OutcomeUncertain(s.Now()) })...)
	}
	return found, nil
}

// listFromDays reads a merchant's days.
func (c *unknownList) listFromDays(s *session) (found []*ledger.Entry, err error) {
	if c.Merchant == "" || c.From == "" || c.To == "" {
		return nil, usageError("--merchant, --from and --to go together")
	}
	from, to, err := parseDays(c.From, c.To)
	if err != nil {
		return nil, err
	}
	p, err := s.findMerchant(c.Merchant)
	if err != nil {
		return nil, err
	}
	for e, err := range s.entriesBetween(p.ID, from, to) {
		if err != nil {
			return nil, err
		}
		if e.OutcomeUncertain(s.Now()) {
			found = append(found, e)
		}
	}
	return found, nil
}

func (c *unknownList) viewOf(e *ledger.Entry, now time.Time) unknownView {
	row, _ := operator.FindCapabilities(e.Operator)
	return unknownView{
		entryView: entryViewOf(e), Age: now.Sub(e.CreatedAt).Truncate(time.Second).String(), Claimed: string(e.Claim.Status),
		LookupSupported: e.Kind == ledger.Payment && row.HasStatusLookup,
	}
}
