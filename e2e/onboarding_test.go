package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/localtest"
)

// overlap is how long the old token and client secret live on in the stories of rotation.
const overlap = 15 * time.Second

// TestOnboarding lets an operations engineer work with gatewayctl on a run, and looks at what merchants and their
// servers see of it.
func TestOnboarding(t *testing.T) {
	needsLocal(t)
	t.Parallel()
	e := newEngineer(t, localtest.Options{Speed: speed})
	for name, story := range map[string]func(*engineer){
		"one command, and all four operations work":                   (*engineer).onboarding,
		"decision access-tokens: old and new token, then the new":     (*engineer).tokenRotation,
		"decision token-endpoint: old and new client secret":          (*engineer).clientSecretRotation,
		"decision notifications: old and new secret sign":             (*engineer).webhookRotation,
		"decision key-rings: a new key, and the old one stays":        (*engineer).keyRotation,
		"decision unknown-by-hand: what the merchant is told":         (*engineer).byHand,
		"decision sandbox: a slot is booked, and freed":               (*engineer).slots,
		"decision notifications: 1,000 deliveries are sent once more": (*engineer).thousand,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(e.at(t))
		})
	}
}

// pays posts a payment of a merchant and waits for its notification at the merchant's server.
func (e *engineer) pays(from shop, m *moody) reply {
	e.t.Helper()
	order := from.Merchant + "_" + e.g.newID()
	got, err := answers(newPayment(from, order, "ussd", plainNumber), e.g.BaseURL)
	if err != nil || got != http.StatusCreated {
		e.t.Fatalf("the payment is answered %d, %v", got, err)
	}
	return eventually(e.t, toldWithin, func() (reply, error) {
		for _, v := range m.seen("/hook") {
			if found, _ := v.message.text("order-id"); found == order {
				return v.message, nil
			}
		}
		return reply{}, errors.New("no notification came")
	})
}

// onboarding: what one command shows is all that a merchant needs.
func (e *engineer) onboarding() {
	t, m := e.t, newMoody(e.t)
	e.does("merchant add Alpha --country ci --operator sandbox", nil) // without --yes
	made := e.onboards("Alpha", m.URL+"/hook")
	if err := verifyGo(made.WebhookSecret, e.pays(made.shop, m)); err != nil {
		t.Errorf("the notification: %v", err)
	}
	short, status, err := e.fetches(made.ClientID, made.ClientSecret)
	if err != nil || status != http.StatusOK {
		t.Fatalf("the token endpoint answers %d, %v", status, err)
	}
	for kind, token := range map[string]string{"long-lived": made.AccessToken, "short-lived": short} {
		from := made.with(token)
		order := "Alpha_" + e.g.newID()
		lookup := newAsk(from, http.MethodGet, "/mobilemoney/v1/getStatus/"+order)
		lookup.body = nil
		for i, step := range []struct {
			a    *ask
			want int
		}{
			{newCharge(from, e.g.newID(), from.GWAlias), 201}, {newPayment(from, order, "ussd", plainNumber), 201},
			{newSMS(from, e.g.newID(), from.GWAlias, "tel:+2250000"), 201}, {lookup, 200},
		} {
			if got, err := answers(step.a, e.g.BaseURL); err != nil || got != step.want {
				t.Errorf("%s token, step %d: %d, %v", kind, i+1, got, err)
			}
		}
	}
	if code, _, notes := e.types("merchant add ALPHA --country ci --operator sandbox" + because); code != 1 {
		t.Errorf("the name was given twice: exit %d, %s", code, notes)
	}
	var records []struct{ What, Why, Outcome string }
	if e.does("audit --subject Alpha", &records); len(records) != 2 || records[0].Outcome != "done" || records[0].Why != "story" {
		t.Errorf("the audit: %+v", records)
	}
}

func (e *engineer) tokenRotation() {
	made := e.onboards("Bravo", newMoody(e.t).URL+"/hook")
	var second issuedSecret
	e.does("token rotate Bravo --overlap "+overlap.String()+because, &second)
	e.soon(func() error { return e.charges(made.with(second.Secret), 201) })
	if err := e.charges(made.shop, 201); err != nil && time.Now().Before(second.EndAt) {
		e.t.Errorf("the old token within the overlap: %v", err)
	}
	e.soon(func() error { return e.charges(made.shop, 401) })
	if time.Now().Before(second.EndAt) {
		e.t.Error("the old token ended before its time")
	}
	if err := e.charges(made.with(second.Secret), 201); err != nil {
		e.t.Errorf("the new token after the overlap: %v", err)
	}
}

func (e *engineer) clientSecretRotation() {
	made := e.onboards("Charlie", newMoody(e.t).URL+"/hook")
	fetch := func(secret string, want int) error {
		_, got, err := e.fetches(made.ClientID, secret)
		if err == nil && got != want {
			err = fmt.Errorf("the token endpoint answers %d, want %d", got, want)
		}
		return err
	}
	var second issuedSecret
	e.does("client-secret rotate Charlie --overlap "+overlap.String()+because, &second)
	e.soon(func() error { return fetch(second.Secret, 200) })
	if err := fetch(made.ClientSecret, 200); err != nil && time.Now().Before(second.EndAt) {
		e.t.Errorf("the old secret within the overlap: %v", err)
	}
	e.soon(func() error { return fetch(made.ClientSecret, 401) })
	if err := fetch(second.Secret, 200); err != nil {
		e.t.Errorf("the new secret after the overlap: %v", err)
	}
}

func (e *engineer) webhookRotation() {
	m := newMoody(e.t)
	made := e.onboards("Delta", m.URL+"/hook")
	var second issuedSecret
	e.does("webhook-secret rotate Delta"+because, &second)
	signed := func(byOld, byNew bool) error {
		message := e.pays(made.shop, m)
		old, fresh := verifyGo(made.WebhookSecret, message), verifyGo(second.Webhook, message)
		if (old == nil) != byOld || (fresh == nil) != byNew {
			return fmt.Errorf("verified by the old secret: %t, by the new one: %t", old == nil, fresh == nil)
		}
		return nil
	}
	e.soon(func() error { return signed(true, true) })
	e.does("webhook-secret revoke Delta 1"+because, nil)
	e.soon(func() error { return signed(false, true) })
	// A secret that was revoked as the newest is not the next one: whoever knows it signs nothing that is believed.
	var leaked, fresh issuedSecret
	e.does("webhook-secret rotate Delta"+because, &leaked)
	e.does("webhook-secret revoke Delta "+strconv.Itoa(leaked.Version)+because, nil)
	if code, _, notes := e.types("webhook-secret revoke Delta 2" + because); code != 1 || !strings.Contains(notes, "--last") {
		e.t.Errorf("the last secret was revoked: exit %d, %s", code, notes)
	}
	e.does("webhook-secret rotate Delta"+because, &fresh)
	if fresh.Version <= leaked.Version || fresh.Webhook == leaked.Webhook {
		e.t.Errorf("version %d after version %d, which was revoked", fresh.Version, leaked.Version)
	}
	second = fresh
	e.soon(func() error { return signed(false, true) })
}

// keyRotation: a second key in each ring changes nothing for what the first one signed, which is not retired too soon.
func (e *engineer) keyRotation() {
	m := newMoody(e.t)
	made := e.onboards("Echo", m.URL+"/hook")
	before, _, err := e.fetches(made.ClientID, made.ClientSecret)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
		if notes := e.does("keys add "+ring+because, nil); !strings.Contains(notes, "Key 2 signs in 5m0s") {
			e.t.Errorf("keys add %s: %s", ring, notes)
		}
		if code, _, notes := e.types("keys retire " + ring + " 1" + because); code != 1 {
			e.t.Errorf("keys retire %s: exit %d, %s", ring, code, notes)
		}
	}
	after := eventually(e.t, 40*time.Second, func() (string, error) { // five minutes of this run are five seconds
		token, _, err := e.fetches(made.ClientID, made.ClientSecret)
		if err == nil && !strings.HasPrefix(token, "gws_AAI") { // the key's number is the first two bytes
			err = errors.New("the second key does not sign yet")
		}
		return token, err
	})
	for _, token := range []string{before, after} {
		if err := e.charges(made.with(token), 201); err != nil {
			e.t.Error(err)
		}
	}
	if err := verifyGo(made.WebhookSecret, e.pays(made.shop, m)); err != nil {
		e.t.Error(err)
	}
}

// byHand: two charges whose answers were lost, one of them applied.
func (e *engineer) byHand() {
	made := e.onboards("Foxtrot", newMoody(e.t).URL+"/hook")
	for _, c := range []struct {
		word, said string
		want       int
		effects    int
	}{{"cut", "applied", 201, 1}, {"lost", "not-applied", 400, 0}} {
		key := e.g.newID()
		script := map[string]any{"key": "Foxtrot." + key, "kind": "charge", "calls": []string{c.word, c.word, c.word}}
		if err := e.g.control(http.MethodPost, "script", script, nil); err != nil {
			e.t.Fatal(err)
		}
		a := newCharge(made.shop, key, made.GWAlias)
		if got, err := answers(a, e.g.BaseURL); err != nil || got != http.StatusGatewayTimeout {
			e.t.Fatalf("%s: %d, %v", c.word, got, err)
		}
		var charge struct{ ID string }
		e.does("charge show --merchant Foxtrot --correlator "+key, &charge)
		_, before, err := e.g.knows("Foxtrot."+key, "charge")
		if err != nil {
			e.t.Fatal(err)
		}
		e.does("unknown resolve charge "+charge.ID+" --as "+c.said+because, nil)
		for range 2 {
			if got, err := answers(a, e.g.BaseURL); err != nil || got != c.want {
				e.t.Errorf("%s: its repeat is answered %d, %v", c.said, got, err)
			}
		}
		_, known, err := e.g.knows("Foxtrot."+key, "charge")
		if err != nil || known.Calls != before.Calls {
			e.t.Errorf("%s: sent again: %d calls, then %d (%v)", c.said, before.Calls, known.Calls, err)
		}
		if found, err := e.g.effectsOf("Foxtrot."+key, "charge"); err != nil || len(found) != c.effects {
			e.t.Errorf("%s: %d effects, %v", c.said, len(found), err)
		}
		if code, _, _ := e.types("unknown resolve charge " + charge.ID + " --as applied" + because); code != 1 {
			e.t.Errorf("%s: resolved twice", c.said)
		}
	}
}

func (e *engineer) slots() {
	e.onboards("Golf", newMoody(e.t).URL+"/hook")
	var booked []struct{ ID, Merchant string }
	e.does("slot book Golf --at 2030-01-01T09:00:00Z --for 2h"+because, &booked)
	if len(booked) != 1 || booked[0].Merchant != "Golf" {
		e.t.Fatalf("booked: %+v", booked)
	}
	if code, _, notes := e.types("slot book Golf --at 2030-01-01T10:00:00Z" + because); code != 1 || !strings.Contains(notes, "taken") {
		e.t.Errorf("booked twice: exit %d, %s", code, notes)
	}
	e.does("slot free "+booked[0].ID+because, nil)
	booked = nil
	if e.does("slot list", &booked); len(booked) != 0 {
		e.t.Errorf("left: %+v", booked)
	}
}
