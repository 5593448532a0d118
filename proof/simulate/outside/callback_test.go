package outside

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const paymentRequest = `{"currency":"XOF","order_id":"DemoShop_1","amount":1500,"return_url":"https://a.example/",
	"cancel_url":"https://a.example/","notif_url":"` + callbackURL + `","reference":"Demo",
	"user_msisdn":"+2250707070707",
	"state":"<&>"}`

const smsRequest = `{"outboundSMSMessageRequest":{"address":["acr:X-Operator-ISE2"],"senderAddress":"tel:+2250000",
	"outboundSMSTextMessage":{"message":"m"},"senderName":"Demo","clientCorrelator":"DemoShop.s1",
	"receiptRequest":{"notifyURL":"` + callbackURL + `"}}}`

// everyGroup makes the choice 1 in every group.
func everyGroup() script {
	s := script{}
	for group := range groupFaults {
		s[string(group)] = 1
	}
	return s
}

// callbackFaults returns a fault of the payer or of the callbacks that is the choice 1 of its group.
func callbackFaults(fault Fault) *Faults {
	for _, group := range []Group{Payers, Receipts, CallbackTimes, CallbackContents} {
		if slices.Contains(FaultsOf(group), fault) {
			return only(group, fault)
		}
	}
	return &Faults{}
}

// serve sends a payment or an SMS to an operator at the start.
func serve(o *Operator, kind string, c Chooser) Exchange {
	path, body := "/mobilemoney/v1", paymentRequest
	if kind == KindSMS {
		path, body = "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests", smsRequest
	}
	request := httptest.NewRequest(http.MethodPost, "https://operator.example.com"+path, strings.NewReader(body))
	for name, value := range map[string]string{
		"mno-name": "sandbox", "country-code": "CI", "channel": "web", "lang": "fr", "gw-token": "t",
		"X-Operator-ISE2": "a",
	} {
		request.Header.Set(name, value)
	}
	return o.Serve(start, request, []byte(body), c)
}

// sendAll sends the callbacks of a month, all acknowledged, and describes them: "2s successful".
func sendAll(o *Operator) []string {
	var lines []string
	for {
		next, found := o.Next()
		if !found || next.After(start.Add(30*24*time.Hour)) {
			return lines
		}
		for _, callback := range o.Due(next) {
			line := fmt.Sprint(next.Sub(start), " ", callback.Status)
			if callback.Content != NoFault {
				line += ", " + string(callback.Content)
			}
			lines = append(lines, line)
			o.Report(next, callback, http.StatusOK)
		}
	}
}

func TestPaymentCallbacks(t *testing.T) {
	cases := map[Fault][]string{
		NoFault:               {"2s successful"},
		CallbackNever:         nil,
		CallbackLate:          {"10m2s successful"},
		CallbackEarly:         {"0s successful"},
		CallbackTwice:         {"2s successful", "2s successful"},
		CallbackReordered:     {"2s successful", "3s pending"},
		CallbackContradicting: {"2s successful", "12s failed, contradicting callback"},
		CallbackForged:        {"1s failed, forged callback", "2s successful"},
		CallbackWrongAmount:   {"2s successful, callback with a wrong amount"},
		CallbackWrongToken:    {"2s successful, callback with a wrong notif_token"},
		CallbackGarbage:       {"2s successful, callback without JSON"},
		PayerCancels:          {"2s cancelled"},
		PayerInstant:          {"0s successful"},
		PayerNever:            nil,
		LieReversed:           {"2s successful", "12s failed"},
	}
	for fault, want := range cases {
		t.Run(string(fault), func(t *testing.T) {
			o := &Operator{Faults: callbackFaults(fault)}
			response := serve(o, KindPayment, everyGroup())
			isDelayed := response.Delay > 0
			if isDelayed != (fault == CallbackEarly) {
				t.Errorf("the response is delayed by %s", response.Delay)
			}
			if diff := cmp.Diff(want, sendAll(o)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("contradicting, before the final status", func(t *testing.T) {
		o := &Operator{Faults: callbackFaults(CallbackContradicting)}
		choices := everyGroup()
		choices["operator: order of the contradicting callback"] = 1
		serve(o, KindPayment, choices)
		want := []string{"1s failed, contradicting callback", "2s successful"}
		if diff := cmp.Diff(want, sendAll(o)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReceipts(t *testing.T) {
	cases := map[Fault][]string{
		NoFault:            {"0s DeliveredToNetwork", "1s DeliveredToTerminal"},
		ReceiptImpossible:  {"0s DeliveredToNetwork", "1s DeliveryImpossible"},
		ReceiptUncertain:   {"0s DeliveredToNetwork", "1s DeliveryUncertain"},
		ReceiptNetworkOnly: {"0s DeliveredToNetwork"},
		CallbackNever:      nil,
		CallbackEarly:      {"0s DeliveredToNetwork", "0s DeliveredToTerminal"},
		CallbackReordered:  {"0s DeliveredToTerminal", "1s DeliveredToNetwork"},
		CallbackTwice: {
			"0s DeliveredToNetwork", "0s DeliveredToNetwork", "1s DeliveredToTerminal", "1s DeliveredToTerminal",
		},
	}
	for fault, want := range cases {
		t.Run(string(fault), func(t *testing.T) {
			o := &Operator{Faults: callbackFaults(fault)}
			serve(o, KindSMS, everyGroup())
			if diff := cmp.Diff(want, sendAll(o)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The body and the URL of a callback have its fault, and nothing else is different.
func TestCallbackContents(t *testing.T) {
	type contents struct {
		SameURL   bool
		Amount    string
		Token     string
		ValidJSON bool
	}
	const id = "00000070-0000-4000-8000-000000000001"
	cases := map[Fault]contents{
		NoFault:             {true, "1500", "notif-" + id, true},
		CallbackForged:      {false, "1500", "notif-" + id, true},
		CallbackWrongAmount: {true, "91500", "notif-" + id, true},
		CallbackWrongToken:  {true, "1500", "notif-of-another-payment", true},
		CallbackGarbage:     {true, "", "", false},
	}
	for fault, want := range cases {
		t.Run(string(fault), func(t *testing.T) {
			o := &Operator{Faults: callbackFaults(fault)}
			serve(o, KindPayment, everyGroup())
			callback := o.Due(start.Add(time.Minute))[0]
			body := parseDocument(callback.Body)
			got := contents{callback.URL == callbackURL, body.text("amount"), body.text("notif_token"), body != nil}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if len(callback.URL) != len(callbackURL) {
				t.Errorf("the token has another length: %s", callback.URL)
			}
		})
	}
}

// An authentic callback without a 2xx response is retried ten times with growing waits, a forged one never.
func TestCallbackRetries(t *testing.T) {
	for fault, want := range map[Fault]int{NoFault: maxCallbackAttempts, CallbackForged: maxCallbackAttempts + 1} {
		o := &Operator{Faults: callbackFaults(fault)}
		serve(o, KindPayment, everyGroup())
		sent := 0
		for next, found := o.Next(); found; next, found = o.Next() {
			for _, callback := range o.Due(next) {
				sent++
				o.Report(next, callback, http.StatusServiceUnavailable)
			}
		}
		if sent != want {
			t.Errorf("%s: sent %d callbacks, want %d", fault, sent, want)
		}
	}
}

// A trace of the request sees what the transport would report.
func TestExchangeResult(t *testing.T) {
	cases := map[Failure]struct{ sent, reused, started, complete bool }{
		NoFailure:         {sent: true, started: true, complete: true},
		ConnectionRefused: {},
		ConnectionReset:   {sent: true},
		StaleConnection:   {sent: true, reused: true},
		NoResponse:        {sent: true},
		TruncatedBody:     {sent: true, started: true},
	}
	for failure, want := range cases {
		got := want
		got.sent, got.reused, got.started, got.complete = false, false, false, false
		trace := &httptrace.ClientTrace{
			GetConn:              func(string) { got.sent = false },
			GotConn:              func(info httptrace.GotConnInfo) { got.sent, got.reused = true, info.Reused },
			GotFirstResponseByte: func() { got.started = true },
		}
		ctx := httptrace.WithClientTrace(t.Context(), trace)
		request := httptest.NewRequest(http.MethodGet, "https://operator.example.com/", nil).WithContext(ctx)
		e := Exchange{Status: 200, Body: []byte("body"), Failure: failure}
		response, err := e.Result(request)
		if err == nil {
			_, err = io.ReadAll(response.Body)
		}
		got.complete = err == nil
		if got != want {
			t.Errorf("failure %d: %+v, want %+v", failure, got, want)
		}
	}
}

// Equal histories have equal hashes, also in another order of keys; each fault changes the hash.
func TestOperatorHash(t *testing.T) {
	hash := func(faults *Faults, kinds ...string) uint64 {
		o := &Operator{Faults: faults}
		for _, kind := range kinds {
			serve(o, kind, everyGroup())
		}
		return o.Hash()
	}
	want := hash(&Faults{}, KindPayment, KindSMS)
	if got := hash(&Faults{}, KindSMS, KindPayment); got != want {
		t.Errorf("the order of the keys changes the hash: %x, %x", got, want)
	}
	for _, fault := range []Fault{PayerFails, PayerLate, CallbackForged, CallbackTwice} {
		if hash(callbackFaults(fault), KindPayment, KindSMS) == want {
			t.Errorf("%s does not change the hash", fault)
		}
	}
	for _, fault := range []Fault{ResetBefore, FinalRefusal, HangLate} {
		if hash(only(OperatorCalls, fault), KindPayment, KindSMS) == want {
			t.Errorf("%s does not change the hash", fault)
		}
	}
}

// Choice 0 is never a fault; a rate of 1,000 per mille is a fault at every other choice.
func TestRates(t *testing.T) {
	for group := range groupFaults {
		for _, fault := range FaultsOf(group) {
			for _, rate := range []int{0, 1, 250, 1000} {
				f := &Faults{}
				f.Set(group, fault, rate)
				for number := range 1001 {
					got := f.pick(fixedChoice(number), group)
					if number == 0 && got != NoFault || got != NoFault && got != fault {
						t.Errorf("%s with the rate %d: choice %d is %s", fault, rate, number, got)
					}
				}
				if f.Taken[group][fault] != rate {
					t.Errorf("%s with the rate %d: taken %d times", fault, rate, f.Taken[group][fault])
				}
			}
		}
	}
}

// fixedChoice makes the same choice always.
type fixedChoice int

func (c fixedChoice) Choose(_ string, n int) int { return min(int(c), n-1) }

func TestOutage(t *testing.T) {
	o := &Operator{Faults: &Faults{}, Outages: []Outage{
		{Kind: KindSMS, Fault: HangBefore, From: start, To: start.Add(time.Hour)},
	}}
	if e := serve(o, KindSMS, script{}); e.Failure != NoResponse {
		t.Errorf("an SMS in the outage got %d, want no response", e.Status)
	}
	if e := serve(o, KindPayment, script{}); e.Status != http.StatusCreated {
		t.Errorf("a payment in the outage of SMS got %d", e.Status)
	}
}
