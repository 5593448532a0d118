package sandbox

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's template and its style
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// pageSource is the page's template: html/template escapes every value for the place it stands in. pageStyle stands in
// the page under its hash in the Content-Security-Policy: no other style is applied.
var (
	//go:embed page.html
	pageSource string
	//go:embed page.css
	pageStyle string
)

// pageView is what the template shows.
type pageView struct {
	Lang, Title, Heading string
	HeadingStyle         string // good or bad, of the heading; "" for neither
	Text                 pageText
	Style, Clock         template.CSS // Clock: how many seconds the countdown has; "" for none

	Merchant, OrderID, Amount, Currency string
	PlainAmount                         string // for programs: as it was sent
	// Action is the page's own address, without the fragment of a link that was followed: a page with one moves no focus.
	Action string

	Messages []string
	Faults   []pageFault

	Form                            bool
	MSISDN, ConfirmText             string
	UntilText, UntilISO, UntilLabel string // the end of validity and what ends then
	TimeLeft, TimeUpText            string
	Hours                           bool // the countdown is an hour or longer
	BackURL                         string
	ReloadLink                      bool // a link to this page: it may say something else now
}

// pageFault is one thing that has to be put right; Field is "" where it is no field's.
type pageFault struct{ Field, Message string }

// Fault is what is wrong with a field, "" for nothing.
func (v pageView) Fault(field string) string {
	for _, f := range v.Faults {
		if f.Field == field {
			return f.Message
		}
	}
	return ""
}

// view is what every page about a payment shows.
func (s *Sandbox) paymentView(t *transaction, heading string) pageView {
	texts, lang := textFor(t.Payment.Lang)
	v := pageView{
		Lang: lang, Text: texts, Heading: heading,
		Merchant: t.Payment.Reference, OrderID: t.Key, Action: t.Payment.PayToken,
		Amount: texts.formatAmount(t.Amount, t.Currency), Currency: texts.Currency[t.Currency], PlainAmount: t.Amount + " " + t.Currency,
	}
	v.Title = strings.Join([]string{heading, v.Merchant, v.Amount, texts.Sandbox}, " – ")
	return v
}

// formPage is the form, with what has to be put right. It counts down to the end of the PIN that was issued for this
// payment or its number, where there is one, else to the end of the payment.
func (s *Sandbox) formPage(t *transaction, status int, input string, faults ...pageFault) response {
	texts, _ := textFor(t.Payment.Lang)
	v := s.paymentView(t, texts.Pay)
	v.Form, v.MSISDN, v.Faults = true, input, faults
	v.ConfirmText = fmt.Sprintf(texts.Confirm, v.Amount)
	now := s.now()
	until, what, over := s.payableUntil(t), texts.PaymentUntil, texts.PaymentOver
	if p := s.latestPINFor(t, input); p != nil {
		if now.Before(p.ExpiresAt) {
			until, what, over = p.ExpiresAt, texts.PINUntil, texts.PINOver
		} else if len(v.Faults) == 0 {
			v.Faults = []pageFault{{"pin", texts.ExpiredPIN}}
		}
	}
	if len(v.Faults) == 0 && t.Payment.waitsForNewPIN() && s.latestPINFor(t, input) == nil {
		v.Faults = []pageFault{{"pin", texts.Locked}}
	}
	v.countDown(until, now, what, over)
	if len(v.Faults) > 0 {
		v.Title = fmt.Sprintf(texts.Error, v.Faults[0].Message) + " – " + v.Title
	}
	return s.renderPage(status, v)
}

// countDown shows until when something is valid. The clock runs in the style: without script, and hidden from screen
// readers, which read the time of day.
func (v *pageView) countDown(until, now time.Time, what, over string) {
	left := until.Sub(now)
	v.UntilText, v.UntilISO = v.Text.formatTime(until, now), until.Format(time.RFC3339)
	v.UntilLabel, v.TimeUpText, v.TimeLeft = what, over, v.Text.formatTimeLeft(left)
	v.Hours = left >= time.Hour
	v.Clock = template.CSS(fmt.Sprintf(":root{--from:%d}", int((left+time.Second-1)/time.Second))) //nolint:gosec // a number alone
}

// statusPage tells what the payment became, and leads back to the merchant.
func (s *Sandbox) statusPage(t *transaction) response {
	texts, _ := textFor(t.Payment.Lang)
	if t.State == pending && !t.Payment.Confirmed {
		v := s.paymentView(t, texts.Expired)
		v.HeadingStyle, v.Messages, v.BackURL = "bad", []string{texts.ExpiredMore}, t.Payment.CancelURL
		return s.renderPage(http.StatusGone, v)
	}
	v := s.paymentView(t, texts.Status[t.State])
	v.BackURL = merchantRedirect(t).Location
	switch t.State {
	case pending:
		v.Messages, v.ReloadLink = []string{texts.Wait}, true
	case successful:
		v.HeadingStyle, v.Messages = "good", []string{texts.More[t.State]}
	default:
		v.HeadingStyle = "bad"
		if description := texts.Why[t.Payment.StatusDescription]; description != "" {
			v.Messages = []string{description}
		}
		v.Messages = append(v.Messages, texts.More[t.State])
	}
	return s.renderPage(http.StatusOK, v)
}

// goneView is the page where there is no payment, in the language that the browser prefers.
func (s *Sandbox) notFoundPage(r *http.Request) response {
	wanted, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ",")
	wanted, _, _ = strings.Cut(strings.TrimSpace(wanted), ";")
	wanted, _, _ = strings.Cut(wanted, "-")
	texts, lang := textFor(wanted)
	return s.renderPage(http.StatusNotFound, pageView{
		Lang: lang, Text: texts, Heading: texts.Gone, HeadingStyle: "bad", Messages: []string{texts.GoneMore},
		Title: texts.Gone + " – " + texts.Sandbox,
	})
}

func (s *Sandbox) renderPage(status int, v pageView) response {
	v.Style = template.CSS(pageStyle) //nolint:gosec // it is this package's own
	var page bytes.Buffer
	err := s.pageTemplate.Execute(&page, v)
	if err != nil {
		s.config.Logf("sandbox: payment page: %v", err)
		return response{Status: http.StatusInternalServerError, ContentType: htmlType}
	}
	return response{Status: status, ContentType: htmlType, Body: page.Bytes(), styles: []string{pageStyle, string(v.Clock)}}
}

// writePage adds the headers of a page: no script, no frame, no cache, no referrer, and no style but its own.
func (s *Sandbox) writePage(w http.ResponseWriter, t *transaction, a response) {
	policy := []string{"default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"}
	if len(a.styles) > 0 {
		policy = append(policy, "style-src"+styleHashes(a.styles))
	}
	header := w.Header()
	header.Set("Content-Security-Policy", strings.Join(append(policy, formAction(t)), "; "))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Robots-Tag", "noindex, nofollow")
	s.config.Logf("sandbox: page %s", a.logText())
	a.write(w)
}

func styleHashes(styles []string) string {
	sources := ""
	for _, style := range styles {
		if style != "" {
			sum := sha256.Sum256([]byte(style))
			sources += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		}
	}
	return sources
}

// formAction lets the form post here and be sent on to the merchant. Browsers hold every redirect that follows a form to
// this list, those of the merchant's own site too (to its www name, to a login), so that it names the merchant's schemes
// and not its hosts: else a purchaser who has paid would be left on a page that does not move.
func formAction(t *transaction) string {
	if t == nil {
		return "form-action 'none'"
	}
	sources := []string{"'self'"}
	for _, address := range []string{t.Payment.ReturnURL, t.Payment.CancelURL} {
		u, err := url.Parse(address)
		if err == nil && !slices.Contains(sources, u.Scheme+":") {
			sources = append(sources, u.Scheme+":")
		}
	}
	return "form-action " + strings.Join(sources, " ")
}
