// Package restore stores what a restore of the ledger to an earlier moment lost.
//
// Log lines and merchants' lists after that moment have the keys that the ledger lacks. Its invariant: each of these
// keys becomes an entry that no request takes over, and only a status of its operator or a person ends it. It frees no
// key and releases none (decision "restored").
package restore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// Commands are the commands below restore.
type Commands struct {
	Check check `cmd:"" help:"Store the keys that log lines and merchants' lists have and the restored ledger lacks."`
}

type check struct {
	At   session.Moment `required:"" placeholder:"TIME" help:"The moment to which the ledger was restored."`
	Log  []string       `sep:"none" placeholder:"FILE" predictor:"file" help:"${restore_log_help}"`
	List lists          `mapsep:"none" placeholder:"MERCHANT=FILE" help:"${restore_list_help}"`

	Timeout time.Duration `default:"10s" help:"The longest wait for one response of an operator."`
}

// lineMargin is how long before the moment a request may have begun whose writes the restore lost: more than any
// function runs, and than clocks differ.
const lineMargin = 5 * time.Minute

// View is what the command finds of a merchant, and what it does about it.
type View struct {
	Merchant string `json:"merchant" col:"MERCHANT"`
	Keys     int    `json:"keys" col:"KEYS"`       // in the log lines and in the list
	Present  int    `json:"present" col:"PRESENT"` // in the ledger
	Stored   int    `json:"stored" col:"STORED"`   // as unknown: the ledger lacked them
	Reopened int    `json:"reopened" col:"REOPENED"`
	Final    int    `json:"final" col:"FINAL"` // of these two: by a lookup
	NoAmount int    `json:"without_amount" col:"NO AMOUNT"`
	// Masked counts the log lines whose key is masked, shortened or torn.
	Masked int `json:"masked" col:"MASKED"`
	// Unlisted counts those of them that no row of the list explains.
	Unlisted int    `json:"unlisted" col:"UNLISTED"`
	List     string `json:"list" col:"LIST"`
	Status   string `json:"status" col:"STATUS"`
}

// The words of View.List.
const (
	listRead       = "read"
	listMissing    = "missing"
	listIncomplete = "incomplete" // it does not explain each masked line
)

// run is one run of the command.
type run struct {
	*check
	*session.Session
	shops map[string]*shop // by the merchant's name
	found map[ledger.Key]*sighting
	lines lineCounts
	// logStack is the stack of all log lines, "" while it is not known.
	logStack string
	earlier  []earlierLine // from before the moment
	near     neighbours
	pending  []*ledger.Entry // the payments that were stored, for lookups
}

// shop is a merchant with its result.
type shop struct {
	profile  *merchant.Profile
	coverage coverage
	view     View
}

// Run reads the files, and then stores what the ledger lacks.
func (c *check) Run(s *session.Session, profiles []*merchant.Profile) error {
	switch {
	case len(c.Log)+len(c.List) == 0:
		return output.UsageError("give the functions' log lines with --log FILE, merchants' lists with --list M=FILE")
	case c.At.After(s.Now()):
		return output.UsageError("--at %s is in the future: give the moment of the restore",
			output.FormatTime(c.At.Time))
	}
	r := &run{check: c, Session: s, shops: map[string]*shop{}, found: map[ledger.Key]*sighting{}}
	for _, p := range profiles {
		r.shops[p.Name] = &shop{profile: p, view: View{Merchant: p.Name}}
	}
	if err := r.read(); err != nil {
		return err
	}
	if err := r.checkMoment(); err != nil {
		return err
	}
	var err error
	if r.near, err = r.findNeighbours(); err != nil {
		return err
	}
	subject := "ledger of " + c.At.Format(time.RFC3339)
	return s.ExecuteAndShow("store what a restore lost", subject, r.apply, func() error {
		r.advise()
		return session.ShowList(s, r.views())
	})
}

// read reads the lists, and then the log lines: a key of a list is exact.
func (r *run) read() error {
	for _, name := range slices.Sorted(maps.Keys(r.List)) {
		of := r.shops[name]
		if of == nil {
			return fmt.Errorf("there is no merchant %q: gatewayctl merchant list shows all", name)
		}
		if err := r.readList(of, r.List[name]); err != nil {
			return err
		}
		of.view.List = listRead
	}
	for _, path := range r.Log {
		if err := r.readLog(path); err != nil {
			return err
		}
	}
	for _, of := range r.shops {
		of.view.Masked = len(of.coverage.lines) + of.coverage.torn
		of.view.Unlisted = of.coverage.unlisted()
	}
	return nil
}

// apply suspends the merchants whose list is missing, stores the keys, and looks payments up. A run that failed half
// way is run again: what is stored is present then.
func (r *run) apply() (done string, err error) {
	for _, name := range slices.Sorted(maps.Keys(r.shops)) {
		if err := r.suspend(r.shops[name]); err != nil {
			return "", fmt.Errorf("suspend %s: %w", name, err)
		}
	}
	if err = r.store(); err == nil {
		err = r.lookUp()
	}
	var sum View
	for _, of := range r.shops {
		sum.Keys += of.view.Keys
		sum.Stored += of.view.Stored
		sum.Reopened += of.view.Reopened
		sum.Final += of.view.Final
	}
	return fmt.Sprintf("%s; %d stored as unknown, %d reopened, %d of these final by a lookup; suspended: %s",
		output.Plural(sum.Keys, "key"), sum.Stored, sum.Reopened, sum.Final,
		cmp.Or(output.JoinComma(r.missingLists()), "none")), err
}

// suspend suspends a merchant whose log lines have masked keys, until its list explains each.
func (r *run) suspend(of *shop) error {
	of.view.Status = of.profile.Status
	if of.view.Unlisted == 0 {
		return nil
	}
	if of.view.List == listRead {
		of.view.List = listIncomplete
	} else {
		of.view.List = listMissing
	}
	if of.profile.Status == merchant.StatusSuspended {
		return nil
	}
	p, err := r.FindMerchant(of.profile.ID)
	if err != nil {
		return err
	}
	merchant.Suspend(p, r.Now())
	of.view.Status = p.Status
	return r.Stores.Merchants.Update(r, p)
}

// missingLists names the merchants whose list is missing or incomplete.
func (r *run) missingLists() (names []string) {
	for _, v := range r.views() {
		if v.Unlisted > 0 {
			names = append(names, v.Merchant)
		}
	}
	return names
}

// views are the results of the merchants that have one, by name.
func (r *run) views() (views []View) {
	for _, name := range slices.Sorted(maps.Keys(r.shops)) {
		if v := r.shops[name].view; v.Keys > 0 || v.Masked > 0 || v.List != "" {
			views = append(views, v)
		}
	}
	return views
}

// advise writes what was read, and what the engineer must do before the functions may run.
func (r *run) advise() {
	fmt.Fprintf(r.Stderr, "%s of %s have a key after the moment", output.Plural(r.lines.used, "log line"),
		output.Plural(r.lines.all, "line"))
	if r.lines.used > 0 {
		fmt.Fprintf(r.Stderr, ", from %s to %s", output.FormatTime(r.lines.first), output.FormatTime(r.lines.last))
	}
	fmt.Fprintln(r.Stderr, ".")
	r.adviseMoment()
	for _, v := range r.views() {
		switch {
		case v.List == listMissing:
			fmt.Fprintf(r.Stderr, "%s %s suspended: the keys of %s are masked or torn. Get its list of that time, "+
				"and run the command again with --list %s=FILE.\n", v.Merchant, r.IfApplied("is", "would be"),
				output.Plural(v.Masked, "log line"), v.Merchant)
		case v.List == listIncomplete:
			fmt.Fprintf(r.Stderr, "%s %s suspended: no row of its list explains %s of %s with masked or torn keys. "+
				"Get its list of all of that time, and run the command again.\n", v.Merchant,
				r.IfApplied("is", "would be"), fmt.Sprint(v.Unlisted), output.Plural(v.Masked, "log line"))
		case v.List == listRead && v.Status == merchant.StatusSuspended:
			fmt.Fprintf(r.Stderr, "The list of %s was read. Let it send again: %s\n", v.Merchant,
				r.Command(session.ConfirmArguments("merchant", "resume", v.Merchant)...))
		}
	}
}
