package sandbox

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"mobilegateway/shared/msisdn"
)

var (
	numberPattern     = regexp.MustCompile(`^\+?[0-9]{4,15}$`)
	pinPattern        = regexp.MustCompile(`^[0-9]{6}$`)
	numberSeparators  = strings.NewReplacer(" ", "", "-", "", ".", "", "\u00a0", "")
	pinCodeSeparators = strings.NewReplacer(" ", "", "\u00a0", "")
)

// parseNumber reads a typed number. Spaces, hyphens and points between the digits are ignored.
func parseNumber(text string) (number string, valid bool) {
	number = numberSeparators.Replace(text)
	return number, numberPattern.MatchString(number)
}

// parsePIN reads a typed PIN. Spaces between the digits are ignored.
func parsePIN(text string) (code string, valid bool) {
	code = pinCodeSeparators.Replace(text)
	return code, pinPattern.MatchString(code)
}

func plainNumber(number string) string { return strings.TrimPrefix(number, "+") }

// getPage shows a payment's form, or its status.
func (s *Sandbox) getPage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	t := s.transactions.findPage(r.PathValue("token"))
	var page response
	switch {
	case t == nil:
		page = s.notFoundPage(r)
	case t.statusFinal() || t.Payment.Confirmed || s.paymentExpired(t):
		page = s.statusPage(t)
	default:
		page = s.formPage(t, http.StatusOK, t.Payment.RequestedMSISDN)
	}
	s.mu.Unlock()
	s.writePage(w, t, page)
}

// payableUntil is the end of a payment's page, when the gateway stops to wait for the payment.
func (s *Sandbox) payableUntil(t *transaction) time.Time {
	return t.CreatedAt.Add(s.scaleDuration(s.config.PageLifetime))
}

func (s *Sandbox) paymentExpired(t *transaction) bool {
	return t.State == pending && !t.Payment.Confirmed && !s.now().Before(s.payableUntil(t))
}

// postPage takes the form. A confirmed or cancelled payment ends in a redirect to the merchant. Each later post ends
// there too, and changes nothing. The payment's status decides the address last: a concurrent confirmation and
// cancellation lead to the same one.
func (s *Sandbox) postPage(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
	err := r.ParseForm()
	action := r.PostForm.Get("action")
	if err != nil {
		action = ""
	}
	s.mu.Lock()
	t := s.transactions.findPage(r.PathValue("token"))
	if t == nil {
		s.mu.Unlock()
		s.writePage(w, nil, s.notFoundPage(r))
		return
	}
	planned := s.decidePageResponse(t, action, r.PostForm.Get("msisdn"), r.PostForm.Get("pin"))
	s.saveTransaction(t)
	s.mu.Unlock()
	if !s.awaitResponse(w, r, planned) {
		return
	}
	if planned.response.Status == http.StatusSeeOther {
		s.mu.Lock()
		planned.response = merchantRedirect(t)
		s.mu.Unlock()
	}
	s.writePage(w, t, planned.response)
}

// decidePageResponse confirms or cancels a payment and plans the response. The caller holds the lock.
func (s *Sandbox) decidePageResponse(t *transaction, action, input, typedCode string) plannedResponse {
	if rest, spaced := strings.CutPrefix(input, " "); spaced {
		input = "+" + rest // an unescaped plus, which form decoding turns into a space
	}
	slowConfirmation := t.Payment.Confirmed && !t.FinalizeAt.IsZero()
	switch {
	case t.statusFinal() || t.Payment.Confirmed && !slowConfirmation:
		return plannedResponse{response: merchantRedirect(t)}
	case slowConfirmation:
		page := s.statusPage(t)
		page.Status = http.StatusConflict
		return plannedResponse{response: page}
	case s.paymentExpired(t):
		return plannedResponse{response: s.statusPage(t)}
	case action == "cancel":
		s.finalizePayment(t, behaviour{
			FinalStatus: cancelled, StatusDescription: "Payment was cancelled by the customer",
			CallbackStatuses: []string{cancelled},
		})
		return plannedResponse{response: merchantRedirect(t)}
	case action == "confirm":
		return s.confirmPayment(t, input, typedCode)
	}
	fault := pageFault{"", s.textFor(t.Payment.Lang).BadAction}
	return plannedResponse{response: s.formPage(t, http.StatusUnprocessableEntity, input, fault)}
}

// confirmPayment takes a payer's confirmation. The digits of the typed number select the outcome, unless the request
// has a user_msisdn. Its digits have had their effect on the first response already.
func (s *Sandbox) confirmPayment(t *transaction, input, typedCode string) plannedResponse {
	refuse := func(status int, faults ...pageFault) plannedResponse {
		return plannedResponse{response: s.formPage(t, status, input, faults...)}
	}
	texts := s.textFor(t.Payment.Lang)
	number, code, faults := texts.checkForm(input, typedCode)
	if len(faults) > 0 {
		return refuse(http.StatusUnprocessableEntity, faults...)
	}
	digits := t.LastFourDigits
	b := t.behaviour()
	b.FirstResponse = ""
	if t.Payment.RequestedMSISDN == "" {
		digits = msisdn.LastFourDigits(number)
		b = behaviourFor(kindPayment, digits)
	}
	down := b.FirstResponse == "down"
	if fault := s.checkPIN(t, number, code, !down); fault != "" {
		return refuse(http.StatusForbidden, pageFault{"pin", fault})
	}
	if down {
		return refuse(http.StatusServiceUnavailable, pageFault{"", texts.Down})
	}
	t.LastFourDigits = digits
	t.Payment.TypedMSISDN = number
	t.Payment.Confirmed = true
	return s.applyConfirmation(t, b)
}

// checkForm reads the typed texts and returns every missing or malformed one. These are not tries of a PIN.
func (p pageText) checkForm(input, typedCode string) (number, code string, faults []pageFault) {
	check := func(field, text string, valid bool, missing, malformed string) {
		switch {
		case strings.TrimSpace(text) == "":
			faults = append(faults, pageFault{field, missing})
		case !valid:
			faults = append(faults, pageFault{field, malformed})
		}
	}
	number, numberValid := parseNumber(input)
	code, codeValid := parsePIN(typedCode)
	check("msisdn", input, numberValid, p.NoNumber, p.BadNumber)
	check("pin", typedCode, codeValid, p.NoPIN, p.BadPIN)
	return number, code, faults
}

// applyConfirmation applies the outcome of the paying number after a good PIN.
func (s *Sandbox) applyConfirmation(t *transaction, b behaviour) plannedResponse {
	planned := plannedResponse{response: merchantRedirect(t)}
	switch {
	case b.FirstResponse == "slow":
		t.FinalizeAt = s.now().Add(slowResponseDelay)
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

// merchantRedirect leads to the merchant's cancel_url after a cancellation, else to its return_url.
func merchantRedirect(t *transaction) response {
	address := t.Payment.ReturnURL
	if t.State == cancelled {
		address = t.Payment.CancelURL
	}
	return response{Status: http.StatusSeeOther, Location: address}
}
