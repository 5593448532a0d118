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

	"mobilegateway/shared/confirm"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator"
)

type unknownCommands struct {
	List    unknownList    `cmd:"" help:"List the transactions with an unknown outcome, the oldest first."`
	Resolve unknownResolve `cmd:"" help:"Resolve one: by a status lookup, or manually with --as."`
}

type unknownList struct {
	Merchant string `arg:"" optional:"" help:"Only this merchant's, of the days --from to --to."`
	dayRange
}

type unknownView struct {
	entryView
	Age             string `json:"age" col:"AGE"`
	Claimed         string `json:"claimed,omitempty" col:"CLAIMED"`
	LookupSupported bool   `json:"lookup_supported" col:"LOOKUP"` // else it is resolved manually
	Command         string `json:"command" col:"COMMAND"`         // that ends it
}

// pastLifetime reports whether a payment is not final at the end of its lifetime, although it is looked up.
func pastLifetime(s *session, e *ledger.Entry) bool {
	lookedUp := !e.PollAt.IsZero() || e.Claim.Status != ""
	return e.Kind == ledger.Payment && !e.StatusFinal() && lookedUp && s.Now().Sub(e.ReservedAt) >= s.PaymentLifetime
}

// retryEnd returns until when the same request of the merchant is sent again, and may so get the outcome from the
// operator. It is zero if it is not sent any more.
func retryEnd(e *ledger.Entry, now time.Time) time.Time {
	end := e.SentAt.Add(operator.CapabilitiesOf(e).SafeResendWindow())
	if !now.Before(end) || e.Kind == ledger.Payment && e.ResponseStatus != 0 {
		return time.Time{}
	}
	return end
}

// hasKeyAtOperator reports whether the operator can find an entry by its upstream key. A platform that treats each
// second send of an SMS as another one gets no key.
func hasKeyAtOperator(e *ledger.Entry, row operator.Capabilities) bool {
	return e.Kind != ledger.SMS || row.ResendWindow > 0
}

// Run lists a merchant's days or, without a merchant, the due index. Every entry that it lists is in that index.
func (c *unknownList) Run(s *session) error {
	if c.Merchant == "" && !(c.From.IsZero() && c.To.IsZero()) {
		return usageError(`expected "<merchant>" before --from and --to`)
	}
	if err := s.openStores(); err != nil {
		return err
	}
	entries := dueEntries(s)
	if c.Merchant != "" {
		entries = entriesInRange(s, c.Merchant, c.times(), nil)
	}
	var views []unknownView
	for e, err := range entries {
		if err != nil {
			return err
		}
		if e.Unknowable() || !e.OutcomeUncertain(s.Now()) && !pastLifetime(s, e) {
			continue
		}
		views = append(views, unknownView{
			entryView: entryViewOf(e), Age: s.Now().Sub(e.CreatedAt).Truncate(time.Second).String(),
			Claimed: string(e.Claim.Status), LookupSupported: comesByLookup(e),
			Command: s.toolCommand(resolveArguments(e, s.Now())...),
		})
	}
	slices.SortFunc(views, func(a, b unknownView) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return showList(s, views)
}

// dueEntries reads the entries of the due index.
func dueEntries(s *session) iter.Seq2[*ledger.Entry, error] {
	return entriesOf(func(yield func(entryPage, error) bool) {
		for shard := range ledger.DueShards {
			query := ledger.DueQuery{Shard: shard, Before: s.Now().Add(365 * day), Limit: ledgerdynamo.MaxPage}
			for more := true; more; more = query.Cursor != "" {
				page, next, err := s.stores.Ledger.DueKeys(s, query)
				query.Cursor = next
				keys := mapAll(page, func(found ledger.DueKey) ledger.Key { return found.Key })
				entries, err := readEntries(s, keys, err)
				if !yield(entryPage{entries: entries}, err) {
					return
				}
			}
		}
	})
}

type unknownResolve struct {
	Kind    string        `arg:"" enum:"pay,charge,sms" help:"pay, charge or sms."`
	ID      string        `arg:"" help:"The order_id, or the id of the charge or SMS."`
	As      string        `enum:"${resolve_as}" default:"lookup" help:"${resolve_as_help}"`
	Timeout time.Duration `default:"10s" help:"The longest wait for the operator's response."`

	OperatorReference string `placeholder:"ID" help:"With another --as: the operator's id in its statement."`
}

// resolveByLookup is the only value of --as without a manual resolution.
const resolveByLookup = "lookup"

var errNotApplied = fmt.Errorf("%w: it was certainly not applied, and a retry may send it", ledger.ErrOutcomeKnown)

var referencePattern = regexp.MustCompile(`^[!-~]{1,100}$`)

// Run resolves the entry by the operator's status or manually (decision "unknown-by-hand").
func (c *unknownResolve) Run(s *session) error {
	if c.OperatorReference != "" && (c.As == resolveByLookup || !referencePattern.MatchString(c.OperatorReference)) {
		return usageError("--operator-reference is the id in the operator's statement, of at most 100 characters " +
			"without spaces: give it with --as")
	}
	key := ledger.Key{Kind: ledger.Kind(c.Kind), ID: c.ID}
	e, err := findEntry(s, c.ID, key.Kind)
	if err != nil {
		return err
	}
	if e.CountsDailyAmount && s.stores.DailyAmounts == nil {
		return usageError("the amount of %s counts against the merchant's daily limit and may need a refund: "+
			"name the table of limits with LIMIT_TABLE or --limit-table", c.ID)
	}
	change, err := c.resolution(s, e)
	if err != nil {
		return err
	}
	var resolved *ledger.Entry
	return s.executeAndShow("resolve as "+c.As, key.String()+" of "+e.Merchant, func() (string, error) {
		var limitRefundErr, failed error
		resolved, limitRefundErr, failed = resolveEntry(s, key, change)
		if failed != nil {
			return "nothing", failed
		}
		if limitRefundErr != nil {
			fmt.Fprintln(s.Stderr, "The amount still counts against the merchant's daily limit:", limitRefundErr)
		}
		return outcomeText(resolved), nil
	}, func() error { return showHistory(s, resolved) })
}

func outcomeText(e *ledger.Entry) string {
	return strings.TrimSpace(string(e.State) + " " + string(e.Status))
}

// resolution returns the change that resolves the entry. It is applied to the stored entry, which may have changed
// since e was read. A manual resolution that e itself does not allow is refused before the person confirms it.
func (c *unknownResolve) resolution(s *session, e *ledger.Entry) (entryChange, error) {
	userSMS := false
	if e.Kind == ledger.Payment {
		current, err := readSecret(s, s.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
		if err != nil {
			return nil, err
		}
		operators := newDirectory(s, current.Value)
		if c.As == resolveByLookup {
			return lookUpResolution(s, e, &confirm.Confirmer{Operators: operators, LookupTimeout: c.Timeout})
		}
		_, _, userSMS = operators.UserSMSSender(e)
	} else if c.As == resolveByLookup {
		values := "applied or not-applied"
		if e.Kind == ledger.SMS {
			values = "applied, not-applied or unknowable"
		}
		return nil, usageError("no operator has a status lookup for a %s: use --as %s", kindLabel(e.Kind), values)
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
		p, err := s.findMerchant(e.MerchantID)
		if err != nil {
			return nil, err
		}
		outcome.NotifyURL = p.ChargeNotifURL()
	}
	var err error
	if outcome.Who, err = s.stores.Caller(s); err != nil {
		return nil, err
	}
	change := c.manualResolution(s, outcome)
	if end := retryEnd(e, s.Now()); !end.IsZero() && e.OutcomeUncertain(s.Now()) {
		fmt.Fprintf(s.Stderr, "Warning: until %s the merchant may send the same request again, and its operator "+
			"decides it. A manual resolution is final: wait, unless the operator's statement is certain.\n",
			formatTime(end))
	}
	return change, change(e.Clone())
}

// manualResolution returns the change of a person's decision about the attempt of an owner.
func (c *unknownResolve) manualResolution(s *session, outcome ledger.ManualOutcome) entryChange {
	return func(e *ledger.Entry) error {
		end, err := retryEnd(e, s.Now()), e.ResolveManually(outcome, ledger.Timestamp(s.Now()))
		switch {
		case errors.Is(err, ledger.ErrInvalidResolution):
			return usageError("a %s cannot be resolved as %s: unknown resolve --help lists the values of --as",
				kindLabel(e.Kind), c.As)
		case errors.Is(err, ledger.ErrOutcomeKnown) && e.State == ledger.Released:
			return errNotApplied
		case errors.Is(err, ledger.ErrOutcomeKnown):
			return fmt.Errorf("%w: %s", err, cmp.Or(string(e.Status), string(e.State)))
		case err == nil && c.As == ledger.ManuallyUnknowable && !end.IsZero():
			return fmt.Errorf("its operator can still decide it: the merchant may send the same request again until %s",
				formatTime(end))
		}
		return err
	}
}

// lookUpResolution looks up the payment at its operator, and returns the change that the sweep would make. That is a
// final status, or the rule of its platform's row about another response.
func lookUpResolution(s *session, e *ledger.Entry, confirmer *confirm.Confirmer) (entryChange, error) {
	if e.StatusFinal() {
		return nil, fmt.Errorf("%w: %s", ledger.ErrOutcomeKnown, e.Status)
	}
	response := confirmer.LookUp(s, e)
	if response.Supported && !response.Responded {
		return nil, fmt.Errorf("operator %s reported no status of %s, run the command again. If it stays so, get the "+
			"outcome from the operator and use --as: %w", e.Operator, e.ID, response.Cause)
	}
	apply := func(e *ledger.Entry, now time.Time) bool {
		return confirmer.ApplyLookup(e, response, s.PaymentLifetime, ledger.Timestamp(now))
	}
	change := changeIf(func(e *ledger.Entry) bool {
		return apply(e.Clone(), s.Now().Add(-ledger.ClockMargin)) && apply(e, s.Now())
	})
	decided := e.Clone()
	err := change(decided)
	switch row := operator.CapabilitiesOf(e); {
	case len(decided.Conflicts) > len(e.Conflicts):
		fmt.Fprintf(s.Stderr, "A status that contradicts the payment %s recorded as a conflict.\n",
			s.ifApplied("is", "would be"))
	case response.StatusFinal:
	case err == nil:
		fmt.Fprintf(s.Stderr, "No final status was reported. By the row of platform %s the payment is %s, as the "+
			"sweep would end it (decisions \"never-sent\", \"prepare\" and \"pay-poll\").\n",
			row.Platform, outcomeText(decided))
	case e.State == ledger.Released && e.Claim.Status == "":
		return nil, errNotApplied
	case !response.Supported:
		return nil, fmt.Errorf("operator %s has no status lookup: resolve %s manually with --as", e.Operator, e.ID)
	case response.NotFound && row.NotFound == operator.NotFoundNeverSent &&
		e.Clone().EndNeverSent(e.ReservedAt) != ledger.Unchanged:
		from := confirm.NeverSentFrom(row, e).Add(ledger.ClockMargin)
		return nil, fmt.Errorf("operator %s has no order %s. If this is still so at %s, it was never sent: the "+
			"gateway ends it by itself, or run the command again then", e.Operator, e.ID, formatTime(from))
	case response.NotFound:
		return nil, fmt.Errorf("operator %s has no order %s: confirm it with the operator, then use --as failed",
			e.Operator, e.ID)
	default:
		return nil, fmt.Errorf("operator %s reports %s for %s, which is not final: run the command again later",
			e.Operator, response.Report.Status, e.ID)
	}
	return change, nil
}
