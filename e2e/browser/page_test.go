package browser

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"mobilegateway/world/operators/sandbox"
)

// pageTitles are the prefixes of the page titles in one language.
type pageTitles struct {
	form, noNumber, badNumber, badPIN                            string
	wrongPIN, lastTry, locked, expiredPIN, usedPIN, operatorDown string
	inProgress, successful, failed, refused, cancelled           string
	expired, unknown                                             string
}

var pageTitlesByLanguage = map[string]pageTitles{
	"en": {
		form: "Confirm your payment", noNumber: "Error: Enter your mobile number",
		wrongPIN: "Error: This PIN is wrong. You have ", lastTry: "Error: This PIN is wrong. You have one try left",
		locked: "Error: There were five wrong PINs", expiredPIN: "Error: This PIN has expired",
		usedPIN: "Error: This PIN was used already", operatorDown: "Error: The service is not available",
		badNumber: "Error: Enter a mobile number of 4 to 15 digits", badPIN: "Error: Enter a PIN of six digits",
		inProgress: "Payment in progress", successful: "Payment successful", failed: "Payment failed",
		refused: "Payment refused", cancelled: "Payment cancelled", expired: "Payment expired",
		unknown: "Payment not found",
	},
	"fr": {
		form: "Confirmez votre paiement", noNumber: "Erreur\u00a0: Saisissez votre numéro",
		wrongPIN: "Erreur\u00a0: Ce code PIN est faux. Il vous reste ",
		lastTry:  "Erreur\u00a0: Ce code PIN est faux. Il vous reste un essai",
		locked:   "Erreur\u00a0: Cinq codes PIN étaient faux", expiredPIN: "Erreur\u00a0: Ce code PIN a expiré",
		usedPIN:      "Erreur\u00a0: Ce code PIN a déjà servi",
		operatorDown: "Erreur\u00a0: Le service est indisponible",
		badNumber:    "Erreur\u00a0: Saisissez un numéro de mobile de 4 à 15 chiffres",
		badPIN:       "Erreur\u00a0: Saisissez un code PIN de six chiffres",
		inProgress:   "Paiement en cours", successful: "Paiement réussi", failed: "Paiement échoué",
		refused: "Paiement refusé", cancelled: "Paiement annulé", expired: "Paiement expiré",
		unknown: "Paiement introuvable",
	},
}

// TestPaymentPage uses every state of the page with a keyboard, in both languages.
func TestPaymentPage(t *testing.T) {
	if os.Getenv("E2E_BROWSER") == "" {
		t.Skip("make e2e-browser installs the browser and runs this")
	}
	s, browser := newMerchantSite(t), launchBrowser(t)
	stories := map[string]func(p *user){
		"pays": checkPayment, "cancels": checkCancellation, "lets a PIN expire": checkPINExpiry,
		"types a wrong PIN five times": checkWrongPINs,
		"types nothing":                checkEmptyForm, "types invalid values": checkInvalidInput,
		"uses a PIN twice":             checkPINReuse,
		"uses an unavailable operator": checkOperatorDown,
		"has unsuccessful payments":    checkFailedPayments, "is refused": checkRefusedPayment,
		"opens pages without a payment": checkUnknownPayment,
	}
	t.Run("stories", func(t *testing.T) {
		for name, story := range stories {
			for lang, titles := range pageTitlesByLanguage {
				t.Run(name+", "+lang, func(t *testing.T) {
					t.Parallel()
					story(&user{tab: browser.newTab(t, lang), site: s, lang: lang, pageTitles: titles})
				})
			}
		}
	})
}

// user is a person with a keyboard.
type user struct {
	*tab
	site *merchantSite
	lang string
	pageTitles
}

// openPayment opens the page of a new payment.
func (p *user) openPayment() (order, address string) {
	p.Helper()
	order = p.site.newOrderID()
	address = p.site.createPayment(p.T, order, p.lang)
	p.open(address, p.form)
	return order, address
}

// fill tabs through the form from the top of the page and types a number and a PIN. The focus stays on the PIN.
func (p *user) fill(number, pin string) {
	p.Helper()
	p.tabTo("msisdn")
	p.typeText(number)
	p.tabTo("pin")
	p.typeText(pin)
}

// submit fills the form, submits it and checks the resulting state.
func (p *user) submit(number, pin, title, state string) {
	p.Helper()
	p.fill(number, pin)
	p.press("Enter")
	p.waitForTitle(title)
	p.checkState(state + "-" + p.lang)
}

// correctPIN follows the link of the error message to the PIN, types another one and submits the form.
func (p *user) correctPIN(pin string) {
	p.Helper()
	p.followErrorLink("pin")
	p.typeText(pin)
	p.press("Enter")
}

// followErrorLink follows the first link of the error message, which has the focus at first, to a field.
func (p *user) followErrorLink(field string) {
	p.Helper()
	p.waitUntil("the focus on the error message", func() bool { return p.focusedElement() == "faults" })
	p.tabTo("#" + field)
	p.press("Enter")
	p.waitUntil("the focus on the field", func() bool { return p.focusedElement() == field })
}

// checkReturned waits until the user is at the merchant's site and the gateway has the status.
func (p *user) checkReturned(place, order, status string) {
	p.Helper()
	p.waitForTitle("The shop: " + place)
	p.waitUntil("the status "+status, func() bool { return p.site.paymentStatus(p.T, order) == status })
}

func checkPayment(p *user) {
	order, address := p.openPayment()
	issued := p.site.issueTestPIN(p.T, order)
	p.checkState("form-" + p.lang)
	p.setColorScheme("dark")
	p.saveScreenshot("form-dark-"+p.lang, wholePage)
	p.setColorScheme("light")
	p.open(address, p.form)
	p.fill(issued.MSISDN, issued.PIN)
	p.tabTo("confirm")
	p.press("Enter")
	p.checkReturned("return", order, "successful")

	p.open(address, p.successful)
	p.checkState("successful-" + p.lang)
	p.tabTo(p.site.site.URL + "/return")
	p.press("Enter")
	p.waitForTitle("The shop: return")
}

func checkCancellation(p *user) {
	order, address := p.openPayment()
	p.tabTo("msisdn")
	p.tabTo("pin")
	p.tabTo("confirm")
	p.tabTo("cancel")
	p.press("Enter")
	p.checkReturned("cancel", order, "cancelled")

	p.open(address, p.cancelled)
	p.checkState("cancelled-" + p.lang)
	p.tabTo(p.site.site.URL + "/cancel")
	p.press("Enter")
	p.waitForTitle("The shop: cancel")
}

// checkPINExpiry waits for the end of the countdown, which works without scripts.
func checkPINExpiry(p *user) {
	order, address := p.openPayment()
	issued := p.site.issueTestPIN(p.T, order)
	p.open(address, p.form)
	left := func() string {
		const style = `getComputedStyle(document.querySelector(".clock"), "::after")`
		return p.mustEvaluate(style + `.getPropertyValue("--left")`)
	}
	first := left()
	p.waitUntil("the countdown runs", func() bool { return left() != first })
	p.waitUntil("the countdown ends", func() bool {
		return p.mustEvaluate(`getComputedStyle(document.querySelector(".over")).visibility`) == "visible"
	})
	p.checkState("time-over-" + p.lang)
	p.submit(issued.MSISDN, issued.PIN, p.expiredPIN, "pin-expired")
	if status := p.site.paymentStatus(p.T, order); status != "pending" {
		p.Errorf("status %s, want pending", status)
	}
	p.open(address, p.expiredPIN) // the page reports it without a form, and waits for a new PIN
	p.followErrorLink("pin")
	p.typeText(p.site.issueTestPIN(p.T, order).PIN)
	p.press("Enter")
	p.payAfterMissingNumber(issued.MSISDN, order)
}

// payAfterMissingNumber follows the error link to the missing number and pays with a new PIN.
func (p *user) payAfterMissingNumber(number, order string) {
	p.Helper()
	p.waitForTitle(p.noNumber)
	p.followErrorLink("msisdn")
	p.typeText(number)
	p.tabTo("pin")
	p.typeText(p.site.issueTestPIN(p.T, order).PIN)
	p.press("Enter")
	p.checkReturned("return", order, "successful")
}

func checkWrongPINs(p *user) {
	order, _ := p.openPayment()
	issued := p.site.issueTestPIN(p.T, order)
	wrong := otherPIN(issued.PIN)
	p.fill(issued.MSISDN, wrong)
	p.press("Enter")
	for _, title := range []string{p.wrongPIN + "4", p.wrongPIN + "3", p.wrongPIN + "2", p.lastTry} {
		p.waitForTitle(title)
		if title == p.wrongPIN+"4" {
			p.checkState("pin-wrong-" + p.lang)
			p.checkAnnouncedError()
		}
		p.correctPIN(wrong)
	}
	p.waitForTitle(p.locked)
	p.checkState("pin-locked-" + p.lang)
	if status := p.site.paymentStatus(p.T, order); status != "pending" {
		p.Errorf("status %s, want pending", status)
	}
	p.correctPIN(p.site.issueTestPIN(p.T, order).PIN) // the correct number is still in the form
	p.checkReturned("return", order, "successful")
}

// otherPIN returns another PIN of six digits.
func otherPIN(pin string) string {
	last := len(pin) - 1
	return pin[:last] + string('0'+(pin[last]-'0'+1)%10)
}

// checkInvalidInput types an invalid number and a PIN that is not six digits. Neither counts as a try, and correct
// values stay in the form.
func checkInvalidInput(p *user) {
	order, _ := p.openPayment()
	p.submit("070", "123456", p.badNumber, "number-malformed")
	p.followErrorLink("msisdn")
	p.typeText("0005555") // completes the number that is still in the form
	p.tabTo("pin")
	p.typeText("nope")
	p.press("Enter")
	p.waitForTitle(p.badPIN)
	p.checkState("pin-malformed-" + p.lang)
	p.correctPIN(otherPIN(p.site.issueTestPIN(p.T, order).PIN))
	p.waitForTitle(p.wrongPIN + "4")
	p.correctPIN(p.site.issueTestPIN(p.T, order).PIN)
	p.checkReturned("return", order, "successful")
}

// checkPINReuse pays twice with a PIN that is valid for any payment, once.
func checkPINReuse(p *user) {
	order, _ := p.openPayment()
	issued := p.site.issueTestPIN(p.T, "")
	p.fill(issued.MSISDN, issued.PIN)
	p.press("Enter")
	p.checkReturned("return", order, "successful")

	order, _ = p.openPayment()
	p.submit(issued.MSISDN, issued.PIN, p.usedPIN, "pin-used")
	p.correctPIN(p.site.issueTestPIN(p.T, order).PIN)
	p.checkReturned("return", order, "successful")
}

// checkOperatorDown pays while the operator is unavailable. The operator applies nothing, and the user can cancel.
func checkOperatorDown(p *user) {
	order, _ := p.openPayment()
	p.submit("+2250700001009", p.site.issueTestPIN(p.T, order).PIN, p.operatorDown, "unavailable")
	p.waitUntil("the focus on the error message", func() bool { return p.focusedElement() == "faults" })
	for _, next := range []string{"msisdn", "pin", "confirm", "cancel"} {
		p.tabTo(next)
	}
	p.press("Enter")
	p.checkReturned("cancel", order, "cancelled")
}

// checkRefusedPayment opens the page of a payment that the operator refused at once. The merchant gets no address for
// it; the control port does.
func checkRefusedPayment(p *user) {
	order := p.site.newOrderID()
	p.open(p.site.refusedPaymentPage(p.T, order, p.lang), p.refused)
	p.checkState("refused-" + p.lang)
	p.tabTo(p.site.site.URL + "/return")
	p.press("Enter")
	p.checkReturned("return", order, "failed")
}

// checkAnnouncedError checks the text of a wrong PIN for a screen reader: an alert, then an invalid field with the
// reason.
func (p *user) checkAnnouncedError() {
	p.Helper()
	announced := p.accessibilityText()
	for _, want := range map[string][]string{
		"en": {`alert ""`, `link "This PIN is wrong. You have 4 tries left."`,
			`textbox "Mobile number" described by "With or without the country code." invalid=false required=true`,
			`textbox "PIN" described by "The six digits that you were given for this test. ` +
				`This PIN is wrong. You have 4 tries left." invalid=true required=true`,
			`button "Pay 12,500\u00a0XOF"`, `button "Cancel"`},
		"fr": {`alert ""`, `link "Ce code PIN est faux. Il vous reste 4 essais."`,
			`textbox "Code PIN" described by "Les six chiffres qui vous ont été remis pour ce test. ` +
				`Ce code PIN est faux. Il vous reste 4 essais." invalid=true required=true`,
			`button "Payer 12\u202f500\u00a0XOF"`, `button "Annuler"`},
	}[p.lang] {
		if !strings.Contains(announced, want) {
			p.Errorf("a screen reader does not announce %s, but\n%s", want, announced)
		}
	}
	if strings.Contains(announced, "00:0") {
		p.Errorf("a screen reader announces the countdown:\n%s", announced)
	}
}

func checkEmptyForm(p *user) {
	order, _ := p.openPayment()
	p.tabTo("msisdn")
	p.press("Enter")
	p.waitForTitle(p.noNumber)
	p.checkState("nothing-typed-" + p.lang)
	issued := p.site.issueTestPIN(p.T, order)
	p.waitUntil("the focus on the error message", func() bool { return p.focusedElement() == "faults" })
	p.tabTo("#msisdn")
	p.tabTo("#pin")
	p.fill(issued.MSISDN, issued.PIN)
	p.press("Enter")
	p.checkReturned("return", order, "successful")
}

// checkFailedPayments pays with test numbers whose payments do not succeed.
func checkFailedPayments(p *user) {
	for _, c := range []struct{ name, digits, title, status string }{
		{"failed", "1001", p.failed, "failed"},
		{"in-progress", "1003", p.inProgress, "pending"},
	} {
		order, address := p.openPayment()
		p.fill("+225070000"+c.digits, p.site.issueTestPIN(p.T, order).PIN)
		p.press("Enter")
		p.checkReturned("return", order, c.status)
		p.open(address, c.title)
		p.checkState(c.name + "-" + p.lang)
	}
}

// checkUnknownPayment opens the page of an unknown payment and of an expired one, of an operator whose pages live a
// millisecond.
func checkUnknownPayment(p *user) {
	p.open(p.site.gateway.SandboxURL+"/pay/nothing", p.unknown)
	p.checkState("unknown-" + p.lang)

	server := httptest.NewUnstartedServer(nil)
	operator, err := sandbox.New(sandbox.Config{
		Tokens: []string{"t"}, BaseURL: "http://" + server.Listener.Addr().String(), PageLifetime: time.Millisecond,
	})
	if err != nil {
		p.Fatal(err)
	}
	server.Config.Handler = operator.Handler()
	server.Start()
	defer server.Close()
	defer operator.Close()
	acceleratedOperator := &merchantSite{site: p.site.site, gateway: p.site.gateway, notify: p.site.site.URL}
	acceleratedOperator.gateway.BaseURL, acceleratedOperator.gateway.AccessToken = server.URL, "t"
	address := acceleratedOperator.createPayment(p.T, acceleratedOperator.newOrderID(), p.lang)
	p.waitUntil("the payment expires", func() bool {
		p.call("Page.navigate", map[string]any{"url": address}, nil)
		p.waitUntil("a page", func() bool { return p.mustEvaluate("document.readyState") == "complete" })
		return p.mustEvaluate("document.title") != "" &&
			p.mustEvaluate("document.querySelector('form') == null") == "true"
	})
	p.waitForTitle(p.expired)
	p.checkState("expired-" + p.lang)
}
