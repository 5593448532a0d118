package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mobilegateway/proof/kits/localtest"
	"mobilegateway/shared/ledger"
)

// An outcome that becomes known after a 504 reaches the merchant without its retry, once (decision "charge-notif").
func TestUnknownOutcomes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a gateway")
	}
	e := newCtlSession(t, localtest.Options{})
	server := newFaultyServer(t)
	made := e.createMerchant("Kilo", server.URL+"/charges")
	e.mustRun("merchant change Kilo --charge-notif on"+confirmFlags, nil)

	for outcome, want := range map[string]int{"applied": http.StatusOK, "not-applied": http.StatusBadRequest} {
		key := e.target.newID()
		location := e.sendUnknown(newCharge(made.MerchantCredentials, key, e.target.GWAlias), made.Merchant, key)
		id := ledger.ChargeID(made.id, key, "")
		e.lookUp(made, location, http.StatusOK)
		e.mustRun("unknown resolve charge "+id+" --as "+outcome+confirmFlags, nil)
		e.awaitDeliveryState(id, "delivered", 1)
		found := e.lookUp(made, location, want)
		byKey := e.lookUp(made, chargePath+"?clientCorrelator="+key, want)
		attempts := server.attemptsAt("/charges")
		got := attempts[len(attempts)-1].notification
		wantBody := string(found.body)
		if outcome == "not-applied" { // a refusal names no charge, so its notification adds the keys
			wantBody = fmt.Sprintf(`%s,"amountTransaction":{"clientCorrelator":%q,"referenceCode":"REF-%s"}}`,
				strings.TrimSuffix(wantBody, "}"), key, key)
		}
		if string(got.body) != wantBody || string(byKey.body) != string(found.body) {
			t.Errorf("%s: notified %s, want %s; looked up %s by key", outcome, got.body, wantBody, byKey.body)
		}
		if webhookID := got.header.Get("Webhook-Id"); webhookID != id {
			t.Errorf("%s: webhook-id %s, want the charge's id %s", outcome, webhookID, id)
		}
		if err := verifyWithGoLibrary(made.WebhookSecret, got); err != nil {
			t.Error(err)
		}
	}
	e.checkUnknownSMS(made, server)
	// The response of a retry reports the outcome: no notification follows.
	key := e.target.newID()
	charge := newCharge(made.MerchantCredentials, key, e.target.GWAlias)
	e.sendUnknown(charge, made.Merchant, key)
	if status, err := e.target.sendForStatus(charge); status != http.StatusCreated {
		t.Errorf("the retry got %d, %v", status, err)
	}
	if attempts := server.attemptsAt("/charges"); len(attempts) != 2 {
		t.Errorf("%d notifications, want one for each charge that was resolved", len(attempts))
	}
}

// sendUnknown sends a request whose outcome stays unknown once, and returns the Location of its 504.
func (e *ctlSession) sendUnknown(a *requestBuilder, merchant, key string) (location string) {
	e.t.Helper()
	script := map[string]any{"key": merchant + "." + key, "calls": []string{"500", "ok"}}
	if err := e.target.sandboxControl(http.MethodPost, "script", script, nil); err != nil {
		e.t.Fatal(err)
	}
	response, err := e.target.send(a)
	location = response.header.Get("Location")
	if err != nil || response.status != http.StatusGatewayTimeout || location == "" {
		e.t.Fatal(response.errorf("the Location is %q, want one with 504: %v", location, err))
	}
	return location
}

// lookUp gets an address as a merchant, which must have a status.
func (e *ctlSession) lookUp(made createdMerchant, address string, want int) observation {
	e.t.Helper()
	response, err := e.target.send(newRequestBuilder(made.MerchantCredentials, http.MethodGet, address))
	if err == nil && response.status != want {
		err = fmt.Errorf("status %d, want %d", response.status, want)
	}
	if err != nil {
		e.t.Error(response.errorf("%v", err))
	}
	return response
}

// checkUnknownSMS resolves two messages whose outcome is unknown: their receipt address gets the status that the lookup
// at the Location of the 504 returns (decision "sms-unknown").
func (e *ctlSession) checkUnknownSMS(made createdMerchant, server *faultyServer) {
	e.t.Helper()
	for outcome, want := range map[string]ledger.Status{
		"applied": ledger.MessageWaiting, "not-applied": ledger.DeliveryImpossible,
	} {
		key := e.target.newID()
		message := newSMS(made.MerchantCredentials, key, e.target.GWAlias, "tel:+2250707")
		setPath(message.body, "outboundSMSMessageRequest.receiptRequest.notifyURL", server.URL+"/"+outcome)
		location := e.sendUnknown(message, made.Merchant, key)
		id := ledger.SMSID(made.id, key)
		e.mustRun("unknown resolve sms "+id+" --as "+outcome+confirmFlags, nil)
		e.awaitDeliveryState(id, "delivered", 1)
		notified, err := server.attemptsAt("/" + outcome)[0].notification.textValue(
			"deliveryInfoNotification.deliveryInfo.deliveryStatus")
		found, _ := e.lookUp(made, location, http.StatusOK).textValue(
			"deliveryInfoList.deliveryInfo.0.deliveryStatus")
		if err != nil || notified != string(want) || found != string(want) {
			e.t.Errorf("%s: notified %s, looked up %s, want %s: %v", outcome, notified, found, want, err)
		}
	}
}
