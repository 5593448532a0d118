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
	numberForm = regexp.MustCompile(`^\+?[0-9]{4,15}$`)
	pinForm    = regexp.MustCompile(`^[0-9]{6}$`)
)

// typedNumber reads a number as people type it: spaces, hyphens and points between the digits do not count.
func typedNumber(text string) (string, bool) {
	number := strings.NewReplacer(" ", "", "-", "", ".", "", "\u00a0", "").Replace(text)
	return number, numberForm.MatchString(number)
}

// typedPIN reads a PIN as people type it: spaces between the digits do not count.
func typedPIN(text string) (string, bool) {
	code := strings.NewReplacer(" ", "", "\u00a0", "").Replace(text)
	return code, pinForm.MatchString(code)
}

func plainNumber(number string) string { return strings.TrimPrefix(number, "+") }

// getPage shows the payment's form, or what came of it.
func (s *Sandbox) getPage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	t := s.book.byPage[r.PathValue("token")]
	var out answer
	switch {
	case t == nil:
		out = s.pageGone(r)
	case t.final() || t.Payment.Confirmed || s.isOver(t):
		out = s.statePage(t)
	default:
		out = s.formPage(t, http.StatusOK, t.Payment.MSISDN)
	}
	s.mu.Unlock()
	s.showPage(w, t, out)
}

// payableUntil is when the page stops to take a payment: when the gateway gives up waiting for one.
func (s *Sandbox) payableUntil(t *transaction) time.Time {
	return t.CreatedAt.Add(s.scaled(s.config.PageLifetime))
}

func (s *Sandbox) isOver(t *transaction) bool {
	return t.State == pending && !t.Payment.Confirmed && !s.now().Before(s.payableUntil(t))
}

// postPage takes the form: a confirmed or cancelled payment ends in a redirect to the merchant, and so does every later
// post, which changes nothing. Where it leads is decided last, by what the payment has become: of a confirmation and a
// cancellation side by side, both tell the same.
func (s *Sandbox) postPage(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	err := r.ParseForm()
	action := r.PostForm.Get("action")
	if err != nil {
		action = ""
	}
	s.mu.Lock()
	t := s.book.byPage[r.PathValue("token")]
	if t == nil {
		s.mu.Unlock()
		s.showPage(w, nil, s.pageGone(r))
		return
	}
	out := s.decidePage(t, action, r)
	s.save(t)
	s.mu.Unlock()
	if out.early != nil {
		s.flush(r.Context(), out.early)
	}
	if !s.pause(r, out) {
		cut(w)
		return
	}
	if out.answer.Status == http.StatusSeeOther {
		s.mu.Lock()
		out.answer = redirectBack(t)
		s.mu.Unlock()
	}
	s.showPage(w, t, out.answer)
}

// decidePage is called with the lock held.
func (s *Sandbox) decidePage(t *transaction, action string, r *http.Request) reply {
	typed, code := r.PostForm.Get("msisdn"), r.PostForm.Get("pin")
	if rest, plus := strings.CutPrefix(typed, " "); plus {
		typed = "+" + rest // a plus that nobody escaped: form decoding makes a space of it
	}
	switch {
	case t.final():
		return reply{answer: redirectBack(t)}
	case t.Payment.Confirmed && !t.SettleAt.IsZero():
		out := s.statePage(t)
		out.Status = http.StatusConflict // a slow confirmation is under way
		return reply{answer: out}
	case t.Payment.Confirmed:
		return reply{answer: redirectBack(t)}
	case s.isOver(t):
		return reply{answer: s.statePage(t)}
	case action == "cancel":
		s.settle(t, behaviour{Final: cancelled, Why: "Payment was cancelled by the customer", Tell: []string{cancelled}})
		return reply{answer: redirectBack(t)}
	case action == "confirm":
		return s.confirm(t, typed, code)
	}
	words, _ := textFor(t.Payment.Lang)
	return reply{answer: s.formPage(t, http.StatusUnprocessableEntity, typed, pageFault{"", words.BadAction})}
}

// confirm is a purchaser who agrees. Without a user_msisdn in the request the number that was typed pays, and its digits
// decide; with one, what its digits decide about the first answer was done when the payment was accepted.
func (s *Sandbox) confirm(t *transaction, typed, typedCode string) reply {
	words, _ := textFor(t.Payment.Lang)
	number, code, faults := words.checkForm(typed, typedCode)
	if len(faults) > 0 {
		return reply{answer: s.formPage(t, http.StatusUnprocessableEntity, typed, faults...)}
	}
	b := t.behaviour()
	b.First = ""
	if t.Payment.MSISDN == "" {
		b = behaviourOf(kindPayment, msisdn.LastFour(number))
	}
	down := b.First == "down"
	if fault := s.usePIN(t, number, code, !down); fault != "" {
		return reply{answer: s.formPage(t, http.StatusForbidden, typed, pageFault{"pin", fault})}
	}
	if down {
		return reply{answer: s.formPage(t, http.StatusServiceUnavailable, typed, pageFault{"", words.Down})}
	}
	if t.Payment.MSISDN == "" {
		t.Digits = msisdn.LastFour(number)
	}
	t.Payment.Payer = number
	t.Payment.Confirmed = true
	return s.confirmed(t, b)
}

// checkForm reads what was typed: all that is missing or malformed is told at once. A slip of the hand costs no try: one is
// spent by a PIN of six digits that is wrong.
func (p pageText) checkForm(typed, typedCode string) (number, code string, faults []pageFault) {
	number, numberOK := typedNumber(typed)
	code, codeOK := typedPIN(typedCode)
	switch {
	case strings.TrimSpace(typed) == "":
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

// confirmed does what the behaviour of the paying number is, after a good PIN.
func (s *Sandbox) confirmed(t *transaction, b behaviour) reply {
	out := reply{answer: redirectBack(t)}
	switch {
	case b.First == "slow":
		t.SettleAt = s.now().Add(s.config.SlowAnswer)
		out.wait = t.wait()
		s.settleLater(t)
		return out
	case b.Final == pending:
		return out
	case b.Early || t.Early:
		t.held = true
		out.early = t
	}
	s.settle(t, b)
	if m, _ := mannerOf(b.First); m.spoilt != nil {
		out.answer = *m.spoilt
	}
	return out
}

// redirectBack sends the purchaser to the merchant: to cancel_url after a cancellation, else to return_url.
func redirectBack(t *transaction) answer {
	address := t.Payment.ReturnURL
	if t.State == cancelled {
		address = t.Payment.CancelURL
	}
	return answer{Status: http.StatusSeeOther, Location: address}
}
