package sandbox

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"mobilegateway/world/operators/kit"
)

// statuses are the statuses of results, and descriptions their statusDescriptions. Another result is its own status.
var (
	statuses = map[kit.Result]string{
		kit.Undecided: pending, kit.Paid: successful, kit.Refused: failed, kit.NoFunds: failed,
	}
	descriptions = map[kit.Result]string{
		kit.Paid: "Payment was successful", kit.Refused: descriptionRefused, kit.NoFunds: descriptionLowBalance,
		cancelled: "Payment was cancelled by the customer",
	}
	// refusalsOf are the message ids with which a kind of call is refused at once, by its result.
	refusalsOf = map[string]map[kit.Result]string{
		kindCharge: {kit.Refused: "POL0253", kit.NoFunds: "POL1000"},
		kindSMS:    {kit.NoFunds: "POL0001"},
	}
)

// The statusDescriptions of payments that fail. The page has texts for them.
const (
	descriptionRefused    = "Payment operation refused by user"
	descriptionLowBalance = "User has insufficient credit for transaction"
)

func statusOf(r kit.Result) string { return cmp.Or(statuses[r], string(r)) }

// begin finds or makes the transaction of a valid call. It returns whether nothing was applied under the key.
func (s *Sandbox) begin(c *kit.Call) bool {
	in, ok := c.Parsed.(*request)
	if !ok {
		if t, found := s.find(kindPayment, c.Key); found { // a getStatus
			t.Lookups++
		}
		return false
	}
	hazards := s.config.Hazards
	t, found := s.find(in.kind, in.key)
	isForgotten := found && t.Status == refused && hazards.ForgetsRefusals && in.kind != kindPayment
	isOld := found && hazards.KeyWindow > 0 && t.Status != absent && s.Now().Sub(t.CreatedAt) >= hazards.KeyWindow
	if !found || isForgotten || isOld {
		t = newTransaction(in.kind, in.key)
		s.Insert(t.Transaction, true)
	}
	s.injector.assignFaultSequence(t)
	return t.Status == absent
}

// logCall is called with each response to a valid call.
func (s *Sandbox) logCall(c *kit.Call, r kit.Response) {
	in, ok := c.Parsed.(*request)
	if !ok {
		return
	}
	t, _ := s.find(in.kind, in.key)
	text := "cut"
	if !r.Close {
		text = strconv.Itoa(r.Status)
	}
	t.CallCount++
	t.Calls = append(t.Calls, loggedCall{s.Now(), text})
	t.Calls = t.Calls[max(0, len(t.Calls)-maxLoggedCalls):]
	s.journal.saveTransaction(t)
}

// serve applies a charge, a payment or an SMS, at most once under a key.
func (s *Sandbox) serve(c *kit.Call) kit.Response {
	in := c.Parsed.(*request)
	t, _ := s.find(in.kind, in.key)
	if t.Status != absent {
		return s.repeatResponse(t, in)
	}
	t.Fingerprint, t.CreatedAt, t.CallbackURL = in.fingerprint, s.Now(), in.callbackURL
	t.Reference = s.NewUUID()
	t.FaultyFirstResponse = c.Faulty
	t.Outcome = s.NewOutcome(in.kind, c.Keys)
	if _, isRefusal := messages[c.Mode]; isRefusal {
		t.Outcome.Refusal = c.Mode
	}
	s.injector.drawCallbackFaults(t)
	in.fillTransaction(t)
	if c.Mode == "slow" {
		t.Status, t.ApplyAt = received, t.CreatedAt.Add(kit.SlowDelay)
		s.applyLater(t)
		return s.correctResponse(t, in.otpCode)
	}
	first := s.apply(t)
	response := s.correctResponse(t, in.otpCode)
	response.First = first
	return response
}

// repeatResponse is the correct response to a repeat of an applied call. The repeat has no effect.
func (s *Sandbox) repeatResponse(t transaction, in *request) kit.Response {
	switch {
	case t.Status == refused:
		return t.Response.response()
	case t.Kind == kindPayment && t.Fingerprint != in.fingerprint:
		return duplicateResponse(in.key, in.messagePart, "")
	case t.Kind == kindSMS:
		return duplicateResponse(in.key, in.messagePart, t.Response.Location)
	}
	t.CallbackURL = cmp.Or(in.callbackURL, t.CallbackURL) // its signature changes with the gateway's key
	return s.correctResponse(t, in.otpCode)
}

func (s *Sandbox) applyLater(t transaction) {
	s.AfterUnscaled(t.ApplyAt.Sub(s.Now()), func() {
		if t.Status != received {
			return
		}
		s.apply(t)
		s.Unblock(t.Transaction) // the response has been planned
		s.journal.saveTransaction(t)
	})
}

// apply records the effect of a call, once for each transaction. It returns the callbacks that come first.
func (s *Sandbox) apply(t transaction) (first []kit.Delivery) {
	o, now := t.Outcome, s.Now()
	t.ApplyAt = time.Time{}
	if id := cmp.Or(o.Refusal, refusalsOf[t.Kind][o.Result]); id != "" {
		t.Status, t.EndsAt, t.Response = refused, now, keep(finalRefusal(id))
		return nil
	}
	switch t.Kind {
	case kindCharge:
		t.Status = charged
		s.AddEffect(t.Transaction)
	case kindSMS:
		t.Status, t.EndsAt = accepted, now
		if o.CallbackFirst || t.InjectedFirst {
			first = append(first, t.Block())
		}
		if o.Result != kit.Refused {
			s.AddEffect(t.Transaction)
		}
		s.report(t, receiptsOf(t))
	case kindPayment:
		first = s.acceptPayment(t)
	}
	return first
}

// acceptPayment accepts a payment. After a faulty first response (outcomes 1004, 1005, 1010) it is an effect at once if
// the request has the payer's number. Otherwise the effect comes when it becomes successful.
func (s *Sandbox) acceptPayment(t transaction) (first []kit.Delivery) {
	o := t.Outcome
	t.Status = pending
	delay := s.Scaled(confirmDelay)
	if s.IsDrawn() {
		delay = o.DecidesAfter
	} else if t.FaultyFirstResponse && o.Result == kit.Paid && t.Payment.RequestedMSISDN != "" {
		s.AddEffect(t.Transaction)
	}
	s.report(t, reportsOf(o.Reports, true))
	needsPage := t.Payment.Channel == "web" && !s.IsDrawn()
	switch {
	case o.Result == kit.Undecided:
	case o.CallbackFirst || t.InjectedFirst && !needsPage: // fault injection waits for the page
		first = append(first, t.Block())
		s.finalizePayment(t, o)
	case !needsPage:
		s.finalizeAfter(t, delay)
	}
	return first
}

// finalizeAfter sets the final status of a payment after d.
func (s *Sandbox) finalizeAfter(t transaction, d time.Duration) {
	t.FinalizeAt = s.Now().Add(d)
	s.finalizeLater(t)
}

func (s *Sandbox) finalizeLater(t transaction) {
	at := t.FinalizeAt
	s.AfterUnscaled(at.Sub(s.Now()), func() {
		if t.FinalizeAt.Equal(at) {
			s.finalizePayment(t, t.Outcome)
			s.journal.saveTransaction(t)
		}
	})
}

// finalizePayment sets the final status of a payment and queues its reports. Only a successful payment is an effect. A
// success that will be reversed is none.
func (s *Sandbox) finalizePayment(t transaction, o kit.Outcome) {
	result := o.Result
	if o.ReversedAfter > 0 {
		result = kit.Paid
	}
	t.Status, t.EndsAt, t.FinalizeAt = statusOf(result), s.Now(), time.Time{}
	t.Payment.StatusDescription = cmp.Or(descriptions[result], "Payment is "+t.Status)
	switch {
	case t.Status != successful || o.ReversedAfter > 0:
		t.Effects = nil
	case len(t.Effects) == 0:
		s.AddEffect(t.Transaction)
	}
	reports := reportsOf(o.Reports, false)
	if o.Reports == nil {
		for _, r := range (kit.Outcome{Result: result, Callbacks: o.Callbacks}).Results() {
			reports = append(reports, kit.Report{Result: r})
		}
	}
	s.report(t, reports)
	if o.ReversedAfter > 0 {
		t.Outcome.ReversedAfter, t.Outcome.Reports = 0, []kit.Report{{Result: o.Result}}
		s.finalizeAfter(t, o.ReversedAfter)
	}
}

// reportsOf returns the reports that are early, or those that are not.
func reportsOf(all []kit.Report, early bool) []kit.Report {
	return slices.DeleteFunc(slices.Clone(all), func(r kit.Report) bool { return r.Early != early })
}

// report queues the callbacks of a transaction's reports, in their order.
func (s *Sandbox) report(t transaction, reports []kit.Report) {
	var inOrder []kit.Callback
	before := time.Duration(0)
	for i, r := range reports {
		c := kit.Callback{Status: string(r.Result), Retries: callbackRetries, Hazard: r.Hazard}
		if t.Kind == kindPayment {
			c.Status = statusOf(r.Result)
			c.Body = notificationBody(t, c.Status, r.Hazard)
		} else {
			c.Body = receiptBody(t, c.Status, i%2 == 1)
		}
		if t.Outcome.Overtaking {
			c.Wait = r.After
			s.Enqueue(t.Transaction, nil, []kit.Callback{c})
			continue
		}
		c.Wait, before = max(0, r.After-before), max(before, r.After)
		inOrder = append(inOrder, c)
		if t.callbackFaults.drawDuplicate() {
			c.Wait = 0
			inOrder = append(inOrder, c)
		}
	}
	s.Enqueue(t.Transaction, &t.Queue, inOrder)
}

// callbackRetries are ten attempts in all, with doubling pauses.
var callbackRetries = []time.Duration{
	1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second,
	64 * time.Second, 128 * time.Second, 256 * time.Second,
}
