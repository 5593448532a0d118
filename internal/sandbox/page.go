package sandbox

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"mobilegateway/shared/msisdn"
)

const htmlType = "text/html; charset=utf-8"

var (
	numberPattern = regexp.MustCompile(`^\+?[0-9]{4,15}$`)
	pinPattern    = regexp.MustCompile(`^[0-9]{6}$`)
)

// parseNumber reads a number as people type it: spaces, hyphens and points between the digits do not count.
func parseNumber(text string) (string, bool) {
	number := strings.NewReplacer(" ", "", "-", "", ".", "", "\u00a0", "").Replace(text)
	return number, numberPattern.MatchString(number)
}

// parsePIN reads a PIN as people type it: spaces between the digits do not count.
func parsePIN(text string) (string, bool) {
	code := strings.NewReplacer(" ", "", "\u00a0", "").Replace(text)
	return code, pinPattern.MatchString(code)
}

func plainNumber(number string) string { return strings.TrimPrefix(number, "+") }

// getPage shows the payment's form, or what came of it.
func (s *Sandbox) getPage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	t := s.transactions.byPayToken[r.PathValue("token")]
	var planned response
	switch {
	case t == nil:
		planned = s.notFoundPage(r)
	case t.statusFinal() || t.Payment.Confirmed || s.paymentExpired(t):
		planned = s.statusPage(t)
	default:
		planned = s.formPage(t, http.StatusOK, t.Payment.RequestedMSISDN)
	}
	s.mu.Unlock()
	s.writePage(w, t, planned)
}

// payableUntil is when the page stops to take a payment: when the gateway gives up waiting for one.
func (s *Sandbox) payableUntil(t *transaction) time.Time {
	return t.CreatedAt.Add(s.scaleDuration(s.config.PageLifetime))
}

func (s *Sandbox) paymentExpired(t *transaction) bool {
	return t.State == pending && !t.Payment.Confirmed && !s.now().Before(s.payableUntil(t))
}

// postPage takes the form: a confirmed or cancelled payment ends in a redirect to the merchant, and so does every later
// post, which changes nothing. Where it leads is decided last, by what the payment has become: of a confirmation and a
// cancellation side by side, both tell the same.
func (s *Sandbox) postPage(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
	err := r.ParseForm()
	action := r.PostForm.Get("action")
	if err != nil {
		action = ""
	}
	s.mu.Lock()
	t := s.transactions.byPayToken[r.PathValue("token")]
	if t == nil {
		s.mu.Unlock()
		s.writePage(w, nil, s.notFoundPage(r))
		return
	}
	planned := s.decidePageResponse(t, action, r)
	s.saveTransaction(t)
	s.mu.Unlock()
	if planned.callbacksFirst != nil {
		s.sendBlockedCallbacks(r.Context(), planned.callbacksFirst)
	}
	if !s.waitUntilReady(r, planned) {
		closeConnection(w)
		return
	}
	if planned.response.Status == http.StatusSeeOther {
		s.mu.Lock()
		planned.response = merchantRedirect(t)
		s.mu.Unlock()
	}
	s.writePage(w, t, planned.response)
}

// decidePageResponse is called with the lock held.
func (s *Sandbox) decidePageResponse(t *transaction, action string, r *http.Request) plannedResponse {
	input, code := r.PostForm.Get("msisdn"), r.PostForm.Get("pin")
	if rest, plus := strings.CutPrefix(input, " "); plus {
		input = "+" + rest // a plus that nobody escaped: form decoding makes a space of it
	}
	switch {
	case t.statusFinal():
		return plannedResponse{response: merchantRedirect(t)}
	case t.Payment.Confirmed && !t.FinalizeAt.IsZero():
		planned := s.statusPage(t)
		planned.Status = http.StatusConflict // a slow confirmation is under way
		return plannedResponse{response: planned}
	case t.Payment.Confirmed:
		return plannedResponse{response: merchantRedirect(t)}
	case s.paymentExpired(t):
		return plannedResponse{response: s.statusPage(t)}
	case action == "cancel":
		s.finalizePayment(t, behaviour{FinalStatus: cancelled, StatusDescription: "Payment was cancelled by the customer", CallbackStatuses: []string{cancelled}})
		return plannedResponse{response: merchantRedirect(t)}
	case action == "confirm":
		return s.confirmPayment(t, input, code)
	}
	texts, _ := textFor(t.Payment.Lang)
	return plannedResponse{response: s.formPage(t, http.StatusUnprocessableEntity, input, pageFault{"", texts.BadAction})}
}

// confirmPayment is a purchaser who agrees. Without a user_msisdn in the request the number that was typed pays, and its digits
// decide; with one, what its digits decide about the first answer was done when the payment was accepted.
func (s *Sandbox) confirmPayment(t *transaction, input, typedCode string) plannedResponse {
	texts, _ := textFor(t.Payment.Lang)
	number, code, faults := texts.checkForm(input, typedCode)
	if len(faults) > 0 {
		return plannedResponse{response: s.formPage(t, http.StatusUnprocessableEntity, input, faults...)}
	}
	b := t.behaviour()
	b.FirstResponse = ""
	if t.Payment.RequestedMSISDN == "" {
		b = behaviourFor(kindPayment, msisdn.LastFourDigits(number))
	}
	down := b.FirstResponse == "down"
	if fault := s.checkPIN(t, number, code, !down); fault != "" {
		return plannedResponse{response: s.formPage(t, http.StatusForbidden, input, pageFault{"pin", fault})}
	}
	if down {
		return plannedResponse{response: s.formPage(t, http.StatusServiceUnavailable, input, pageFault{"", texts.Down})}
	}
	if t.Payment.RequestedMSISDN == "" {
		t.LastFourDigits = msisdn.LastFourDigits(number)
	}
	t.Payment.TypedMSISDN = number
	t.Payment.Confirmed = true
	return s.applyConfirmation(t, b)
}

// checkForm reads what was typed: all that is missing or malformed is told at once. A slip of the hand costs no try: one is
// spent by a PIN of six digits that is wrong.
func (p pageText) checkForm(input, typedCode string) (number, code string, faults []pageFault) {
	number, numberOK := parseNumber(input)
	code, codeOK := parsePIN(typedCode)
	switch {
	case strings.TrimSpace(input) == "":
		faults = append(faults, pageFault{"msisdn", p.NoNumber})
	case !numberOK:
		faults = append(faults, pageFault{"msisdn", p.BadNumber})
	}
	switch {
	case strings.TrimSpace(typedCode) == "":
		faults = append(faults, pageFault{"pin", p.NoPIN})
	case !codeOK:
		faults = append(faults, pageFault{"pin", p.BadPIN})
	}
	return number, code, faults
}

// applyConfirmation does what the behaviour of the paying number is, after a good PIN.
func (s *Sandbox) applyConfirmation(t *transaction, b behaviour) plannedResponse {
	planned := plannedResponse{response: merchantRedirect(t)}
	switch {
	case b.FirstResponse == "slow":
		t.FinalizeAt = s.now().Add(s.config.SlowResponseDelay)
		planned.ready = t.nextChange()
		s.finalizeLater(t)
		return planned
	case b.FinalStatus == pending:
		return planned
	case b.CallbacksFirst || t.CallbacksFirst:
		t.callbacksBlocked = true
		planned.callbacksFirst = t
	}
	s.finalizePayment(t, b)
	if m, _ := parseResponseMode(b.FirstResponse); m.faultyResponse != nil {
		planned.response = *m.faultyResponse
	}
	return planned
}

// merchantRedirect sends the purchaser to the merchant: to cancel_url after a cancellation, else to return_url.
func merchantRedirect(t *transaction) response {
	address := t.Payment.ReturnURL
	if t.State == cancelled {
		address = t.Payment.CancelURL
	}
	return response{Status: http.StatusSeeOther, Location: address}
}
