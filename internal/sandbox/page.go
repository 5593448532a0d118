package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"mobilegateway/shared/msisdn"
)

const htmlType = "text/html; charset=utf-8"

var (
	numberForm = regexp.MustCompile(`^\+?[0-9]{4,15}$`)
	hostForm   = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]{1,5})?$`)
)

// typedNumber reads a number as people type it: spaces, hyphens and points between the digits do not count.
func typedNumber(text string) (string, bool) {
	number := strings.NewReplacer(" ", "", "-", "", ".", "", "\u00a0", "").Replace(text)
	return number, numberForm.MatchString(number)
}

func plainNumber(number string) string { return strings.TrimPrefix(number, "+") }

// pageView is what the template shows.
type pageView struct {
	Lang     string
	Text     pageText
	Style    template.CSS
	Merchant string
	OrderID  string
	Amount   string
	Form     bool
	MSISDN   string
	Error    string
	Message  string
	BackURL  string
}

// getPage shows the payment's form, or what came of it.
func (s *Sandbox) getPage(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	t := s.book.byPage[r.PathValue("token")]
	var out answer
	switch {
	case t == nil:
		out = s.pageGone()
	case t.final() || t.Payment.Confirmed:
		out = s.donePage(t)
	default:
		out = s.formPage(t, http.StatusOK, "", t.Payment.MSISDN)
	}
	s.mu.Unlock()
	s.showPage(w, t, out)
}

// postPage takes the form: a confirmed or cancelled payment ends in a redirect to the merchant, and so does every later
// post, which changes nothing.
func (s *Sandbox) postPage(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	err := r.ParseForm()
	action, msisdn, code := r.PostForm.Get("action"), r.PostForm.Get("msisdn"), r.PostForm.Get("pin")
	if rest, plus := strings.CutPrefix(msisdn, " "); plus {
		msisdn = "+" + rest // a plus that nobody escaped: form decoding makes a space of it
	}
	s.mu.Lock()
	t := s.book.byPage[r.PathValue("token")]
	var out reply
	switch {
	case t == nil:
		out.answer = s.pageGone()
	case t.final():
		out.answer = redirectBack(t)
	case t.Payment.Confirmed && !t.SettleAt.IsZero():
		out.answer = s.donePage(t)
		out.answer.Status = http.StatusConflict // a slow confirmation is under way
	case t.Payment.Confirmed:
		out.answer = redirectBack(t)
	case err == nil && action == "cancel":
		s.settle(t, behaviour{Final: cancelled, Why: "Payment was cancelled by the customer", Tell: []string{cancelled}})
		out.answer = redirectBack(t)
	case err == nil && action == "confirm":
		out = s.confirm(t, msisdn, strings.TrimSpace(code))
	default:
		out.answer = s.formPage(t, http.StatusUnprocessableEntity, textFor(t).BadAction, msisdn)
	}
	if t != nil {
		s.save(t)
	}
	s.mu.Unlock()
	if out.early != nil {
		s.flush(r.Context(), out.early)
	}
	if !s.pause(r, out) {
		cut(w)
		return
	}
	s.showPage(w, t, out.answer)
}

// confirm is a purchaser who agrees. Without a user_msisdn in the request the number that was typed pays, and its digits
// decide; with one, what its digits decide about the first answer was done when the payment was accepted.
func (s *Sandbox) confirm(t *transaction, typed, code string) reply {
	words := textFor(t)
	number, ok := typedNumber(typed)
	if !ok {
		return reply{answer: s.formPage(t, http.StatusUnprocessableEntity, words.BadNumber, typed)}
	}
	b := t.behaviour()
	b.First = ""
	if t.Payment.MSISDN == "" {
		b = behaviourOf(kindPayment, msisdn.LastFour(number))
	}
	down := b.First == "down"
	if !s.usePIN(t.Payment, number, code, !down) {
		return reply{answer: s.formPage(t, http.StatusForbidden, words.BadPIN, typed)}
	}
	if down {
		return reply{answer: s.formPage(t, http.StatusServiceUnavailable, words.Down, typed)}
	}
	if t.Payment.MSISDN == "" {
		t.Digits = msisdn.LastFour(number)
	}
	t.Payment.Payer = number
	t.Payment.Confirmed = true
	return s.confirmed(t, b)
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

func (s *Sandbox) formPage(t *transaction, status int, fault, msisdn string) answer {
	v := s.pageView(t)
	v.Form, v.Error, v.MSISDN = true, fault, msisdn
	return s.render(status, v)
}

func (s *Sandbox) donePage(t *transaction) answer {
	v := s.pageView(t)
	v.Message = v.Text.Status[t.State]
	v.BackURL = redirectBack(t).Location
	return s.render(http.StatusOK, v)
}

func (s *Sandbox) pageGone() answer {
	return s.render(http.StatusNotFound, pageView{Lang: "en", Text: english, Style: pageStyle, Message: english.Gone})
}

func (s *Sandbox) pageView(t *transaction) pageView {
	lang := "en"
	if isFrench(t) {
		lang = "fr"
	}
	return pageView{
		Lang: lang, Text: textFor(t), Style: pageStyle,
		Merchant: t.Payment.Reference, OrderID: t.Key, Amount: t.Amount + " " + t.Currency,
	}
}

func (s *Sandbox) render(status int, v pageView) answer {
	var page bytes.Buffer
	err := s.page.Execute(&page, v)
	if err != nil {
		return answer{Status: http.StatusInternalServerError, Type: htmlType}
	}
	return answer{Status: status, Type: htmlType, Body: page.Bytes()}
}

// showPage adds the headers of a page: no script, no frame, no cache, and forms to nowhere but here and, by redirect,
// the merchant.
func (s *Sandbox) showPage(w http.ResponseWriter, t *transaction, a answer) {
	sum := sha256.Sum256([]byte(pageStyle))
	targets := []string{"'self'"}
	if t != nil {
		targets = append(targets, origin(t.Payment.ReturnURL), origin(t.Payment.CancelURL))
	}
	header := w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; style-src 'sha256-"+
		base64.StdEncoding.EncodeToString(sum[:])+"'; form-action "+strings.Join(targets, " "))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	s.config.Logf("sandbox: page %s", a.word())
	a.write(w)
}

// origin is an address's source for the policy; a host that the policy's grammar has no word for gives its scheme.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if !hostForm.MatchString(u.Host) {
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host
}
