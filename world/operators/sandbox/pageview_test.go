package sandbox

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/market"
)

// checkPageHeaders checks a page's headers, and that it has no script.
func checkPageHeaders(t *testing.T, page testResponse) {
	t.Helper()
	policy := page.header.Get("Content-Security-Policy")
	wanted := []string{"default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "form-action "}
	rest := page.body
	for strings.Contains(rest, "<style>") {
		sum := sha256.Sum256([]byte(textBetween(rest, "<style>", "</style>")))
		wanted = append(wanted, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
		_, rest, _ = strings.Cut(rest, "</style>")
	}
	contains(t, "Content-Security-Policy", policy, wanted...)
	if strings.Contains(policy, "unsafe") || strings.Contains(page.body, "<script") ||
		strings.Contains(page.body, " style=") {
		t.Errorf("policy %q, page\n%s", policy, page.body)
	}
	for name, want := range map[string]string{"Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff"} {
		equal(t, name, page.header.Get(name), want)
	}
}

func TestPageSecurityHeaders(t *testing.T) {
	for lang, used := range map[string]string{"fr": "fr", "en": "en", "de": "en", "FR": "fr"} {
		r := newTestSandbox(t)
		page := r.confirm(r.payLang("Shop_1", lang, "").path(), `"><script>x</script>`, "1")
		checkPageHeaders(t, page)
		if policy := page.header.Get("Content-Security-Policy"); !strings.HasSuffix(policy,
			"form-action 'self' https:") {
			t.Errorf("policy %q", policy)
		}
		for _, want := range []string{`name="msisdn"`, `name="pin"`, `name="action" value="confirm"`,
			`name="action" value="cancel"`,
			"Shop &lt;Ltd&gt;", `<data value="1500.00 XOF">`, `<label for="pin">`, `role="alert"`,
			"&lt;script&gt;", `aria-invalid="true"`, `<html lang="` + used + `">`} {
			contains(t, lang, page.body, want)
		}
	}
}

// tryWrongPINs types so many wrong PINs and returns the last response.
func (r *testSandbox) tryWrongPINs(web webPayment, times int) testResponse {
	r.Helper()
	p := r.issuePIN("")
	var page testResponse
	for range times {
		page = r.confirm(web.path(), p.MSISDN, differentPIN(p))
	}
	return page
}

// Both languages say everything, with the same places to fill.
func TestPageTextsAreComplete(t *testing.T) {
	texts := testPageTexts(t)
	english, french := reflect.ValueOf(texts["en"]), reflect.ValueOf(texts["fr"])
	for i := range english.NumField() {
		name := english.Type().Field(i).Name
		switch e := english.Field(i).Interface().(type) {
		case string:
			f := french.Field(i).String()
			if e == "" || f == "" || strings.Count(e, "%") != strings.Count(f, "%") {
				t.Errorf("%s: %q, %q", name, e, f)
			}
		case map[string]string:
			f := french.Field(i).Interface().(map[string]string)
			if len(e) == 0 || !slices.Equal(slices.Sorted(maps.Keys(e)), slices.Sorted(maps.Keys(f))) {
				t.Errorf("%s: %v, %v", name, e, f)
			}
		}
	}
	for _, state := range []string{pending, successful, failed, cancelled, refused} {
		if texts["en"].Status[state] == "" || state != pending && texts["en"].More[state] == "" {
			t.Errorf("no text for %s", state)
		}
	}
}

func TestFormatAmountByLanguage(t *testing.T) {
	texts := testPageTexts(t)
	for _, c := range []struct{ amount, currency, english, french string }{
		{"1500.00", "XOF", "1,500 XOF", "1 500 XOF"},
		{"500", "XAF", "500 XAF", "500 XAF"},
		{"1234567.5", "USD", "1,234,567.50 USD", "1 234 567,50 USD"},
		{"0.15", "USD", "0.15 USD", "0,15 USD"},
		{"007.1250", "TND", "7.125 TND", "7,125 TND"},
		{"1.0050", "XOF", "1.005 XOF", "1,005 XOF"}, // the operator takes it; the page hides nothing
		{"999999999999", "XOF", "999,999,999,999 XOF", "999 999 999 999 XOF"},
	} {
		for want, text := range map[string]pageText{c.english: texts["en"], c.french: texts["fr"]} {
			got := strings.NewReplacer("\u202f", " ", "\u00a0", " ").Replace(text.formatAmount(c.amount, c.currency))
			equal(t, c.amount+" "+c.currency, got, want)
		}
	}
}

// Each currency of the table has a name in both languages; any other appears by its code, and nothing is empty.
func TestCurrencyNames(t *testing.T) {
	texts := testPageTexts(t)
	english, french := texts["en"].Currency, texts["fr"].Currency
	for _, c := range market.All() {
		if english[c.Currency] == "" || french[c.Currency] == "" {
			t.Errorf("%s, %s: the page has no name for it (pagetext.json)", c.Name, c.Currency)
		}
	}
	r := newTestSandbox(t)
	body := strings.Replace(payJSON("Shop_1", "", ""), `"XOF"`, `"ZZZ"`, 1)
	page := strings.ReplaceAll(r.postWeb(body, "en").get().body, "\u00a0", " ")
	contains(t, "unknown currency", page, `<data value="1500.00 ZZZ">1,500 ZZZ</data></dd>`, "Pay 1,500 ZZZ</button>")
}

// Every state of the page, in both languages: its status, its title, what it says, and whether it has a form.
func TestPageStatuses(t *testing.T) {
	typed := func(number, code string) func(w webPayment) testResponse {
		return func(w webPayment) testResponse { return w.confirm(w.path(), number, code) }
	}
	wrongPINs := func(times int) func(w webPayment) testResponse {
		return func(w webPayment) testResponse { return w.tryWrongPINs(w, times) }
	}
	paidBy := func(digits string) func(w webPayment) testResponse {
		return func(w webPayment) testResponse {
			w.confirm(w.path(), "070000"+digits, w.issuePIN("").PIN)
			return w.get()
		}
	}
	for _, c := range []struct {
		name    string
		act     func(w webPayment) testResponse
		status  int
		english string
		french  string
		form    bool
	}{
		{"form", webPayment.get, 200, "<title>Confirm your payment – ", "<title>Confirmez votre paiement – ", true},
		{"nothing typed", typed("", ""), 422, "<title>Error: Enter your mobile number.",
			"<title>Erreur : Saisissez votre numéro", true},
		{"no PIN", typed("0700005555", " "), 422, "<title>Error: Enter the PIN.",
			"<title>Erreur : Saisissez le code PIN.", true},
		{"malformed PIN", typed("07 00", "12345x"), 422, "<title>Error: Enter a PIN of six digits.",
			"<title>Erreur : Saisissez un code PIN de six chiffres.", true},
		{"malformed both", typed("call me", "nope"), 422, "<title>Error: Enter a mobile number of 4 to 15 digits.",
			"<title>Erreur : Saisissez un numéro de mobile de 4 à 15 chiffres.", true},
		{"wrong PIN", wrongPINs(1), 403, "<title>Error: This PIN is wrong. You have 4 tries left.",
			"<title>Erreur : Ce code PIN est faux. Il vous reste 4 essais.", true},
		{"wrong PIN, last try", wrongPINs(4), 403, "You have one try left.", "Il vous reste un essai.", true},
		{"too many tries", wrongPINs(5), 403, "<title>Error: There were five wrong PINs.",
			"<title>Erreur : Cinq codes PIN étaient faux.", true},
		{"too many tries, looked at again", func(w webPayment) testResponse {
			w.tryWrongPINs(w, 5)
			return w.get()
		}, 200, "There were five wrong PINs.", "Cinq codes PIN étaient faux.", true},
		{"PIN expired", func(w webPayment) testResponse {
			p := w.issuePIN("")
			w.clock.Advance(15 * time.Minute)
			w.issuePIN("") // another one, which must not make the first one unknown
			return w.confirm(w.path(), p.MSISDN, p.PIN)
		}, 403, "<title>Error: This PIN has expired.", "<title>Erreur : Ce code PIN a expiré.", true},
		{"PIN used", func(w webPayment) testResponse {
			p := w.issuePIN("")
			w.confirm(w.payWeb("Shop_2", "").path(), p.MSISDN, p.PIN)
			return w.confirm(w.path(), p.MSISDN, p.PIN)
		}, 403, "<title>Error: This PIN was used already.", "<title>Erreur : Ce code PIN a déjà servi.", true},
		{"down", func(w webPayment) testResponse {
			return w.confirm(w.path(), "0700001009", w.issuePIN("").PIN)
		}, 503, "<title>Error: The service is not available.", "<title>Erreur : Le service est indisponible.", true},
		{"neither button", func(w webPayment) testResponse { return w.post(w.path(), nil) }, 422,
			"<title>Error: Choose to pay", "<title>Erreur : Choisissez de payer", true},
		{"pending", paidBy("1003"), 200, "<title>Payment in progress", "<title>Paiement en cours", false},
		{"successful", paidBy("5555"), 200, "<title>Payment successful", "<title>Paiement réussi", false},
		{"failed by the user", paidBy("1001"), 200, "The payment was refused on your phone.",
			"Le paiement a été refusé sur votre téléphone.", false},
		{"failed for want of credit", paidBy("1002"), 200, "<title>Payment failed", "<title>Paiement échoué", false},
		{"refused by the operator", func(w webPayment) testResponse {
			lang := map[bool]string{true: "fr", false: "en"}[strings.HasSuffix(w.Name(), "fr")]
			w.control("POST /script", `{"key":"Shop_2","kind":"payment","calls":["POL0253"]}`, 201, nil)
			w.do("POST", "/mobilemoney/v1", payJSON("Shop_2", "", ""),
				withHeaders(payHeaders, "channel", "web", "lang", lang))
			return w.do("GET", strings.TrimPrefix(w.transactions("Shop_2")[0].PaymentURL, w.url), "", nil)
		}, 200, "<title>Payment refused", "<title>Paiement refusé", false},
		{"cancelled", func(w webPayment) testResponse {
			w.post(w.path(), url.Values{"action": {"cancel"}})
			return w.get()
		}, 200, "<title>Payment cancelled", "<title>Paiement annulé", false},
		{"expired", func(w webPayment) testResponse {
			w.clock.Advance(24 * time.Hour)
			return w.get()
		}, 410, "<title>Payment expired", "<title>Paiement expiré", false},
		{"expired under the form", func(w webPayment) testResponse {
			w.clock.Advance(24 * time.Hour)
			p := w.issuePIN("")
			return w.confirm(w.path(), p.MSISDN, p.PIN)
		}, 410, "<title>Payment expired", "<title>Paiement expiré", false},
	} {
		for lang, want := range map[string]string{"en": c.english, "fr": c.french} {
			t.Run(c.name+", "+lang, func(t *testing.T) {
				page := c.act(newTestSandbox(t).payLang("Shop_1", lang, ""))
				equal(t, "status of the page", page.status, c.status)
				contains(t, "page", html.UnescapeString(page.body), want)
				equal(t, "the page has a form", strings.Contains(page.body, "<form"), c.form)
				contains(t, "language", page.body, `<html lang="`+lang+`">`)
				titled := strings.Contains(page.body,
					map[string]string{"en": "<title>Error: ", "fr": "<title>Erreur\u00a0: "}[lang])
				equal(t, "an announced error is in the title", titled, strings.Contains(page.body, `role="alert"`))
				checkPageHeaders(t, page)
			})
		}
	}
}

// The countdown runs to the end of the PIN that was issued for the payment or its number, else to the end of the
// payment.
func TestCountdown(t *testing.T) {
	r := newTestSandbox(t)
	open := func(web webPayment) string { return html.UnescapeString(web.get().body) }
	bound, plain := r.payLang("Shop_1", "en", ""), r.payLang("Shop_3", "en", "")
	numbered := r.payLang("Shop_2", "fr", "0700005555")
	p := r.issuePIN(`{"order_id":"Shop_1"}`)
	r.issuePIN(`{"msisdn":"0700005555"}`)
	r.clock.Advance(5 * time.Minute)
	for page, wants := range map[string][]string{
		open(bound): {"PIN valid until", `datetime="2026-11-21T10:15:00Z"`, "10:15:00 UTC", "10 min left",
			"--from:600}"},
		open(numbered): {"PIN valable jusqu’à", "10:15:00 UTC", "encore 10 min"},
		open(plain): {"You can pay until", "22 November 2026, 10:00 UTC", "23 h left", "--from:86100}",
			"clock hours"},
	} {
		contains(t, "countdown", page, wants...)
	}
	r.checkPage("another payment's PIN", r.confirm(plain.path(), p.MSISDN, p.PIN), 403, "wrong")
	r.clock.Advance(10 * time.Minute)
	if page := open(bound); !strings.Contains(page, "This PIN has expired.") ||
		!strings.Contains(page, "You can pay until") {
		t.Errorf("the PIN has expired:\n%s", page)
	}
	p = r.issuePIN(`{"order_id":"Shop_1"}`)
	if page := open(bound); strings.Contains(page, "alert") || !strings.Contains(page, "10:30:00 UTC") {
		t.Errorf("a new PIN:\n%s", page)
	}
	equal(t, "its own PIN", r.confirm(bound.path(), "0700001234", p.PIN).status, 303)
}

func TestUnknownPageUsesBrowserLanguage(t *testing.T) {
	r := newTestSandbox(t)
	for accepted, want := range map[string]string{"fr-CI,fr;q=0.9": "Paiement introuvable", "en": "Payment not found",
		"": "Payment not found", "fr;q=1": "introuvable"} {
		for _, method := range []string{"GET", "POST"} {
			page := r.do(method, "/pay/nothing", "", map[string]string{"Accept-Language": accepted})
			r.checkPage(accepted, page, 404, want)
			checkPageHeaders(t, page)
		}
	}
}

// Concurrent confirmations and cancellations all redirect by the final status.
func TestConcurrentConfirmAndCancel(t *testing.T) {
	r := newTestSandbox(t)
	for round := range 20 {
		order := "Shop_" + string(rune('a'+round))
		web, p := r.payWeb(order, ""), r.issuePIN("")
		responses := make(chan testResponse, 8)
		for i := range cap(responses) {
			go func() {
				action := []string{"confirm", "cancel"}[i%2]
				responses <- r.post(web.path(), url.Values{"action": {action}, "msisdn": {p.MSISDN}, "pin": {p.PIN}})
			}()
		}
		addresses := map[string]bool{}
		for range cap(responses) {
			response := <-responses
			equal(t, "status of the response", response.status, 303)
			addresses[response.header.Get("Location")] = true
		}
		want := map[string]string{successful: returnURL, cancelled: cancelURL}[r.status(order)]
		if len(addresses) != 1 || !addresses[want] {
			t.Errorf("%s: %v", r.status(order), addresses)
		}
	}
}
