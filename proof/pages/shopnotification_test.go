package pages

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mobilegateway/proof/kits/localtest"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/webhook"
)

// checkChargeNotification orders a charge that stays without an outcome, and notifies the shop of its refusal (decision
// "charge-notif"). The shop must find the order by the key beside the error.
func (s *shop) checkChargeNotification() {
	s.t.Helper()
	number := s.prefix + "08888"
	s.payers[number] = "+22507000" + s.prefix + "1009"
	if _, _, err := s.call(http.MethodPut, "/orders/"+number, map[string]string{"kind": shopKinds[0], "amount": "500",
		"payer": s.payers[number]}); err != nil {
		s.t.Fatal(err)
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.gateway.Info().WebhookSecret, "whsec_"))
	if err != nil {
		s.t.Fatal(err)
	}
	refusal := oneapi.Render(&fault.Fault{Kind: fault.OperatorError,
		OperatorException: &fault.OperatorException{MessageID: "POL1000"}})
	body := delivery.NotificationBody(&ledger.Entry{
		Key: ledger.Key{Kind: ledger.Charge, ID: "c-1"}, Call: ledger.Call{State: ledger.Refused},
		Request:  ledger.Request{Correlator: "charge-" + number, ReferenceCode: "REF-" + number},
		Response: ledger.Response{Status: refusal.Status, Body: refusal.Body},
	}, ledger.Notification{Status: ledger.Failed}, s.gateway.Info().BaseURL)
	now := time.Now()
	status, text, _ := localtest.Send(s.t, http.MethodPost, s.address+"/webhook", string(body), http.Header{
		"Content-Type": {"application/json"}, webhook.HeaderID: {"c-1"},
		webhook.HeaderTimestamp: {strconv.FormatInt(now.Unix(), 10)},
		webhook.HeaderSignature: {webhook.Sign([]webhook.Secret{secret}, "c-1", now, body)},
	})
	order, err := s.view(number)
	if err != nil || status != http.StatusOK || order.Label != "no credit" || order.Notifications != 1 {
		s.t.Errorf("%s: the notification %s responded %d, %v; the order is %+v, %v", s.language, body, status, text,
			order, err)
	}
	s.orders[number] = order
}
