package transactions

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/confirm"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator"
)

// Unknown are the commands below unknown.
type Unknown struct {
	List    unknownList    `cmd:"" help:"List the transactions with an unknown outcome, the oldest first."`
	Waiting unknownWaiting `cmd:"" help:"Count what waits for an operator's status, by account and age."`
	Resolve unknownResolve `cmd:"" help:"Resolve one: by a status lookup, or manually with --as."`
	Lookup  unknownLookup  `cmd:"" help:"Look up now all payments that wait at a platform, within its rate."`
}

type unknownList struct {
	Merchant string `arg:"" optional:"" help:"Only this merchant's, of the days --from to --to."`
	session.DayRange
}

// Run lists a merchant's days or, without a merchant, the due index. Every entry that it lists is in that index.
func (c *unknownList) Run(s *session.Session) error {
	if c.Merchant == "" && !(c.From.IsZero() && c.To.IsZero()) {
		return output.UsageError(`expected "<merchant>" before --from and --to`)
	}
	if err := s.OpenStores(); err != nil {
		return err
	}
	found := entries.Due(s)
	if c.Merchant != "" {
		found = entries.InRange(s, c.Merchant, c.Times(), nil)
	}
	var views []UnknownView
	for e, err := range found {
		if err != nil {
			return err
		}
		if e.Unknowable() || !e.OutcomeUncertain(s.Now()) && !entries.PastLifetime(s, e) {
			continue
		}
		views = append(views, UnknownView{
			View: entries.ViewOf(e), Age: s.Now().Sub(e.CreatedAt).Truncate(time.Second).String(),
			Claimed: string(e.Claim.Status), LookupSupported: entries.ComesByLookup(e),
			Command: s.Command(entries.ResolveArguments(e, s.Now())...),
		})
	}
	slices.SortFunc(views, func(a, b UnknownView) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return session.ShowList(s, views)
}

// UnknownView is a transaction with an unknown outcome, and the command that ends it.
type UnknownView struct {
	entries.View
	Age             string `json:"age" col:"AGE"`
	Claimed         string `json:"claimed,omitempty" col:"CLAIMED"`
	LookupSupported bool   `json:"lookup_supported" col:"LOOKUP"` // else it is resolved manually
	Command         string `json:"command" col:"COMMAND"`         // that ends it
}

type unknownResolve struct {
	Kind    string        `arg:"" enum:"pay,charge,sms" help:"pay, charge or sms."`
	ID      string        `arg:"" help:"The order_id, or the id of the charge or SMS."`
	As      string        `enum:"${resolve_as}" default:"lookup" help:"${resolve_as_help}"`
	Timeout time.Duration `default:"10s" help:"The longest wait for the operator's response."`

	OperatorReference string `placeholder:"ID" help:"With another --as: the operator's id in its statement."`
}

// Run resolves the entry by the operator's status or manually (decision "unknown-by-hand").
func (c *unknownResolve) Run(s *session.Session) error {
	if c.OperatorReference != "" && (c.As == resolveByLookup || !IsOperatorReference(c.OperatorReference)) {
		return output.UsageError(
			"--operator-reference is the id in the operator's statement, of at most 100 characters " +
				"without spaces: give it with --as")
	}
	key := ledger.Key{Kind: ledger.Kind(c.Kind), ID: c.ID}
	e, err := entries.Find(s, c.ID, key.Kind)
	if err != nil {
		return err
	}
	if e.Amount.CountsDaily && s.Stores.DailyAmounts == nil {
		return output.UsageError("the amount of %s counts against the merchant's daily limit and may need a refund: "+
			"name the table of limits with LIMIT_TABLE or --limit-table", c.ID)
	}
	change, err := c.resolution(s, e)
	if err != nil {
		return err
	}
	var resolved *ledger.Entry
	return s.ExecuteAndShow("resolve as "+c.As, key.String()+" of "+e.Merchant.Name, func() (string, error) {
		stored, failed := entries.Resolve(s, key, change)
		if failed != nil {
			return "nothing", failed
		}
		if stored.RefundErr != nil {
			fmt.Fprintln(s.Stderr, "The amount still counts against the merchant's daily limit:", stored.RefundErr)
		}
		resolved = stored.Entry
		return outcomeText(resolved), nil
	}, func() error { return entries.ShowHistory(s, resolved) })
}

// resolution returns the change that resolves the entry. It is applied to the stored entry, which may have changed
// since e was read. A manual resolution that e itself does not allow is refused before the person confirms it.
func (c *unknownResolve) resolution(s *session.Session, e *ledger.Entry) (entries.Change, error) {
	userSMS := false
	if e.Kind == ledger.Payment {
		current, err := session.ReadSecret(s, s.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
		if err != nil {
			return nil, err
		}
		operators := accounts.NewDirectory(s, current.Value)
		if c.As == resolveByLookup {
			return lookUpResolution(s, e, accounts.NewConfirmer(s, operators, c.Timeout))
		}
		_, _, userSMS = operators.UserSMSSender(e)
	} else if c.As == resolveByLookup {
		values := "applied or not-applied"
		if e.Kind == ledger.SMS {
			values = "applied, not-applied or unknowable"
		}
		return nil, output.UsageError("no operator has a status lookup for a %s: use --as %s",
			entries.KindLabel(e.Kind), values)
	}
	refusal := oneapi.Render(&fault.Fault{
		Kind: fault.OperatorError, OperatorException: &fault.OperatorException{MessageID: "SVC0270"},
	})
	outcome := ledger.ManualOutcome{
		ManualResolution: ledger.ManualResolution{Outcome: c.As, Reason: s.Reason},
		Reference:        c.OperatorReference, Owner: e.Owner,
		ResponseStatus: refusal.Status, ResponseBody: refusal.Body, UserSMS: userSMS, Lifetime: s.PaymentLifetime,
	}
	if e.Kind == ledger.Charge {
		p, err := s.FindMerchant(e.Merchant.ID)
		if err != nil {
			return nil, err
		}
		outcome.NotifyURL = p.ChargeNotifURL()
	}
	var err error
	outcome.Who, err = s.Stores.Caller(s)
	if err != nil {
		return nil, err
	}
	change := c.manualResolution(s, outcome)
	if end := entries.RetryEnd(e, s.Now()); !end.IsZero() && e.OutcomeUncertain(s.Now()) {
		fmt.Fprintf(s.Stderr, "Warning: until %s the merchant may send the same request again, and its operator "+
			"decides it. A manual resolution is final: wait, unless the operator's statement is certain.\n",
			output.FormatTime(end))
	}
	_, err = change(e.Clone())
	return change, err
}

// manualResolution returns the change of a person's decision about the attempt of an owner.
func (c *unknownResolve) manualResolution(s *session.Session, outcome ledger.ManualOutcome) entries.Change {
	made := ledger.ResolveManually
	if c.As == ledger.ManuallyUnknowable {
		made = ledger.CloseUnknowable
	}
	return func(e *ledger.Entry) (ledger.Transition, error) {
		end, err := entries.RetryEnd(e, s.Now()), e.ResolveManually(outcome, ledger.Timestamp(s.Now()))
		switch {
		case errors.Is(err, ledger.ErrInvalidResolution):
			err = output.UsageError("a %s cannot be resolved as %s: unknown resolve --help lists the values of --as",
				entries.KindLabel(e.Kind), c.As)
		case errors.Is(err, ledger.ErrOutcomeKnown) && e.State == ledger.Released:
			err = errNotApplied
		case errors.Is(err, ledger.ErrOutcomeKnown):
			err = fmt.Errorf("%w: %s", err, cmp.Or(string(e.Status), string(e.State)))
		case err == nil && c.As == ledger.ManuallyUnknowable && !end.IsZero():
			err = fmt.Errorf("its operator can still decide it: the merchant may send the same request again until %s",
				output.FormatTime(end))
		}
		return made.If(err == nil), err
	}
}

// resolveByLookup is the only value of --as without a manual resolution.
const resolveByLookup = "lookup"

// errNoResponse marks a lookup to which the operator did not respond with a status.
var errNoResponse = errors.New("no status")

var errNotApplied = fmt.Errorf("%w: it was certainly not applied, and a retry may send it", ledger.ErrOutcomeKnown)

// IsOperatorReference reports whether a text can be the value of --operator-reference.
func IsOperatorReference(text string) bool { return referencePattern.MatchString(text) }

var referencePattern = regexp.MustCompile(`^[!-~]{1,100}$`)

func outcomeText(e *ledger.Entry) string {
	return strings.TrimSpace(string(e.State) + " " + string(e.Status))
}

// lookUpResolution looks up the payment at its operator, and returns the change that the sweep would make. That is a
// final status, or the rule of its platform's row about another response.
func lookUpResolution(s *session.Session, e *ledger.Entry, confirmer *confirm.Confirmer) (entries.Change, error) {
	if e.StatusFinal() {
		return nil, fmt.Errorf("%w: %s", ledger.ErrOutcomeKnown, e.Status)
	}
	response := accounts.LookUp(s, confirmer, e)
	if response.Supported && !response.Responded {
		return nil, fmt.Errorf("operator %s reported %w of %s: %w. %s. Then run the command again, or get the "+
			"outcome from the operator and use --as", e.Route.Operator, errNoResponse, e.ID, response.Cause,
			accounts.LookupAdvice(s, operator.PinOf(e), response.Cause))
	}
	apply := func(e *ledger.Entry, now time.Time) ledger.Transition {
		return confirmer.ApplyLookup(e, response, s.PaymentLifetime, ledger.Timestamp(now))
	}
	change := func(e *ledger.Entry) ledger.Transition {
		if apply(e.Clone(), s.Now().Add(-ledger.ClockMargin)) == ledger.NoTransition {
			return ledger.NoTransition
		}
		return apply(e, s.Now())
	}
	decided := e.Clone()
	made := change(decided)
	switch row := operator.CapabilitiesOf(e); {
	case len(decided.Conflicts) > len(e.Conflicts):
		fmt.Fprintf(s.Stderr, "A status that contradicts the payment %s recorded as a conflict.\n",
			s.IfApplied("is", "would be"))
	case response.StatusFinal:
	case made != ledger.NoTransition:
		fmt.Fprintf(s.Stderr, "No final status was reported. By the row of platform %s the payment is %s, as the "+
			"sweep would end it (decisions \"never-sent\", \"prepare\" and \"pay-poll\").\n",
			row.Platform, outcomeText(decided))
	case e.State == ledger.Released && e.Claim.Status == "":
		return nil, errNotApplied
	case !response.Supported:
		reason := cmp.Or(entries.WhyNoLookup(e), "no lookup is possible yet")
		return nil, fmt.Errorf("%s: resolve %s manually with --as", reason, e.ID)
	case response.NotFound && row.NeverSentAfter > 0 &&
		e.Clone().EndNeverSent(e.ReservedAt) != ledger.Unchanged:
		from := confirm.NeverSentFrom(row, e).Add(ledger.ClockMargin)
		return nil, fmt.Errorf("operator %s has no order %s. If this is still so at %s, it was never sent: the "+
			"gateway ends it by itself, or run the command again then", e.Route.Operator, e.ID, output.FormatTime(from))
	case response.NotFound:
		return nil, fmt.Errorf("operator %s has no order %s: confirm it with the operator, then use --as failed",
			e.Route.Operator, e.ID)
	default:
		return nil, fmt.Errorf("operator %s reports %s for %s, which is not final: run the command again later",
			e.Route.Operator, response.Report.Status, e.ID)
	}
	return entries.Always(change), nil
}
