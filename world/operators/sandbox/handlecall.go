package sandbox

import (
	"net/http"
	"time"

	"mobilegateway/shared/msisdn"
)

// validRequest is a valid call of the operator API.
type validRequest struct {
	kind        string
	key         string
	messagePart string // the part of the request with the key, for SVC0005
	payer       string // its last four digits select the outcome
	fingerprint string // of the body without otp_code and notif_url, and of the headers that route
	callbackURL string
	otpCode     string // goes into the response and is never kept
	// fillTransaction copies the request into a new transaction, with the response that it gets when it is applied.
	fillTransaction func(t *transaction)
}

// plannedResponse is the response to a call, and the events before it.
type plannedResponse struct {
	response       response
	ready          <-chan struct{} // wait until it is closed; nil: do not wait
	delay          time.Duration   // wait so long instead
	callbacksFirst *transaction    // send its callbacks first
}

// handleCall handles charge, payment and SMS. It decides under the lock, so that of any number of parallel calls under
// a key one is applied. It responds without the lock.
func (s *Sandbox) handleCall(w http.ResponseWriter, r *http.Request, in validRequest) {
	s.mu.Lock()
	if s.closed() {
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
	if s.awaitResponse(w, r, planned) {
		planned.response.write(w)
	}
}

// awaitResponse waits for the events before a response. It returns false, and closes the connection, when the sandbox
// closes or the client is gone. A call with a later effect is applied all the same.
func (s *Sandbox) awaitResponse(w http.ResponseWriter, r *http.Request, planned plannedResponse) bool {
	if planned.callbacksFirst != nil {
		s.sendBlockedCallbacks(r.Context(), planned.callbacksFirst)
	}
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
	case <-s.ctx.Done():
	}
	closeConnection(w)
	return false
}

// decideResponse applies a call, at most once under a key, and plans its response. The caller holds the lock.
func (s *Sandbox) decideResponse(t *transaction, in validRequest) plannedResponse {
	if t.State == received {
		return plannedResponse{response: inFlightResponse(in.key, in.messagePart)}
	}
	s.assignFaultSequence(t)
	m, scripted := s.nextScriptedMode(in.kind, in.key)
	outcome := behaviourFor(in.kind, msisdn.LastFourDigits(in.payer))
	if !scripted && t.State == absent && outcome.FirstResponse != "" {
		m, _ = parseResponseMode(outcome.FirstResponse)
		scripted = true
	}
	planned := plannedResponse{}
	if !scripted {
		m, planned.delay = s.drawResponseMode(t)
	}
	switch {
	case t.State != absent && m.faultyResponse == nil:
		planned.response = s.repeatResponse(t, in)
	case t.State == absent && m.applies:
		s.recordRequest(t, in, m)
		if m.appliesLater {
			planned.ready = t.nextChange()
		} else {
			s.applyCall(t)
		}
		if t.callbacksBlocked {
			planned.callbacksFirst = t
		}
		planned.response = s.correctResponse(t, in.otpCode)
	}
	if m.faultyResponse != nil {
		planned.response = *m.faultyResponse
	}
	return planned
}

// repeatResponse is the correct response to a repeat of an applied call. The repeat has no effect.
func (s *Sandbox) repeatResponse(t *transaction, in validRequest) response {
	switch {
	case t.State == refused:
		return t.Response
	case t.Kind == kindPayment && t.Fingerprint != in.fingerprint:
		return duplicateResponse(in.key, in.messagePart, "")
	case t.Kind == kindSMS:
		return duplicateResponse(in.key, in.messagePart, t.Response.Location)
	}
	if in.callbackURL != "" {
		t.CallbackURL = in.callbackURL // its signature changes with the gateway's key
	}
	return s.correctResponse(t, in.otpCode)
}

// recordRequest records a new call before it is applied.
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
	if m.appliesLater {
		t.State = received
		t.ApplyAt = t.CreatedAt.Add(slowResponseDelay)
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

// applyCall records the effect of a call, once for each transaction. The caller holds the lock.
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
		s.queueCallbacks(t, b.CallbackStatuses, s.scaleDuration(confirmDelay/2))
	case kindPayment:
		s.acceptPayment(t, b)
	}
}

// acceptPayment accepts a payment. After a faulty first response (outcomes 1004, 1005, 1010) it is an effect at once if
// the request has the payer's number. Otherwise the effect comes when it becomes successful.
func (s *Sandbox) acceptPayment(t *transaction, b behaviour) {
	t.State = pending
	if t.FaultyFirstResponse && b.FinalStatus == successful && t.LastFourDigits != "" {
		t.recordEffect(s.now())
	}
	web := t.Payment.Channel == "web"
	switch {
	case b.FinalStatus == pending:
	case b.CallbacksFirst && (!web || !t.CallbacksFirst): // fault injection waits for the page
		t.callbacksBlocked = true
		s.finalizePayment(t, b)
	case !web:
		t.FinalizeAt = s.now().Add(s.scaleDuration(confirmDelay))
		s.finalizeLater(t)
	}
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

// finalizePayment sets the final status of a payment and queues its callbacks. Only a successful payment is an effect.
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
