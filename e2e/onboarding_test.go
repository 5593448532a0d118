package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/local"
	"mobilegateway/proof/kits/localtest"
)

// rotationOverlap is how long the old token and client secret stay valid in the rotation tests.
const rotationOverlap = 15 * time.Second

// TestOnboardingByTool runs gatewayctl commands on a run and checks their effect on merchants and their servers.
func TestOnboardingByTool(t *testing.T) {
	requireLocalRun(t)
	t.Parallel()
	e := newCtlSession(t, localtest.Options{Speed: speed})
	t.Cleanup(e.verifyAudit) // after all stories, whose commands run at once
	for name, story := range map[string]func(*ctlSession){
		"a deployment that is ready passes init and the smoke test":          (*ctlSession).readyDeployment,
		"one command, and all four operations work":                          (*ctlSession).onboarding,
		"decision access-tokens: old and new token, then the new":            (*ctlSession).tokenRotation,
		"decision token-endpoint: old and new secret":                        (*ctlSession).clientSecretRotation,
		"decision notifications: old and new secret sign":                    (*ctlSession).webhookRotation,
		"decision notification-address: a moved server gets what waits":      (*ctlSession).movedServer,
		"decision key-rings: a new key, and the old one stays":               (*ctlSession).keyRotation,
		"decision unknown-by-hand: a manual resolution decides the response": (*ctlSession).manualResolution,
		"decision sandbox: a slot is booked and freed":                       (*ctlSession).slots,
		"decision notifications: 1,000 deliveries are replayed":              (*ctlSession).replayThousand,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(e.withT(t))
		})
	}
}

// readyDeployment checks that init finds nothing to do on a run that has its keys and credentials, and that each check
// of the smoke test passes.
func (e *ctlSession) readyDeployment() {
	var steps []struct{ Step, State string }
	e.mustRun("init", &steps)
	for _, step := range steps {
		if !strings.HasPrefix(step.Step, "check ") && step.State != "there already" {
			e.t.Errorf("%s is %s", step.Step, step.State)
		}
	}
	var checks []struct {
		Check string
		OK    bool
	}
	stderr := e.mustRun("smoke", &checks)
	if len(steps) < 6 || len(checks) < 18 || !strings.Contains(stderr, "curl -i "+e.target.BaseURL) {
		e.t.Errorf("%d steps, %d checks: %s", len(steps), len(checks), stderr)
	}
}

// verifyAudit checks that the audit records of all commands are one chain with its copies.
func (e *ctlSession) verifyAudit() {
	var verified struct{ Records, Copies int }
	e.mustRun("audit verify", &verified)
	if verified.Records < 4 || verified.Copies != verified.Records {
		e.t.Errorf("%d audit records and %d copies, want as many, at least 4", verified.Records, verified.Copies)
	}
}

// payAndAwaitNotification sends a payment and returns its notification at the merchant's server.
func (e *ctlSession) payAndAwaitNotification(from local.MerchantCredentials, m *faultyServer) observation {
	e.t.Helper()
	order := from.Merchant + "_" + e.target.newID()
	got, err := e.target.sendForStatus(newPayment(from, order, "ussd", successfulMSISDN))
	if err != nil || got != http.StatusCreated {
		e.t.Fatalf("the payment got %d, %v", got, err)
	}
	return eventually(e.t, notificationTimeout, func() (observation, error) {
		for _, v := range m.attemptsAt("/hook") {
			if found, _ := v.notification.textValue("order-id"); found == order {
				return v.notification, nil
			}
		}
		return observation{}, errors.New("no notification arrived")
	})
}

// onboarding checks that the output of one command has everything a merchant needs.
func (e *ctlSession) onboarding() {
	t, m := e.t, newFaultyServer(e.t)
	e.mustRun("merchant add Alpha --country ci --operator sandbox", nil) // without --yes
	made := e.createMerchant("Alpha", m.URL+"/hook")
	if err := verifyWithGoLibrary(made.WebhookSecret, e.payAndAwaitNotification(made.MerchantCredentials,
		m)); err != nil {
		t.Errorf("the notification: %v", err)
	}
	short, status, err := e.target.fetchToken(made.ClientID, made.ClientSecret)
	if err != nil || status != http.StatusOK {
		t.Fatalf("the token endpoint returned %d, %v", status, err)
	}
	for kind, token := range map[string]string{"long-lived": made.AccessToken, "short-lived": short} {
		from := made.withToken(token)
		order := "Alpha_" + e.target.newID()
		lookup := newLookup(from, order)
		for i, step := range []struct {
			a    *requestBuilder
			want int
		}{
			{newCharge(from, e.target.newID(), from.GWAlias), 201}, {newPayment(from, order, "ussd", successfulMSISDN),
				201},
			{newSMS(from, e.target.newID(), from.GWAlias, "tel:+2250000"), 201}, {lookup, 200},
		} {
			if got, err := e.target.sendForStatus(step.a); err != nil || got != step.want {
				t.Errorf("%s token, step %d: %d, %v", kind, i+1, got, err)
			}
		}
	}
	if code, _, stderr := e.runCommand("merchant add ALPHA --country ci --operator sandbox" + confirmFlags); code != 1 {
		t.Errorf("a second merchant got the same name: exit %d, %s", code, stderr)
	}
	var records []struct{ What, Why, Outcome string }
	e.mustRun("audit --subject Alpha", &records)
	if len(records) != 2 || records[0].Outcome != "done" ||
		records[0].Why != "story" {
		t.Errorf("audit records %+v, want two, done, with the reason", records)
	}
}

// tokenRotation checks that the old token is valid during the overlap only.
func (e *ctlSession) tokenRotation() {
	made := e.createMerchant("Bravo", newFaultyServer(e.t).URL+"/hook")
	var second issuedSecret
	e.mustRun("token rotate Bravo --overlap "+rotationOverlap.String()+confirmFlags, &second)
	e.eventually(func() error { return e.chargeOnce(made.withToken(second.Token), 201) })
	if err := e.chargeOnce(made.MerchantCredentials, 201); err != nil && time.Now().Before(second.EndAt) {
		e.t.Errorf("the old token within the overlap: %v", err)
	}
	e.eventually(func() error { return e.chargeOnce(made.MerchantCredentials, 401) })
	if time.Now().Before(second.EndAt) {
		e.t.Error("the old token expired before the end of the overlap")
	}
	if err := e.chargeOnce(made.withToken(second.Token), 201); err != nil {
		e.t.Errorf("the new token after the overlap: %v", err)
	}
}

// clientSecretRotation checks that the old client secret is valid during the overlap only.
func (e *ctlSession) clientSecretRotation() {
	made := e.createMerchant("Charlie", newFaultyServer(e.t).URL+"/hook")
	fetch := func(secret string, want int) error {
		_, got, err := e.target.fetchToken(made.ClientID, secret)
		if err == nil && got != want {
			err = fmt.Errorf("the token endpoint returned %d, want %d", got, want)
		}
		return err
	}
	var second issuedSecret
	e.mustRun("client-secret rotate Charlie --overlap "+rotationOverlap.String()+confirmFlags, &second)
	e.eventually(func() error { return fetch(second.Secret, 200) })
	if err := fetch(made.ClientSecret, 200); err != nil && time.Now().Before(second.EndAt) {
		e.t.Errorf("the old secret within the overlap: %v", err)
	}
	e.eventually(func() error { return fetch(made.ClientSecret, 401) })
	if err := fetch(second.Secret, 200); err != nil {
		e.t.Errorf("the new secret after the overlap: %v", err)
	}
}

// webhookRotation checks which webhook secrets sign during and after a rotation.
func (e *ctlSession) webhookRotation() {
	m := newFaultyServer(e.t)
	made := e.createMerchant("Delta", m.URL+"/hook")
	var second issuedSecret
	e.mustRun("webhook-secret rotate Delta"+confirmFlags, &second)
	signed := func(byOld, byNew bool) error {
		message := e.payAndAwaitNotification(made.MerchantCredentials, m)
		old, fresh := verifyWithGoLibrary(made.WebhookSecret, message), verifyWithGoLibrary(second.Webhook, message)
		if (old == nil) != byOld || (fresh == nil) != byNew {
			return fmt.Errorf("verified by the old secret: %t, by the new one: %t", old == nil, fresh == nil)
		}
		return nil
	}
	e.eventually(func() error { return signed(true, true) })
	e.mustRun("webhook-secret revoke Delta 1"+confirmFlags, nil)
	e.eventually(func() error { return signed(false, true) })
	// A revoked newest secret must not be issued again, because a person who knows it could sign.
	var leaked, fresh issuedSecret
	e.mustRun("webhook-secret rotate Delta"+confirmFlags, &leaked)
	e.mustRun("webhook-secret revoke Delta "+strconv.Itoa(leaked.Version)+confirmFlags, nil)
	if code, _, stderr := e.runCommand("webhook-secret revoke Delta 2" + confirmFlags); code != 1 ||
		!strings.Contains(stderr, "--last") {
		e.t.Errorf("the last secret was revoked: exit %d, %s", code, stderr)
	}
	e.mustRun("webhook-secret rotate Delta"+confirmFlags, &fresh)
	if fresh.Version <= leaked.Version || fresh.Webhook == leaked.Webhook {
		e.t.Errorf("version %d after version %d, which was revoked", fresh.Version, leaked.Version)
	}
	second = fresh
	e.eventually(func() error { return signed(false, true) })
}

// keyRotation checks that a second key in each ring keeps the first key's signatures valid, and that the first key
// cannot be retired too soon.
func (e *ctlSession) keyRotation() {
	m := newFaultyServer(e.t)
	made := e.createMerchant("Echo", m.URL+"/hook")
	before, _, err := e.target.fetchToken(made.ClientID, made.ClientSecret)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, ring := range []string{"tokens", "callbacks", "webhooks"} {
		if stderr := e.mustRun("keys add "+ring+confirmFlags, nil); !strings.Contains(stderr, "Key 2 signs in 5m0s") {
			e.t.Errorf("keys add %s: %s", ring, stderr)
		}
		if code, _, stderr := e.runCommand("keys retire " + ring + " 1" + confirmFlags); code != 1 {
			e.t.Errorf("keys retire %s: exit %d, %s", ring, code, stderr)
		}
	}
	after := eventually(e.t, 40*time.Second, func() (string, error) { // five minutes of this run are five seconds
		token, _, err := e.target.fetchToken(made.ClientID, made.ClientSecret)
		if err == nil && !strings.HasPrefix(token, "gws_AAI") { // the key's number is the first two bytes
			err = errors.New("the second key does not sign yet")
		}
		return token, err
	})
	for _, token := range []string{before, after} {
		if err := e.chargeOnce(made.withToken(token), 201); err != nil {
			e.t.Error(err)
		}
	}
	if err := verifyWithGoLibrary(made.WebhookSecret, e.payAndAwaitNotification(made.MerchantCredentials,
		m)); err != nil {
		e.t.Error(err)
	}
}

// manualResolution resolves two charges whose responses were lost, one applied and one not.
func (e *ctlSession) manualResolution() {
	made := e.createMerchant("Foxtrot", newFaultyServer(e.t).URL+"/hook")
	for _, c := range []struct {
		fault, resolution string
		want              int
		effects           int
	}{{"cut", "applied", 201, 1}, {"lost", "not-applied", 400, 0}} {
		key := e.target.newID()
		script := map[string]any{"key": "Foxtrot." + key, "kind": "charge", "calls": []string{c.fault, c.fault,
			c.fault}}
		if err := e.target.sandboxControl(http.MethodPost, "script", script, nil); err != nil {
			e.t.Fatal(err)
		}
		a := newCharge(made.MerchantCredentials, key, made.GWAlias)
		if got, err := e.target.sendForStatus(a); err != nil || got != http.StatusGatewayTimeout {
			e.t.Fatalf("%s: %d, %v", c.fault, got, err)
		}
		var charge struct{ ID string }
		e.mustRun("charge show --merchant Foxtrot --correlator "+key, &charge)
		_, before, err := e.target.transactionAtOperator("Foxtrot."+key, "charge")
		if err != nil {
			e.t.Fatal(err)
		}
		e.mustRun("unknown resolve charge "+charge.ID+" --as "+c.resolution+confirmFlags, nil)
		for range 2 {
			if got, err := e.target.sendForStatus(a); err != nil || got != c.want {
				e.t.Errorf("%s: its repeat got %d, %v", c.resolution, got, err)
			}
		}
		_, known, err := e.target.transactionAtOperator("Foxtrot."+key, "charge")
		if err != nil || known.Calls != before.Calls {
			e.t.Errorf("%s: the operator got another call: %d calls, then %d (%v)", c.resolution, before.Calls,
				known.Calls, err)
		}
		if found, err := e.target.effectsOf("Foxtrot."+key, "charge"); err != nil || len(found) != c.effects {
			e.t.Errorf("%s: %d effects, %v", c.resolution, len(found), err)
		}
		if code, _, _ := e.runCommand("unknown resolve charge " + charge.ID + " --as applied" +
			confirmFlags); code != 1 {
			e.t.Errorf("%s: resolved twice", c.resolution)
		}
	}
}

// slots checks that a sandbox slot cannot be booked twice and can be freed.
func (e *ctlSession) slots() {
	e.createMerchant("Golf", newFaultyServer(e.t).URL+"/hook")
	var booked []struct{ ID, Merchant string }
	e.mustRun("slot book Golf --start 2030-01-01T09:00:00Z --duration 2h"+confirmFlags, &booked)
	if len(booked) != 1 || booked[0].Merchant != "Golf" {
		e.t.Fatalf("booked %+v, want one slot of Golf", booked)
	}
	if code, _, stderr := e.runCommand("slot book Golf --start 2030-01-01T10:00:00Z" + confirmFlags); code != 1 ||
		!strings.Contains(stderr, "taken") {
		e.t.Errorf("the slot was booked twice: exit %d, %s", code, stderr)
	}
	e.mustRun("slot free "+booked[0].ID+confirmFlags, nil)
	booked = nil
	e.mustRun("slot list", &booked)
	if len(booked) != 0 {
		e.t.Errorf("slots %+v, want none", booked)
	}
}
