package sandbox

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's template and style
	_ "embed" // the texts of the page
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/shared/market"
	"mobilegateway/world/operators/kit"
)

// pageTemplate escapes every value. pageStyle is in the page and its hash in the Content-Security-Policy, which allows
// no other style.
var (
	//go:embed page.html
	pageSource   string
	pageTemplate = template.Must(template.New("page").Parse(pageSource))
	//go:embed page.css
	pageStyle string
)

// pages serves the payment page.
type pages struct {
	*Sandbox
	texts map[string]pageText // by language
}

type pageView struct {
	Title, Heading string
	HeadingStyle   string // good, bad, or "" for neither
	Text           pageText
	Style          template.CSS
	Clock          template.CSS // the length of the countdown in seconds, or ""

	Merchant, OrderID, Amount, Currency string
	PlainAmount                         string // for programs: as in the request
	// Action is the page's own address without a fragment. A page with a fragment would not move the focus.
	Action string

	Messages []string
	Faults   []pageFault

	Form                            bool
	MSISDN, ConfirmText             string
	UntilText, UntilISO, UntilLabel string // the end of validity, and the thing that ends
	TimeLeft, TimeUpText            string
	Hours                           bool // the countdown is an hour or longer
	BackURL                         string
	ReloadLink                      bool // a link to this page, whose status may change
}

// pageFault is a fault that the payer must correct. Field is "" if it belongs to no field.
type pageFault struct{ Field, Message string }

// Fault returns the fault of a field, or "".
func (v pageView) Fault(field string) string {
	for _, f := range v.Faults {
		if f.Field == field {
			return f.Message
		}
	}
	return ""
}

// paymentView is the part of the view that every page about a payment has.
func (s *pages) paymentView(t transaction, heading string) pageView {
	texts := s.textFor(t.Payment.Lang)
	v := pageView{
		Text: texts, Heading: heading, Merchant: t.Payment.Reference, OrderID: t.Key, Action: t.Payment.PayToken,
		Amount: texts.formatAmount(t.Amount, t.Currency), Currency: texts.Currency[t.Currency],
		PlainAmount: t.Amount + " " + t.Currency,
	}
	v.Title = strings.Join([]string{heading, v.Merchant, v.Amount, texts.Sandbox}, " – ")
	return v
}

// formPage is the form with its faults. It counts down to the end of the PIN that was issued for this payment or its
// number. Without such a PIN it counts down to the end of the payment.
func (s *pages) formPage(t transaction, status int, input string, faults ...pageFault) kit.Response {
	texts := s.textFor(t.Payment.Lang)
	v := s.paymentView(t, texts.Pay)
	v.Form, v.MSISDN, v.Faults = true, input, faults
	v.ConfirmText = fmt.Sprintf(texts.Confirm, v.Amount)
	now, pinFault := s.Now(), ""
	until, label, over := s.payableUntil(t), texts.PaymentUntil, texts.PaymentOver
	switch p := s.pins.latestPINFor(t, input); {
	case p == nil && t.Payment.waitsForNewPIN():
		pinFault = texts.Locked
	case p != nil && now.Before(p.ExpiresAt):
		until, label, over = p.ExpiresAt, texts.PINUntil, texts.PINOver
	case p != nil:
		pinFault = texts.ExpiredPIN
	}
	if len(v.Faults) == 0 && pinFault != "" {
		v.Faults = []pageFault{{"pin", pinFault}}
	}
	v.countDown(until, now, label, over)
	if len(v.Faults) > 0 {
		v.Title = fmt.Sprintf(texts.Error, v.Faults[0].Message) + " – " + v.Title
	}
	return s.renderPage(status, v)
}

// countDown shows the time until an end. The clock runs in the style, without a script. Screen readers read the time of
// day instead of the clock.
func (v *pageView) countDown(until, now time.Time, label, over string) {
	left := until.Sub(now)
	v.UntilText, v.UntilISO = v.Text.formatTime(until, now), until.Format(time.RFC3339)
	v.UntilLabel, v.TimeUpText, v.TimeLeft = label, over, v.Text.formatTimeLeft(left)
	v.Hours = left >= time.Hour
	seconds := int((left + time.Second - 1) / time.Second)
	v.Clock = template.CSS(fmt.Sprintf(":root{--from:%d}", seconds)) //nolint:gosec // only a number
}

// statusPage shows the status of a payment and a link to the merchant.
func (s *pages) statusPage(t transaction) kit.Response {
	texts := s.textFor(t.Payment.Lang)
	if t.Status == expired || t.Status == pending && !t.Payment.Confirmed {
		v := s.paymentView(t, texts.Expired)
		v.HeadingStyle, v.Messages, v.BackURL = "bad", []string{texts.ExpiredMore}, t.Payment.CancelURL
		return s.renderPage(http.StatusGone, v)
	}
	v := s.paymentView(t, texts.Status[t.Status])
	v.BackURL = merchantRedirect(t).Header["Location"]
	switch t.Status {
	case pending:
		v.Messages, v.ReloadLink = []string{texts.Wait}, true
	case successful:
		v.HeadingStyle, v.Messages = "good", []string{texts.More[t.Status]}
	default:
		v.HeadingStyle = "bad"
		if reason := texts.Why[t.Payment.StatusDescription]; reason != "" {
			v.Messages = []string{reason}
		}
		v.Messages = append(v.Messages, texts.More[t.Status])
	}
	return s.renderPage(http.StatusOK, v)
}

// notFoundPage is the page without a payment, in the language that the browser prefers.
func (s *pages) notFoundPage(c *kit.Call) kit.Response {
	preferred := strings.TrimSpace(c.Request.Header.Get("Accept-Language"))
	if end := strings.IndexAny(preferred, ",;-"); end >= 0 {
		preferred = preferred[:end]
	}
	texts := s.textFor(preferred)
	return s.writePage(transaction{}, s.renderPage(http.StatusNotFound, pageView{
		Text: texts, Heading: texts.Gone, HeadingStyle: "bad", Messages: []string{texts.GoneMore},
		Title: texts.Gone + " – " + texts.Sandbox,
	}))
}

func (s *pages) renderPage(status int, v pageView) kit.Response {
	v.Style = template.CSS(pageStyle) //nolint:gosec // this package's own style
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, v); err != nil {
		s.config.Logf("sandbox: payment page: %v", err)
		return kit.Response{Status: http.StatusInternalServerError, Type: "text/html; charset=utf-8"}
	}
	return kit.Response{Status: status, Type: "text/html; charset=utf-8", Body: page.Bytes(),
		Header: map[string]string{policyHeader: "style-src" + styleHashes([]string{pageStyle, string(v.Clock)}) + "; "}}
}

const policyHeader = "Content-Security-Policy"

// writePage adds the headers of a page: no script, frame, cache or referrer, and no style but its own.
func (s *pages) writePage(t transaction, page kit.Response) kit.Response {
	header := map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Robots-Tag": "noindex, nofollow"}
	maps.Copy(header, page.Header)
	header[policyHeader] = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; " + page.Header[policyHeader] +
		formAction(t)
	page.Header = header
	s.config.Logf("sandbox: page %d", page.Status)
	return page
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

// formAction allows the form to post here and to redirect to the merchant. Browsers apply this list to every redirect
// after a form, also to those of the merchant's own site. So it names the merchant's schemes and not its hosts: with
// hosts, a payer who has paid could stay on a page that does not move.
func formAction(t transaction) string {
	if t.Transaction == nil {
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

//go:embed pagetext.json
var pageTextSource []byte

// pageText is the text of the payment page in one language. A text with %s or %d is a format.
type pageText struct {
	Lang                               string // the language itself
	Brand, Sandbox, Footer             string
	Pay, Confirm, Cancel               string // Confirm: the amount
	Merchant, Order, Amount            string
	Number, NumberHint, PIN, PINHint   string
	PaymentUntil, PINUntil             string
	PaymentOver, PINOver               string
	Hours, Minutes, Seconds            string // the time that is left
	Error, Problem, Back, Again        string // Error: the fault, for the title
	NoNumber, BadNumber, NoPIN, BadPIN string
	WrongPIN, LastTry                  string // WrongPIN: the number of tries that are left
	Locked, ExpiredPIN, UsedPIN        string
	BadAction, Down                    string
	Wait                               string
	Expired, ExpiredMore               string
	Gone, GoneMore                     string
	Status, More                       map[string]string // by state
	Why                                map[string]string // by statusDescription
	Currency                           map[string]string // by code
	Group, Point, DateForm, MonthNames string
}

// parsePageTexts reads the texts by language: en and fr.
var parsePageTexts = sync.OnceValues(func() (texts map[string]pageText, err error) {
	err = json.Unmarshal(pageTextSource, &texts)
	return texts, err
})

// textFor returns the texts in French for fr, else in English (decision "pay-lang").
func (s *pages) textFor(lang string) pageText {
	if strings.EqualFold(lang, "fr") {
		return s.texts["fr"]
	}
	return s.texts["en"]
}

// formatAmount formats an amount with its currency's code. It has the decimals of the currency, and more only where the
// request has more that are not zero. The digits are never parsed as a number.
func (p pageText) formatAmount(amount, currency string) string {
	whole, decimals, _ := strings.Cut(amount, ".")
	exponent, _ := market.CurrencyExponent(currency)
	decimals = strings.TrimRight(decimals, "0")
	decimals += strings.Repeat("0", max(0, exponent-len(decimals)))
	if decimals != "" {
		decimals = p.Point + decimals
	}
	whole = strings.TrimLeft(whole, "0")
	whole = strings.Repeat("0", max(0, 1-len(whole))) + whole
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + p.Group + whole[i:]
	}
	return whole + decimals + "\u00a0" + currency
}

// formatTime formats a time of day, with the date if it is more than twelve hours away.
func (p pageText) formatTime(at, now time.Time) string {
	if at.Sub(now) < 12*time.Hour {
		return at.Format("15:04:05") + " UTC"
	}
	months := strings.Fields(p.MonthNames)
	return fmt.Sprintf(p.DateForm, at.Day(), months[at.Month()-1], at.Year(), at.Format("15:04"))
}

// formatTimeLeft formats a duration in whole units.
func (p pageText) formatTimeLeft(left time.Duration) string {
	switch {
	case left >= 2*time.Hour:
		return fmt.Sprintf(p.Hours, int(left/time.Hour))
	case left >= 2*time.Minute:
		return fmt.Sprintf(p.Minutes, int(left/time.Minute))
	default:
		return fmt.Sprintf(p.Seconds, int(left/time.Second))
	}
}

// wrongPINText is the response to a wrong PIN with so many tries left.
func (p pageText) wrongPINText(left int) string {
	switch left {
	case 0:
		return p.Locked
	case 1:
		return p.LastTry
	}
	return fmt.Sprintf(p.WrongPIN, left)
}
