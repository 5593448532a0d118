package contract_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/contract"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/webhook"
)

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

// gatewayHeader returns the headers that API Gateway and the local run add to every response.
func gatewayHeader() http.Header {
	return http.Header{"X-Amzn-Requestid": {"r-1"}}
}

// checkResponse checks a response against the contract.
func checkResponse(t *testing.T, c *contract.Checker, o contract.Operation, a operationtest.Response) {
	t.Helper()
	header := gatewayHeader()
	for name, value := range a.Header {
		header.Set(name, value)
	}
	if err := c.CheckResponse(o.Method, o.Path, a.Status, header, []byte(a.Body)); err != nil {
		t.Errorf("%v\n%s", err, a.Body)
	}
}

func checker(t *testing.T) *contract.Checker {
	t.Helper()
	c, err := contract.NewChecker(load(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ids matches the values that differ between two runs of one request.
var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|gws_[^"]+`)

// eachExample runs a test for each example of a request, with a new gateway.
func eachExample(t *testing.T, run func(*testing.T, *gateway, contract.Operation, string, contract.Example)) {
	for _, o := range operations(t) {
		for _, body := range o.Body {
			for name, example := range body.Examples {
				t.Run(o.ID+"/"+name, func(t *testing.T) { run(t, newGatewayFor(t, o), o, name, example) })
			}
		}
	}
}

// TestExamples sends each example of a request. The response must equal the example of the same name, except for ids.
func TestExamples(t *testing.T) {
	contractChecker := checker(t)
	eachExample(t, func(t *testing.T, g *gateway, o contract.Operation, name string, example contract.Example) {
		response := g.send(g.call(o, example))
		checkResponse(t, contractChecker, o, response)
		compareWithExample(t, o, name, response)
	})
}

// compareWithExample compares a response with the example of a name. If the status has only one example, it compares
// with that one.
func compareWithExample(t *testing.T, o contract.Operation, name string, response operationtest.Response) {
	t.Helper()
	if response.Status >= 300 {
		t.Fatalf("%d %s", response.Status, response.Body)
	}
	examples := o.Responses[fmt.Sprint(response.Status)].Body["application/json"].Examples
	example, found := examples[name]
	if !found && len(examples) == 1 {
		example = examples[slices.Collect(maps.Keys(examples))[0]]
	}
	want := decode(t, ids.ReplaceAllString(encode(t, example.Value), "ID"))
	if diff := cmp.Diff(want, decode(t, ids.ReplaceAllString(response.Body, "ID"))); diff != "" {
		t.Errorf("the response differs from the example (-example +response):\n%s", diff)
	}
}

// TestLookupExamples looks up the resources of the examples: a charge, a charge with an unknown outcome, a payment on
// both of its paths, and a message.
func TestLookupExamples(t *testing.T) {
	contractChecker := checker(t)
	all := operationsByID(t)
	lookUp := func(t *testing.T, g *gateway, id, name string, params map[string]string) {
		c := g.call(all[id], contract.Example{})
		maps.Copy(c.param, params)
		response := g.send(c)
		checkResponse(t, contractChecker, all[id], response)
		compareWithExample(t, all[id], name, response)
	}
	charge := func(g *gateway) operationtest.Response {
		return g.send(g.call(all["charge"], all["charge"].Body["application/json"].Examples["charge"]))
	}
	t.Run("a charge", func(t *testing.T) {
		g := newGateway(t)
		id := charge(g).Text("amountTransaction.serverReferenceCode")
		lookUp(t, g, "getCharge", "charge", map[string]string{"transactionId": id})
	})
	t.Run("a charge that is not known", func(t *testing.T) {
		g := newGateway(t)
		g.kit.Driver.SetBehaviours(operationtest.LoseRequest)
		unknown := charge(g)
		checkResponse(t, contractChecker, all["charge"], unknown)
		unknown.AssertError(t, 504, "SVC0001", "PDK_SMSW_0011")
		id := g.kit.OnlyEntry(t, ledger.Charge).ID
		lookUp(t, g, "getCharge", "processing", map[string]string{"transactionId": id})
	})
	for _, id := range []string{"getPaymentStatus", "getPaymentStatusAlternate"} {
		t.Run(id, func(t *testing.T) {
			g := newGateway(t).seed()
			g.kit.StoreFinalPayment(orderID, ledger.Successful, examplePayment)
			lookUp(t, g, id, "successful", nil)
		})
	}
	t.Run("a message", func(t *testing.T) {
		g := newGateway(t).seed()
		report := all["reportDelivery"]
		g.send(g.call(report, report.Body["application/json"].Examples["one"])).AssertStatus(t, 200)
		lookUp(t, g, "getDeliveryInfos", "delivered", nil)
	})
	t.Run("a message that is not known", func(t *testing.T) {
		g := newGateway(t)
		g.kit.Driver.SetBehaviours(operationtest.LoseRequest)
		g.send(g.call(all["sendSms"], all["sendSms"].Body["application/json"].Examples["sms"])).AssertStatus(t, 504)
		id := g.kit.OnlyEntry(t, ledger.SMS).ID
		lookUp(t, g, "getDeliveryInfos", "unknown", map[string]string{"requestId": id})
	})
}

// TestReplays sends each example twice. The second response must have the headers of the contract.
func TestReplays(t *testing.T) {
	contractChecker := checker(t)
	eachExample(t, func(t *testing.T, g *gateway, o contract.Operation, _ string, example contract.Example) {
		g.send(g.call(o, example))
		again := g.send(g.call(o, example))
		checkResponse(t, contractChecker, o, again)
		replayed := again.Header["Idempotent-Replayed"] == "true"
		if replayed != (o.ID == "charge" || o.ID == "pay") {
			t.Errorf("Idempotent-Replayed is %v", replayed)
		}
	})
}

// TestErrorTable compares the code's table of errors with the examples of the document.
// Each kind of fault must have an example with its status, id, text, number of variables and headers.
// Each example must be a row of the table.
func TestErrorTable(t *testing.T) {
	examples := errorExamples(t)
	met := map[string]bool{}
	for _, kind := range fault.Kinds() {
		if kind == fault.OperatorError {
			continue // the operator chooses the text; the loop over the messages covers it
		}
		response := oneapi.Render(&fault.Fault{Kind: kind, Part: "part", Value: "value"})
		rendered, _ := operationtest.Response{Body: string(response.Body)}.Exception()
		found := false
		for _, example := range examples {
			sameStatus := example.status == fmt.Sprint(response.Status)
			if sameStatus && shape(example.exception) == shape(rendered) {
				met[example.where], found = true, true
				for name := range response.Header {
					_, has := example.header[name]
					if !has && name != "Content-Type" && !strings.HasPrefix(example.where, "issueToken") {
						t.Errorf("%s has no header %s", example.where, name)
					}
				}
			}
		}
		if !found {
			t.Errorf("no example of the fault %q: %d %s", kind, response.Status, response.Body)
		}
	}
	for _, message := range oneapi.Messages() {
		found := false
		for _, example := range examples {
			if e := example.exception; e.MessageID == message.ID {
				found = true
				met[example.where] = met[example.where] || example.status == fmt.Sprint(message.Status)
				if e.Text != message.Text || e.Family != string(message.Exception) {
					t.Errorf("%s has the text %q as %s", example.where, e.Text, e.Family)
				}
			}
		}
		if !found {
			t.Errorf("no example of %s", message.ID)
		}
	}
	for _, example := range examples {
		if !met[example.where] {
			t.Errorf("the table has no row of %s: %s", example.where, example.body)
		}
	}
	for _, row := range oneapi.PDKCodes() {
		// An operator's own codes become SVC0001. The gateway reports its own codes by number.
		if message := row.MessageID; !strings.Contains(fmt.Sprint(examples), message) {
			t.Errorf("no example of %s, which is %s", row.Code, message)
		}
	}
}

// shape describes an error without its values.
func shape(e operationtest.Exception) string {
	return fmt.Sprint(e.Family, e.MessageID, e.Text, len(e.Variables))
}

// TestWebhooks checks the real notifications against the document: the bodies, the headers and the signature.
func TestWebhooks(t *testing.T) {
	g := newGateway(t)
	payment := g.kit.StoreFinalPayment(orderID, ledger.Successful, examplePayment)
	payment.Request.Channel, payment.Outbox.NotifToken = "web", "nt-1"
	message := g.kit.StoreMessage(messageID)
	body := func(e *ledger.Entry, status ledger.Status) []byte {
		return delivery.NotificationBody(e, ledger.Notification{Status: status}, "https://api.example.com")
	}
	bodies := map[string][]byte{}
	for _, status := range []ledger.Status{ledger.Successful, ledger.Failed, ledger.Cancelled, ledger.Expired} {
		bodies["notifyPayment "+string(status)] = body(payment, status)
	}
	for _, status := range []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal,
		ledger.DeliveryUncertain, ledger.DeliveryImpossible, ledger.NotificationNotSupp} {
		bodies["notifyDelivery "+string(status)] = body(message, status)
	}
	charge := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Charge, ID: chargeID}, Call: ledger.Call{State: ledger.Done},
		Amount:  ledger.Amount{AsSent: "500", Currency: "XOF"},
		Request: ledger.Request{ReferenceCode: "REF-1001"},
	}
	bodies["notifyCharge applied"] = body(charge, ledger.Successful)
	refusal := oneapi.Render(&fault.Fault{
		Kind: fault.OperatorError, OperatorException: &fault.OperatorException{MessageID: "SVC0270"},
	})
	charge.State, charge.Response.Status, charge.Response.Body = ledger.Refused, refusal.Status, refusal.Body
	bodies["notifyCharge not applied"] = body(charge, ledger.Failed)
	for _, hook := range webhooks(t) {
		schema := compiled(t, hook.Body["application/json"].Schema)
		for name, body := range bodies {
			if err := schema.ValidateJSON(body); strings.HasPrefix(name, hook.ID) && err != nil {
				t.Errorf("%s: %v\n%s", name, err, body)
			}
		}
		for _, name := range []string{webhook.HeaderID, webhook.HeaderTimestamp, webhook.HeaderSignature} {
			required := func(p contract.Parameter) bool { return strings.EqualFold(p.Name, name) && p.Required }
			if !slices.ContainsFunc(hook.Parameters, required) {
				t.Errorf("%s has no header %s", hook.ID, name)
			}
		}
		body := bodies["notifyPayment successful"]
		signature := webhook.Sign([]webhook.Secret{{1}, {2}}, "msg_1", g.kit.Clock.Now(), body)
		for _, p := range hook.Parameters {
			if strings.EqualFold(p.Name, webhook.HeaderSignature) {
				checkExample(t, hook.ID, p.Schema, signature)
			}
		}
	}
}
