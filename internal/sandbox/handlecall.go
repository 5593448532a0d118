package sandbox

import (
	"net/http"
	"time"

	"mobilegateway/shared/msisdn"
)

// validRequest is an operator call that has passed the checks.
type validRequest struct {
	kind        string
	key         string
	messagePart string // where the key stands in the request, for SVC0005
	payer       string // who pays: the last four digits decide
	fingerprint string // of the body without otp_code and notif_url, and of the headers that route
	callbackURL string
	otpCode     string // echoed, never kept
	// fillTransaction writes what the request says into a new transaction, with the answer that it gets when it is applied.
	fillTransaction func(t *transaction)
}

// plannedResponse is what a call gets, and what has to happen before.
type plannedResponse struct {
	response       response
	ready          <-chan struct{} // closed when the call is applied; nil: nothing to wait for
	delay          time.Duration   // unkindness: answered so much later
	callbacksFirst *transaction    // its callbacks go out first
}

// handleCall is the one way in for charge, payment and SMS: it decides under the lock, so that of any number of parallel
// calls under a key one is applied, and answers without it.
func (s *Sandbox) handleCall(w http.ResponseWriter, r *http.Request, in validRequest) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		closeConnection(w)
		return
	}
	t := s.transactions.findOrCreate(in.kind, in.key)
	planned := s.decideResponse(t, in)
	t.logCall(s.now(), planned.response)
	s.saveTransaction(t)
	s.mu.Unlock()
	s.config.Logf("sandbox: %s %s %s", in.kind, in.key, planned.response.logText())
	if planned.callbacksFirst != nil {
		s.sendBlockedCallbacks(r.Context(), planned.callbacksFirst)
	}
	if !s.waitUntilReady(r, planned) {
		closeConnection(w)
		return
	}
	planned.response.write(w)
}

// waitUntilReady waits for what an answer waits for; false when the sandbox closes or the client is gone. What is to be applied
// later is applied all the same.
func (s *Sandbox) waitUntilReady(r *http.Request, planned plannedResponse) bool {
	wait := planned.ready
	if planned.delay > 0 {
		late := make(chan struct{})
		s.config.After(planned.delay, func() { close(late) })
		wait = late
	}
	if wait == nil {
		return true
	}
	select {
	case <-wait:
		return true
	case <-r.Context().Done():
		return false
	case <-s.ctx.Done():
		return false
	}
}

// decideResponse is called with the lock held.
func (s *Sandbox) decideResponse(t *transaction, in validRequest) plannedResponse {
	if t.State == received {
		return plannedResponse{response: inFlightResponse(in.key, in.messagePart)}
	}
	s.assignFaultSequence(t)
	m, scripted := s.nextScriptedMode(in.kind, in.key)
	if t.State != absent {
		return s.respondToRepeat(t, in, m, scripted)
	}
	b := behaviourFor(in.kind, msisdn.LastFourDigits(in.payer))
	if !scripted && b.FirstResponse != "" {
		m, _ = parseResponseMode(b.FirstResponse)
		scripted = true
	}
	planned := plannedResponse{}
	if !scripted {
		m, planned.delay = s.drawResponseMode(t)
	}
	if !m.applies {
		planned.response = *m.faultyResponse
		return planned
	}
	s.recordRequest(t, in, m)
	if m.appliesLater {
		planned.ready = t.nextChange()
	} else {
		s.applyCall(t)
		if t.callbacksBlocked {
			planned.callbacksFirst = t
		}
	}
	planned.response = s.correctResponse(t, in.otpCode)
	if m.faultyResponse != nil {
		planned.response = *m.faultyResponse
	}
	return planned
}

// respondToRepeat answers a repeat: the truth about what was applied, unless a script or unkindness spoils it. Nothing happens.
func (s *Sandbox) respondToRepeat(t *transaction, in validRequest, m responseMode, scripted bool) plannedResponse {
	planned := plannedResponse{}
	if !scripted {
		m, planned.delay = s.drawResponseMode(t)
	}
	switch {
	case m.faultyResponse != nil:
		planned.response = *m.faultyResponse
	case t.State == refused:
		planned.response = t.Response
	case t.Kind == kindPayment && t.Fingerprint != in.fingerprint:
		planned.response = duplicateResponse(in.key, in.messagePart, "")
	case t.Kind == kindSMS:
		planned.response = duplicateResponse(in.key, in.messagePart, t.Response.Location)
	default:
		if in.callbackURL != "" {
			t.CallbackURL = in.callbackURL // the address is signed anew when its key is rotated
		}
		planned.response = s.correctResponse(t, in.otpCode)
	}
	return planned
}

// recordRequest writes down what was asked, before any of it is applied.
func (s *Sandbox) recordRequest(t *transaction, in validRequest, m responseMode) {
	t.Fingerprint = in.fingerprint
	t.LastFourDigits = msisdn.LastFourDigits(in.payer)
	t.CreatedAt = s.now()
	t.CallbackURL = in.callbackURL
	t.OperatorID = s.newUUID()
	t.FaultyFirstResponse = m.faultyResponse != nil || m.appliesLater
	t.RefusalID = m.refusalID
	s.drawCallbackFaults(t)
	in.fillTransaction(t)
	s.transactions.indexPage(t)
	if m.appliesLater {
		t.State = received
		t.ApplyAt = t.CreatedAt.Add(s.config.SlowResponseDelay)
		s.applyLater(t)
	}
}

func (s *Sandbox) applyLater(t *transaction) {
	s.runAfter(t.ApplyAt.Sub(s.now()), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.State != received {
			return
		}
		s.applyCall(t)
		s.unblockCallbacks(t)
		s.saveTransaction(t)
	})
}

// applyCall is the moment in which a call takes effect. It is called once a transaction, with the lock held.
func (s *Sandbox) applyCall(t *transaction) {
	b := t.behaviour()
	now := s.now()
	t.ApplyAt = time.Time{}
	t.notifyWaiters()
	if b.RefusalID != "" {
		t.State = refused
		t.FinalAt = now
		t.Response = finalRefusal(b.RefusalID)
		return
	}
	switch t.Kind {
	case kindCharge:
		t.State = charged
		t.recordEffect(now)
	case kindSMS:
		t.State = accepted
		t.FinalAt = now
		t.callbacksBlocked = b.CallbacksFirst
		if !b.NeverSent {
			t.recordEffect(now)
		}
		s.queueCallbacks(t, b.CallbackStatuses, s.scaleDuration(s.config.ConfirmDelay/2))
	case kindPayment:
		s.acceptPayment(t, b)
	}
}

// acceptPayment accepts a payment. It is applied at once, as an effect, where the first answer is spoilt (outcomes 1004,
// 1005, 1010); otherwise the effect is the money that moves when it becomes successful.
func (s *Sandbox) acceptPayment(t *transaction, b behaviour) {
	t.State = pending
	if t.FaultyFirstResponse && b.FinalStatus == successful {
		t.recordEffect(s.now())
	}
	web := t.Payment.Channel == "web"
	switch {
	case b.FinalStatus == pending:
	case b.CallbacksFirst && (!web || !t.CallbacksFirst):
		t.callbacksBlocked = true
		s.finalizePayment(t, b)
	case !web:
		t.FinalizeAt = s.now().Add(s.scaleDuration(s.config.ConfirmDelay))
		s.finalizeLater(t)
	}
	// On the web channel the page decides, but for outcome 1008, whose callback comes before this very answer.
}

func (s *Sandbox) finalizeLater(t *transaction) {
	s.runAfter(t.FinalizeAt.Sub(s.now()), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.State != pending || t.FinalizeAt.IsZero() {
			return
		}
		s.finalizePayment(t, t.behaviour())
		s.saveTransaction(t)
	})
}

// finalizePayment gives a payment its final status and queues what is told about it. Money that did not move is no effect.
func (s *Sandbox) finalizePayment(t *transaction, b behaviour) {
	t.State = b.FinalStatus
	t.FinalAt = s.now()
	t.FinalizeAt = time.Time{}
	t.Payment.StatusDescription = b.StatusDescription
	if b.FinalStatus == successful {
		t.recordEffect(t.FinalAt)
	} else {
		t.Effects = nil
	}
	t.notifyWaiters()
	s.queueCallbacks(t, b.CallbackStatuses, 0)
}
