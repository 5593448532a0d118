package restore

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// store stores each key that the ledger lacks, and makes each released one unknown.
func (r *run) store() error {
	keys := slices.SortedFunc(maps.Keys(r.found), compareKeys)
	operators, err := r.operators()
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(keys, dynamoitem.MaxBatch) {
		present, err := r.present(batch)
		if err != nil {
			return err
		}
		for _, key := range batch {
			if err := errors.Join(r.Err(), r.storeKey(operators, r.found[key], present[key])); err != nil {
				return err
			}
		}
	}
	return nil
}

func compareKeys(a, b ledger.Key) int {
	return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.ID, b.ID))
}

// operators returns the deployment's drivers, with its credentials and routes.
func (r *run) operators() (*operator.DriverDirectory, error) {
	current, err := session.ReadSecret(r.Session, r.OperatorSecret, "OPERATOR_CREDENTIALS_SECRET")
	return accounts.NewDirectory(r.Session, current.Value), err
}

// Limits of the reads while the table throttles.
const (
	maxReads = 10
	readWait = 500 * time.Millisecond
)

var errThrottled = errors.New("the ledger's table throttles reads: run the command again later")

// present reads the entries of the keys that the ledger has.
func (r *run) present(keys []ledger.Key) (map[ledger.Key]*ledger.Entry, error) {
	present, left := map[ledger.Key]*ledger.Entry{}, keys
	for reads := 0; len(left) > 0; reads++ {
		if reads == maxReads {
			return nil, errThrottled
		}
		if reads > 0 {
			if err := r.Pause(r, readWait); err != nil {
				return nil, err
			}
		}
		found, unread, err := r.Stores.Batches.GetBatch(r, left)
		if err != nil {
			return nil, err
		}
		maps.Copy(present, found)
		left = unread
	}
	return present, nil
}

// storeKey stores one transaction. existing is what the ledger has under its key, nil for nothing.
func (r *run) storeKey(operators *operator.DriverDirectory, s *sighting, existing *ledger.Entry) error {
	view, isPresent := &s.of.view, existing != nil && !existing.PastRetention(r.Now())
	switch {
	case s.before && !isPresent:
		return nil
	case s.before && existing.State != ledger.Released:
		return r.loseRetry(s, existing)
	}
	view.Keys++
	switch {
	case isPresent && existing.State == ledger.Released:
		return errors.Join(r.bindReferences(s, existing), r.reopen(s, existing))
	case isPresent:
		view.Present++
		return errors.Join(r.bindReferences(s, existing), r.loseRetry(s, existing))
	}
	e := s.entry()
	if err := r.route(operators, e); err != nil {
		return err
	}
	book := r.book()
	if e.Kind == ledger.Charge && e.Request.ReferenceCode != "" {
		// Before the charge: a run that ends between the two stores the charge the next time.
		if _, err := book.BindReference(r, e); err != nil {
			return err
		}
	}
	e, stored, err := book.Restore(r, e, ledger.RestoreLost)
	switch {
	case err != nil:
		return err
	case !stored:
		view.Present++
		return nil
	}
	view.Stored++
	if e.Kind == ledger.Payment {
		r.pending = append(r.pending, e)
		if e.Amount.Minor == 0 {
			view.NoAmount++
		}
	}
	return nil
}

func (r *run) book() *ledger.Book {
	return &ledger.Book{Store: r.Stores.Ledger, Reader: r.Stores.Ledger, Now: r.Now, Rand: r.Rand}
}

// bindReferences binds the referenceCodes of a charge whose call the restore lost, or may have lost. The moment can be
// between the write of the charge and that of its reference.
func (r *run) bindReferences(s *sighting, existing *ledger.Entry) error {
	if existing.Kind != ledger.Charge || existing.State == ledger.Done || existing.State == ledger.Refused {
		return nil
	}
	for _, reference := range []string{existing.Request.ReferenceCode, s.reference} {
		if reference == "" {
			continue
		}
		e := existing.Clone()
		e.Request.ReferenceCode = reference
		if _, err := r.book().BindReference(r, e); err != nil {
			return err
		}
	}
	return nil
}

// loseRetry makes an entry without an outcome wait from its last sighting on: the restore may have lost a later
// attempt, which its operator does not know yet.
func (r *run) loseRetry(s *sighting, existing *ledger.Entry) error {
	now, prepares := ledger.Timestamp(r.Now()), operator.CapabilitiesOf(existing).Prepares
	_, _, err := r.book().ChangeKnown(r, existing, func(e *ledger.Entry) (ledger.Transition, error) {
		return ledger.LoseRetry.If(e.LoseRetry(s.last, prepares, now)), nil
	})
	return err
}

// reopen makes a released entry unknown: a later attempt, which the restore lost, may have been applied.
func (r *run) reopen(s *sighting, existing *ledger.Entry) error {
	now := ledger.Timestamp(r.Now())
	stored, made, err := r.book().ChangeKnown(r, existing, func(e *ledger.Entry) (ledger.Transition, error) {
		return ledger.LoseRelease.If(e.LoseRelease(now)), nil
	})
	switch {
	case err != nil:
		return err
	case made == ledger.NoTransition:
		s.of.view.Present++
		return nil
	}
	s.of.view.Reopened++
	if stored.Kind == ledger.Payment {
		r.pending = append(r.pending, stored)
	}
	return nil
}

// route pins an entry as a new one would be: to the platform and the account that serve it now. An entry that no
// platform serves any more stays without an account, so that no lookup is made. The platform's own key of a payment is
// lost where it was random.
func (r *run) route(operators *operator.DriverDirectory, e *ledger.Entry) error {
	p := r.shops[e.Merchant.Name].profile
	routes, err := operators.Routes(r)
	if err != nil {
		return err
	}
	names := []string{e.Route.Operator}
	if e.Route.Operator == "" {
		names = p.Operators
	}
	for _, name := range names {
		selection, found := routes.Select(operator.Service{
			Operator: name, Country: e.Route.Country, Operation: string(e.Kind), Channel: e.Request.Channel,
		})
		if !found || e.Route.Operator == "" && e.Kind == ledger.Payment && len(names) > 1 {
			continue // a payment names its operator, so the first one would be a guess
		}
		e.Route.Operator = selection.Operator
		if e.Route.Account == "" {
			e.Route.Account = r.account(operators, selection)
		}
		break
	}
	if row := operator.CapabilitiesOf(e); e.Kind == ledger.Payment && e.Route.UpstreamKey == "" &&
		row.KeyForm != operator.KeyUUID {
		e.Route.UpstreamKey, err = operator.NewPaymentKey(row.KeyForm, e.ID, r.Rand)
	}
	return err
}

// account returns the account of a selection; "" if the platform has none.
func (r *run) account(operators *operator.DriverDirectory, selection operator.Selection) string {
	if selection.Account != "" {
		return selection.Account
	}
	driver, row, found := operators.Driver(selection.Platform)
	if !found {
		return ""
	}
	account, err := driver.FindAccount(r, row.Platform, "")
	if err != nil {
		return ""
	}
	return account
}

// maxSilentLookups is how many lookups in a row may get no response of an account: the sweep makes the others.
const maxSilentLookups = 3

// lookUp looks up the payments that were stored, and ends those with a final status by the rules of the sweep. It
// counts an account without responses out. The sweep looks up what is left.
func (r *run) lookUp() error {
	if !r.Yes || len(r.pending) == 0 {
		return nil
	}
	operators, err := r.operators()
	if err != nil {
		return err
	}
	confirmer := accounts.NewConfirmer(r.Session, operators, r.Timeout)
	silent := map[string]int{} // by account
	for _, e := range r.pending {
		account := operator.PinOf(e).String()
		if !entries.ComesByLookup(e) || silent[account] >= maxSilentLookups {
			continue
		}
		if err := r.Err(); err != nil {
			return err
		}
		response := accounts.LookUp(r.Session, confirmer, e)
		if silent[account]++; response.Responded {
			silent[account] = 0
		}
		if !response.StatusFinal {
			continue
		}
		stored, err := entries.Resolve(r.Session, e.Key, entries.Always(func(e *ledger.Entry) ledger.Transition {
			return confirmer.ApplyLookup(e, response, r.PaymentLifetime, ledger.Timestamp(r.Now()))
		}))
		if err != nil {
			return err
		}
		if stored.Entry.StatusFinal() {
			r.shops[e.Merchant.Name].view.Final++
		}
	}
	return nil
}
