package carrierapi_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/carrierapi"
)

var update = flag.Bool("update", false, "write the golden requests again")

// captureRequest receives one request and returns its bytes on the wire.
func captureRequest(t *testing.T, send func(driver *carrierapi.Driver)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	raw := make(chan []byte, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			raw <- nil
			return
		}
		defer func() { _ = conn.Close() }()
		var wire bytes.Buffer
		request, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &wire)))
		if err == nil {
			_, _ = io.Copy(io.Discard, request.Body)
		}
		raw <- wire.Bytes()
		_, _ = io.WriteString(conn, "HTTP/1.1 503 Down\r\nContent-Length: 0\r\n\r\n")
	}()
	driver := newDriver("http://" + listener.Addr().String() + "/operator")
	send(driver)
	text := strings.ReplaceAll(string(<-raw), "\r\n", "\n")
	return strings.ReplaceAll(text, listener.Addr().String(), "operator.example") + "\n"
}

// The upstream requests, byte for byte: method, path with its escapes, headers in the specification's spelling, body.
func TestGoldenRequests(t *testing.T) {
	requests := map[string]func(ctx context.Context, driver *carrierapi.Driver){
		"charge": func(ctx context.Context, driver *carrierapi.Driver) {
			driver.Charge(ctx, operatortest.SampleCharge(sandbox, ""))
		},
		"web": func(ctx context.Context, driver *carrierapi.Driver) {
			driver.Pay(ctx, operatortest.SamplePay(sandbox, "", "web"))
		},
		"tpe": func(ctx context.Context, driver *carrierapi.Driver) {
			driver.Pay(ctx, operatortest.SamplePay(sandbox, "", "tpe"))
		},
		"ussd-without-options": func(ctx context.Context, driver *carrierapi.Driver) {
			call := operatortest.SamplePay(sandbox, "", "ussd")
			call.OTP, call.MSISDN, call.Amount = "", "", "015.50"
			driver.Pay(ctx, call)
		},
		"sms": func(ctx context.Context, driver *carrierapi.Driver) {
			driver.SendSMS(ctx, operatortest.SampleSMS(sandbox, ""))
		},
		"sms-without-receipt": func(ctx context.Context, driver *carrierapi.Driver) {
			call := operatortest.SampleSMS(sandbox, "")
			call.NotifyURL = ""
			driver.SendSMS(ctx, call)
		},
		"user-sms": func(ctx context.Context, driver *carrierapi.Driver) {
			driver.SendUserSMS(ctx, sampleUserSMS(""))
		},
		"get-status": func(ctx context.Context, driver *carrierapi.Driver) {
			driver.LookUpPayment(ctx, operatortest.SampleStatus(sandbox, ""))
		},
	}
	for name, send := range requests {
		t.Run(name, func(t *testing.T) {
			got := captureRequest(t, func(driver *carrierapi.Driver) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				send(ctx, driver)
			})
			path := filepath.Join("testdata", "requests", name+".http")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("request (-want +got):\n%s", cmp.Diff(string(want), got))
			}
		})
	}
}

// sampleUserSMS is a sample of the payer's SMS.
func sampleUserSMS(account string) operator.UserSMSCall {
	return operator.UserSMSCall{
		Call:   operatortest.SampleStatus(sandbox, account).Call,
		MSISDN: operatortest.SampleMSISDN,
		Text:   "Votre paiement de 1500 XOF à Demo+Shop est confirmé. Réf. DemoShop_42",
	}
}

func TestUserSMSOutcomes(t *testing.T) {
	const sent = `{"outboundSMSMessageRequest":{"resourceURL":"https://op/requests/req-1/deliveryInfos"}}`
	cases := []struct {
		name    string
		country string
		step    operatortest.Responder
		outcome operator.Outcome
		sends   int
	}{
		{"sent", "CI", operatortest.Respond(201, sent), operator.Succeeded, 1},
		{"country in lower case", "ci", operatortest.Respond(201, sent), operator.Succeeded, 1},
		{"no sender for the country", "SN", operatortest.Respond(201, sent), operator.NotApplied, 0},
		{"refused", "CI", operatortest.Respond(403, requestError("POL0001")), operator.Refused, 1},
		{"cut", "CI", operatortest.CloseConnection(), operator.Unknown, 1},
		{"duplicate", "CI", operatortest.Respond(409, requestError("SVC0005")), operator.Unknown, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			peer := operatortest.NewStubOperator(t)
			peer.SetResponses(c.step)
			driver := newDriver(peer.URL)
			call := sampleUserSMS("a1")
			call.Country = c.country
			result := driver.SendUserSMS(t.Context(), call)
			if result.Outcome != c.outcome || len(peer.Requests()) != c.sends {
				t.Fatalf("outcome %d, %d requests: %v", result.Outcome, len(peer.Requests()), result.Fault)
			}
			if result.DuplicateKey != (c.name == "duplicate") {
				t.Errorf("duplicate key: %v", result.DuplicateKey)
			}
		})
	}
}

func TestPaymentStatus(t *testing.T) {
	const body = `{"meta":{"type":"payment"},"status":"SUCCESSFUL","amount":1500,"order-id":"DemoShop_42",` +
		`"currency":"XOF","user_msisdn":2250707070707,"Transaction-id":"tx-1",` +
		`"statusDescription":"Low balance"}`
	known := operatortest.WithStatus(operator.StatusReport{
		Status: ledger.Successful, Amount: "1500", Currency: "XOF", MSISDN: "2250707070707",
		OperatorReference: "tx-1", Reason: ledger.NotEnoughFunds,
	})
	respond := func(status int, body string) operatortest.Responder { return operatortest.Respond(status, body) }
	suite().CheckLookups(t, operatortest.SampleStatus(sandbox, ""), operatortest.Lookups{
		known: {
			"known":      respond(200, body),
			"in payload": respond(200, `{"payload":`+body+`}`),
		},
		operatortest.WithStatus(operator.StatusReport{Status: ledger.Pending}): {
			"only a status": respond(200, `{"status":"LOADED","order-id":"DemoShop_42"}`),
		},
		operatortest.UnknownStatus: {"odd word": respond(200, `{"status":"odd word","order-id":"DemoShop_42"}`)},
		operatortest.OrderNotFound: {"not found": respond(404, requestError("SVC0002"))},
		operatortest.Unread: {
			"another order": respond(200, `{"status":"successful","order-id":"DemoShop_1"}`),
			"no order":      respond(200, `{"status":"successful"}`),
			"no status":     respond(200, `{"order-id":"DemoShop_42"}`),
			"twice":         respond(200, `{"status":"FAILED","status":"x","order-id":"DemoShop_42"}`),
			"no such route": respond(404, requestError("900906")),
			"down":          respond(503, requestError("SVC0001")),
			"refused":       respond(401, requestError("900901")),
		},
	})
}

// decision "sms-mco": DR Congo is ODC on the wire, for a charge and an SMS.
func TestCongoIsODC(t *testing.T) {
	route := ledger.Route{Country: "CD", Operator: sandbox, Account: "a1", UpstreamKey: "DemoShop.c-1"}
	e := &ledger.Entry{Route: route}
	for name, send := range map[string]func(driver *carrierapi.Driver){
		"charge": func(driver *carrierapi.Driver) {
			call := operatortest.SampleCharge(sandbox, "")
			call.Call = operator.NewCall(e)
			driver.Charge(t.Context(), call)
		},
		"sms": func(driver *carrierapi.Driver) {
			call := operatortest.SampleSMS(sandbox, "")
			call.Call = operator.NewCall(e)
			driver.SendSMS(t.Context(), call)
		},
	} {
		if request := captureRequest(t, send); !strings.Contains(request, "X-Operator-MCO: ODC\n") {
			t.Errorf("%s: no ODC in %s", name, request)
		}
	}
}
