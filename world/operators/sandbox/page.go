package sandbox

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"mobilegateway/world/operators/kit"
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
func (s *pages) getPage(c *kit.Call) kit.Response {
	t, found := s.findPage(c.Request.PathValue("token"))
	switch {
	case !found:
		return s.notFoundPage(c)
	case t.statusFinal() || t.Payment.Confirmed || s.paymentExpired(t):
		return s.writePage(t, s.statusPage(t))
	}
	return s.writePage(t, s.formPage(t, http.StatusOK, t.Payment.RequestedMSISDN))
}

// payableUntil is the end of a payment's page, when the gateway stops to wait for the payment.
func (s *Sandbox) payableUntil(t transaction) time.Time {
	return t.CreatedAt.Add(s.Scaled(s.config.PageLifetime))
}

func (s *Sandbox) paymentExpired(t transaction) bool {
	return t.Status == pending && !t.Payment.Confirmed && !s.Now().Before(s.payableUntil(t))
}

// postPage takes the form. A confirmed or cancelled payment ends in a redirect to the merchant. Each later post ends
// there too, and changes nothing. The payment's status decides the address: a concurrent confirmation and cancellation
// lead to the same one.
func (s *pages) postPage(c *kit.Call) kit.Response {
	form, err := url.ParseQuery(string(c.Body))
	if err != nil || len(c.Body) > kit.MaxBodyBytes {
		form.Del("action")
	}
	t, found := s.findPage(c.Request.PathValue("token"))
	if !found {
		return s.notFoundPage(c)
	}
	page := s.decidePageResponse(t, form.Get("action"), form.Get("msisdn"), form.Get("pin"))
	s.journal.saveTransaction(t)
	return s.writePage(t, page)
}

// decidePageResponse confirms or cancels a payment and plans the response. The caller holds the lock.
func (s *pages) decidePageResponse(t transaction, action, input, typedCode string) kit.Response {
	if rest, spaced := strings.CutPrefix(input, " "); spaced {
		input = "+" + rest // an unescaped plus, which form decoding turns into a space
	}
	slowConfirmation := t.Payment.Confirmed && !t.FinalizeAt.IsZero()
	switch {
	case t.statusFinal() || t.Payment.Confirmed && !slowConfirmation:
		return merchantRedirect(t)
	case slowConfirmation:
		page := s.statusPage(t)
		page.Status = http.StatusConflict
		return page
	case s.paymentExpired(t):
		return s.statusPage(t)
	case action == "cancel":
		s.finalizePayment(t, kit.Outcome{Result: cancelled})
		return merchantRedirect(t)
	case action == "confirm":
		return s.confirmPayment(t, input, typedCode)
	}
	fault := pageFault{"", s.textFor(t.Payment.Lang).BadAction}
	return s.formPage(t, http.StatusUnprocessableEntity, input, fault)
}

// confirmPayment takes a payer's confirmation. The digits of the typed number select the outcome, unless the request
// has a user_msisdn. Its digits have had their effect on the first response already.
func (s *pages) confirmPayment(t transaction, input, typedCode string) kit.Response {
	refuse := func(status int, faults ...pageFault) kit.Response {
		return s.formPage(t, status, input, faults...)
	}
	texts := s.textFor(t.Payment.Lang)
	number, code, faults := texts.checkForm(input, typedCode)
	if len(faults) > 0 {
		return refuse(http.StatusUnprocessableEntity, faults...)
	}
	o := t.Outcome
	o.Mode = ""
	if t.Payment.RequestedMSISDN == "" {
		o = s.OutcomeFor(number)
	}
	down := o.Mode == "503"
	if fault := s.pins.checkPIN(t, number, code, !down); fault != "" {
		return refuse(http.StatusForbidden, pageFault{"pin", fault})
	}
	if down {
		return refuse(http.StatusServiceUnavailable, pageFault{"", texts.Down})
	}
	t.Outcome, t.Payment.TypedMSISDN, t.Payment.Confirmed = o, number, true
	return s.applyConfirmation(t)
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
func (s *pages) applyConfirmation(t transaction) kit.Response {
	o := t.Outcome
	switch {
	case o.Mode == "slow":
		s.finalizeAfter(t, kit.SlowDelay)
		return kit.Response{Delay: kit.SlowDelay, Late: func() (late kit.Response) {
			s.Locked(func() { late = s.writePage(t, merchantRedirect(t)) })
			return late
		}}
	case o.Result == kit.Undecided:
		return merchantRedirect(t)
	}
	var first []kit.Delivery
	if o.CallbackFirst || t.InjectedFirst {
		first = append(first, t.Block())
	}
	s.finalizePayment(t, o)
	response, isFault, _ := s.Fault(o.Mode, t.Key)
	if !isFault {
		response = merchantRedirect(t)
	}
	response.First = first
	return response
}

// merchantRedirect leads to the merchant's cancel_url after a cancellation, else to its return_url.
func merchantRedirect(t transaction) kit.Response {
	if t.Status == cancelled {
		return kit.Redirect(t.Payment.CancelURL)
	}
	return kit.Redirect(t.Payment.ReturnURL)
}
