package browser

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/sandbox"
)

// words are the beginnings of the titles, by language.
type words struct {
	form, noNumber, badNumber, badPIN                  string
	wrong, lastTry, locked, expiredPIN, usedPIN, down  string
	inProgress, successful, failed, refused, cancelled string
	expired, unknown                                   string
}

var titles = map[string]words{
	"en": {
		form: "Confirm your payment", noNumber: "Error: Enter your mobile number", wrong: "Error: This PIN is wrong. You have ",
		lastTry: "Error: This PIN is wrong. You have one try left", locked: "Error: There were five wrong PINs",
		expiredPIN: "Error: This PIN has expired", inProgress: "Payment in progress", successful: "Payment successful",
		failed: "Payment failed", cancelled: "Payment cancelled", expired: "Payment expired", unknown: "Payment not found",
		badNumber: "Error: Enter a mobile number of 4 to 15 digits", badPIN: "Error: Enter a PIN of six digits",
		usedPIN: "Error: This PIN was used already", down: "Error: The service is not available", refused: "Payment refused",
	},
	"fr": {
		form: "Confirmez votre paiement", noNumber: "Erreur\u00a0: Saisissez votre numéro", wrong: "Erreur\u00a0: Ce code PIN est faux. Il vous reste ",
		lastTry: "Erreur\u00a0: Ce code PIN est faux. Il vous reste un essai", locked: "Erreur\u00a0: Cinq codes PIN étaient faux",
		expiredPIN: "Erreur\u00a0: Ce code PIN a expiré", inProgress: "Paiement en cours", successful: "Paiement réussi",
		failed: "Paiement échoué", cancelled: "Paiement annulé", expired: "Paiement expiré", unknown: "Paiement introuvable",
		badNumber: "Erreur\u00a0: Saisissez un numéro de mobile de 4 à 15 chiffres", badPIN: "Erreur\u00a0: Saisissez un code PIN de six chiffres",
		usedPIN: "Erreur\u00a0: Ce code PIN a déjà servi", down: "Erreur\u00a0: Le service est indisponible", refused: "Paiement refusé",
	},
}

// TestPaymentPage is a purchaser without a mouse, in both languages, in every state of the page.
func TestPaymentPage(t *testing.T) {
	if os.Getenv("E2E_BROWSER") == "" {
		t.Skip("make e2e-browser installs the browser and runs this")
	}
	s, browser := newShop(t), launch(t)
	stories := map[string]func(p *purchaser){
		"pays": pays, "cancels": cancels, "lets a PIN expire": lateness, "types a wrong PIN five times": guesses,
		"types nothing": emptiness, "slips": slips, "uses a PIN twice": reuse, "finds the service down": unavailability,
		"payments that come to nothing": failures, "is refused": refusal, "pages without a payment": nothing,
	}
	t.Run("stories", func(t *testing.T) {
		for name, story := range stories {
			for lang, w := range titles {
				t.Run(name+", "+lang, func(t *testing.T) {
					t.Parallel()
					story(&purchaser{tab: browser.newTab(t, lang), shop: s, lang: lang, words: w})
				})
			}
		}
	})
}

// purchaser is a person at a keyboard.
type purchaser struct {
	*tab
	shop *shop
	lang string
	words
}

// begin opens the page of a new payment.
func (p *purchaser) begin() (order, address string) {
	p.Helper()
	order = p.shop.order()
	address = p.shop.pay(p.T, order, p.lang)
	p.open(address, p.form)
	return order, address
}

// fill tabs through the form from the top of the page, types a number and a PIN, and stands on the PIN.
func (p *purchaser) fill(number, pin string) {
	p.Helper()
	p.tabTo("msisdn")
	p.write(number)
	p.tabTo("pin")
	p.write(pin)
}

// correct follows the link of the message at the top, which has the focus, to the PIN, types another and sends the form.
func (p *purchaser) correct(pin string) {
	p.Helper()
	p.follow("pin")
	p.write(pin)
	p.press("Enter")
}

// follow goes from the message, which takes the focus when the page is shown, by its first link to a field.
func (p *purchaser) follow(field string) {
	p.Helper()
	p.until("the focus on what went wrong", func() bool { return p.focus() == "faults" })
	p.tabTo("#" + field)
	p.press("Enter")
	p.until("the focus on the field", func() bool { return p.focus() == field })
}

// backAt ends at the merchant's, and then the gateway knows the status.
func (p *purchaser) backAt(place, order, status string) {
	p.Helper()
	p.await("The shop: " + place)
	p.until("the status "+status, func() bool { return p.shop.status(p.T, order) == status })
}

func pays(p *purchaser) {
	order, address := p.begin()
	issued := p.shop.pin(p.T, order)
	p.look("form-" + p.lang)
	p.scheme("dark")
	p.keep("form-dark-" + p.lang)
	p.scheme("light")
	p.open(address, p.form)
	p.fill(issued.MSISDN, issued.PIN)
	p.tabTo("confirm")
	p.press("Enter")
	p.backAt("return", order, "successful")

	p.open(address, p.successful)
	p.look("successful-" + p.lang)
	p.tabTo(p.shop.site.URL + "/return")
	p.press("Enter")
	p.await("The shop: return")
}

func cancels(p *purchaser) {
	order, address := p.begin()
	p.tabTo("msisdn")
	p.tabTo("pin")
	p.tabTo("confirm")
	p.tabTo("cancel")
	p.press("Enter")
	p.backAt("cancel", order, "cancelled")

	p.open(address, p.cancelled)
	p.look("cancelled-" + p.lang)
	p.tabTo(p.shop.site.URL + "/cancel")
	p.press("Enter")
	p.await("The shop: cancel")
}

// lateness watches the countdown, which no script drives, to its end.
func lateness(p *purchaser) {
	order, address := p.begin()
	issued := p.shop.pin(p.T, order)
	p.open(address, p.form)
	left := func() string {
		return p.sure(`getComputedStyle(document.querySelector(".clock"), "::after").getPropertyValue("--left")`)
	}
	first := left()
	p.until("the countdown runs", func() bool { return left() != first })
	p.until("the countdown ends", func() bool {
		return p.sure(`getComputedStyle(document.querySelector(".over")).visibility`) == "visible"
	})
	p.look("time-over-" + p.lang)
	p.fill(issued.MSISDN, issued.PIN)
	p.press("Enter")
	p.await(p.expiredPIN)
	p.look("pin-expired-" + p.lang)
	if status := p.shop.status(p.T, order); status != "pending" {
		p.Errorf("status %s", status)
	}
	p.open(address, p.expiredPIN) // it says so on its own, and gives more time for a new PIN
	p.follow("pin")
	p.write(p.shop.pin(p.T, order).PIN)
	p.press("Enter")
	p.noNumberYet(issued.MSISDN, order)
}

// noNumberYet is told that the number is missing, follows the link to it, and pays with a new PIN.
func (p *purchaser) noNumberYet(number, order string) {
	p.Helper()
	p.await(p.noNumber)
	p.follow("msisdn")
	p.write(number)
	p.tabTo("pin")
	p.write(p.shop.pin(p.T, order).PIN)
	p.press("Enter")
	p.backAt("return", order, "successful")
}

func guesses(p *purchaser) {
	order, _ := p.begin()
	issued := p.shop.pin(p.T, order)
	wrong := notIt(issued.PIN)
	p.fill(issued.MSISDN, wrong)
	p.press("Enter")
	for _, title := range []string{p.wrong + "4", p.wrong + "3", p.wrong + "2", p.lastTry} {
		p.await(title)
		if title == p.wrong+"4" {
			p.look("pin-wrong-" + p.lang)
			p.hears()
		}
		p.correct(wrong)
	}
	p.await(p.locked)
	p.look("pin-locked-" + p.lang)
	if status := p.shop.status(p.T, order); status != "pending" {
		p.Errorf("status %s", status)
	}
	p.correct(p.shop.pin(p.T, order).PIN) // the number is still there: nobody types twice what is right
	p.backAt("return", order, "successful")
}

// notIt is another PIN of six digits.
func notIt(pin string) string {
	last := len(pin) - 1
	return pin[:last] + string('0'+(pin[last]-'0'+1)%10)
}

// slips are a number that is none and a PIN that is not six digits. Neither costs a try, and what is right stays.
func slips(p *purchaser) {
	order, _ := p.begin()
	p.fill("070", "123456")
	p.press("Enter")
	p.await(p.badNumber)
	p.look("number-malformed-" + p.lang)
	p.follow("msisdn")
	p.write("0005555") // behind what stands there: nobody types twice what is right
	p.tabTo("pin")
	p.write("nope")
	p.press("Enter")
	p.await(p.badPIN)
	p.look("pin-malformed-" + p.lang)
	p.correct(notIt(p.shop.pin(p.T, order).PIN))
	p.await(p.wrong + "4")
	p.correct(p.shop.pin(p.T, order).PIN)
	p.backAt("return", order, "successful")
}

// reuse pays twice with a PIN that is good for any payment, once.
func reuse(p *purchaser) {
	order, _ := p.begin()
	issued := p.shop.pin(p.T, "")
	p.fill(issued.MSISDN, issued.PIN)
	p.press("Enter")
	p.backAt("return", order, "successful")

	order, _ = p.begin()
	p.fill(issued.MSISDN, issued.PIN)
	p.press("Enter")
	p.await(p.usedPIN)
	p.look("pin-used-" + p.lang)
	p.correct(p.shop.pin(p.T, order).PIN)
	p.backAt("return", order, "successful")
}

// unavailability is an operator that is down, where nothing was paid and nothing is lost.
func unavailability(p *purchaser) {
	order, _ := p.begin()
	p.fill("+2250700001009", p.shop.pin(p.T, order).PIN)
	p.press("Enter")
	p.await(p.down)
	p.look("unavailable-" + p.lang)
	p.until("the focus on what went wrong", func() bool { return p.focus() == "faults" })
	for _, next := range []string{"msisdn", "pin", "confirm", "cancel"} {
		p.tabTo(next)
	}
	p.press("Enter")
	p.backAt("cancel", order, "cancelled")
}

// refusal is a payment that the operator refuses at once. The merchant is given no address for its page, which is there
// nevertheless; the control port tells it.
func refusal(p *purchaser) {
	order := p.shop.order()
	p.open(p.shop.refused(p.T, order, p.lang), p.refused)
	p.look("refused-" + p.lang)
	p.tabTo(p.shop.site.URL + "/return")
	p.press("Enter")
	p.backAt("return", order, "failed")
}

// hears is the wrong PIN as a screen reader tells it: an alert, then a field that is wrong and says why.
func (p *purchaser) hears() {
	p.Helper()
	said := p.spoken()
	for _, want := range map[string][]string{
		"en": {`alert ""`, `link "This PIN is wrong. You have 4 tries left."`, `textbox "Mobile number" described by "With or without the country code." invalid=false required=true`,
			`textbox "PIN" described by "The six digits that you were given for this test. This PIN is wrong. You have 4 tries left." invalid=true required=true`,
			`button "Pay 12,500\u00a0XOF"`, `button "Cancel"`},
		"fr": {`alert ""`, `link "Ce code PIN est faux. Il vous reste 4 essais."`, `textbox "Code PIN" described by "Les six chiffres qui vous ont été remis pour ce test. Ce code PIN est faux. Il vous reste 4 essais." invalid=true required=true`,
			`button "Payer 12\u202f500\u00a0XOF"`, `button "Annuler"`},
	}[p.lang] {
		if !strings.Contains(said, want) {
			p.Errorf("a screen reader does not say %s, but\n%s", want, said)
		}
	}
	if strings.Contains(said, "00:0") {
		p.Errorf("a screen reader says the countdown:\n%s", said)
	}
}

func emptiness(p *purchaser) {
	order, _ := p.begin()
	p.tabTo("msisdn")
	p.press("Enter")
	p.await(p.noNumber)
	p.look("nothing-typed-" + p.lang)
	issued := p.shop.pin(p.T, order)
	p.until("the focus on what went wrong", func() bool { return p.focus() == "faults" })
	p.tabTo("#msisdn")
	p.tabTo("#pin")
	p.fill(issued.MSISDN, issued.PIN)
	p.press("Enter")
	p.backAt("return", order, "successful")
}

// failures are the payments that the typed number's digits decide otherwise.
func failures(p *purchaser) {
	for _, c := range []struct{ name, digits, title, status string }{
		{"failed", "1001", p.failed, "failed"},
		{"in-progress", "1003", p.inProgress, "pending"},
	} {
		order, address := p.begin()
		p.fill("+225070000"+c.digits, p.shop.pin(p.T, order).PIN)
		p.press("Enter")
		p.backAt("return", order, c.status)
		p.open(address, c.title)
		p.look(c.name + "-" + p.lang)
	}
}

// nothing are the pages of no payment and of one that nobody paid in time: of an operator whose pages live a moment.
func nothing(p *purchaser) {
	p.open(p.shop.gateway.SandboxURL+"/pay/nothing", p.unknown)
	p.look("unknown-" + p.lang)

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
	hurried := &shop{site: p.shop.site, gateway: p.shop.gateway, notify: p.shop.site.URL}
	hurried.gateway.BaseURL, hurried.gateway.AccessToken = server.URL, "t"
	address := hurried.pay(p.T, hurried.order(), p.lang)
	p.until("the payment's end", func() bool {
		p.call("Page.navigate", map[string]any{"url": address}, nil)
		p.until("a page", func() bool { return p.sure("document.readyState") == "complete" })
		return p.sure("document.title") != "" && p.sure("document.querySelector('form') == null") == "true"
	})
	p.await(p.expired)
	p.look("expired-" + p.lang)
}
