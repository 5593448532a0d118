package contract_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mobilegateway/internal/contract"
	"mobilegateway/internal/operationtest"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/webhook"
)

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

// fromTheGateway is what API Gateway puts on every answer by itself, and the local run as well.
func fromTheGateway() http.Header {
	return http.Header{"X-Amzn-Requestid": {"r-1"}}
}

// checked holds an answer against the contract.
func checked(t *testing.T, c *contract.Checker, o contract.Operation, a operationtest.Response) {
	t.Helper()
	header := fromTheGateway()
	for name, value := range a.Header {
		header.Set(name, value)
	}
	if err := c.Answer(o.Method, o.Path, a.Status, header, []byte(a.Body)); err != nil {
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

// ids are what differs from one request to the next.
var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|gws_[^"]+`)

// TestExamples sends each example of a request. The answer is the example of the same name, but for ids.
func TestExamples(t *testing.T) {
	contracted := checker(t)
	for _, o := range operations(t) {
		for _, body := range o.Body {
			for name, example := range body.Examples {
				t.Run(o.ID+"/"+name, func(t *testing.T) {
					g := open(t)
					if strings.HasPrefix(o.Path, "/callbacks/") {
						g.stock()
					}
					answer := g.do(g.example(o, example))
					checked(t, contracted, o, answer)
					compare(t, o, name, answer)
				})
			}
		}
	}
}

// compare holds an answer against the example of that name; one that has a single example has it for all requests.
func compare(t *testing.T, o contract.Operation, name string, answer operationtest.Response) {
	t.Helper()
	if answer.Status >= 300 {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	examples := o.Responses[fmt.Sprint(answer.Status)].Body["application/json"].Examples
	example, found := examples[name]
	if !found && len(examples) == 1 {
		example = examples[slices.Collect(maps.Keys(examples))[0]]
	}
	want := encode(t, example.Value)
	if !same(t, ids.ReplaceAllString(answer.Body, "ID"), ids.ReplaceAllString(want, "ID")) {
		t.Errorf("the answer is\n%s\nthe example is\n%s", answer.Body, want)
	}
}

// TestLookupExamples asks for the resources of the examples: a charge that is made and one that is not known yet, a
// payment on both of its paths, and a message.
func TestLookupExamples(t *testing.T) {
	contracted := checker(t)
	all := map[string]contract.Operation{}
	for _, o := range operations(t) {
		all[o.ID] = o
	}
	ask := func(t *testing.T, g *gateway, id, name string, params map[string]string) {
		c := g.example(all[id], contract.Example{})
		maps.Copy(c.param, params)
		answer := g.do(c)
		checked(t, contracted, all[id], answer)
		compare(t, all[id], name, answer)
	}
	made := func(g *gateway, id, name string) operationtest.Response {
		for _, body := range all[id].Body {
			answer := g.do(g.example(all[id], body.Examples[name]))
			return answer
		}
		return operationtest.Response{}
	}
	t.Run("a charge", func(t *testing.T) {
		g := open(t)
		id := made(g, "charge", "charge").Text("amountTransaction.serverReferenceCode")
		ask(t, g, "getCharge", "charge", map[string]string{"transactionId": id})
	})
	t.Run("a charge that is not known", func(t *testing.T) {
		g := open(t)
		g.kit.Driver.SetBehaviours(operationtest.LoseRequest)
		unknown := made(g, "charge", "charge")
		checked(t, contracted, all["charge"], unknown)
		unknown.AssertError(t, 504, "SVC0001", "PDK_SMSW_0011")
		ask(t, g, "getCharge", "processing", map[string]string{"transactionId": g.kit.OnlyEntry(t, ledger.Charge).ID})
	})
	for _, id := range []string{"getPaymentStatus", "getPaymentStatusAlternate"} {
		t.Run(id, func(t *testing.T) {
			g := open(t).stock()
			g.kit.StoreFinalPayment(orderID, ledger.Successful, purchase)
			ask(t, g, id, "successful", nil)
		})
	}
	t.Run("a message", func(t *testing.T) {
		g := open(t).stock()
		report := all["reportDelivery"]
		g.do(g.example(report, report.Body["application/json"].Examples["one"])).AssertStatus(t, 200)
		ask(t, g, "getDeliveryInfos", "delivered", nil)
	})
}

// TestReplays looks at the answers to repeats: each has the headers that the contract has.
func TestReplays(t *testing.T) {
	contracted := checker(t)
	for _, o := range operations(t) {
		if o.Method != http.MethodPost || o.Body == nil {
			continue
		}
		for _, body := range o.Body {
			for name, example := range body.Examples {
				t.Run(o.ID+"/"+name, func(t *testing.T) {
					g := open(t)
					if strings.HasPrefix(o.Path, "/callbacks/") {
						g.stock()
					}
					g.do(g.example(o, example))
					again := g.do(g.example(o, example))
					checked(t, contracted, o, again)
					if replayed := again.Header["Idempotent-Replayed"] == "true"; replayed != slices.Contains([]string{"charge", "pay"}, o.ID) {
						t.Errorf("Idempotent-Replayed is %v", replayed)
					}
				})
			}
		}
	}
}

// TestErrorTable holds the code's table of errors and the document together. Each kind of fault has an example with its
// status, id and text and as many variables, where the document has its headers; and each example is one of the table.
func TestErrorTable(t *testing.T) {
	examples := errorExamples(t)
	met := map[string]bool{}
	for _, kind := range fault.Kinds() {
		if kind == fault.OperatorError {
			continue // the operator's own words; the table's messages below
		}
		answer := oneapi.Render(&fault.Fault{Kind: kind, Part: "part", Value: "value"})
		found := false
		for _, example := range examples {
			if example.status == fmt.Sprint(answer.Status) && shape(t, example.body) == shape(t, string(answer.Body)) {
				met[example.where], found = true, true
				for name := range answer.Header {
					if _, has := example.header[name]; !has && name != "Content-Type" && !strings.HasPrefix(example.where, "issueToken") {
						t.Errorf("%s has no header %s", example.where, name)
					}
				}
			}
		}
		if !found {
			t.Errorf("no example of the fault %q: %d %s", kind, answer.Status, answer.Body)
		}
	}
	for _, message := range oneapi.Messages() {
		found := false
		for _, example := range examples {
			if e := exception(t, example.body); e.id == message.ID {
				found = true
				met[example.where] = met[example.where] || example.status == fmt.Sprint(message.Status)
				if e.text != message.Text || e.member != message.Exception {
					t.Errorf("%s says %q as %s", example.where, e.text, e.member)
				}
			}
		}
		if !found {
			t.Errorf("no example of %s", message.ID)
		}
	}
	for _, example := range examples {
		if !met[example.where] {
			t.Errorf("%s is no row of the table: %s", example.where, example.body)
		}
	}
	for _, row := range oneapi.PDKCodes() {
		// The codes that an operator alone can have end in SVC0001; those that the gateway says itself are told by their number.
		if message := row.MessageID; !strings.Contains(fmt.Sprint(examples), message) {
			t.Errorf("no example of %s, that is %s", row.Code, message)
		}
	}
}

type member struct {
	member    oneapi.Exception
	id, text  string
	variables int
}

func exception(t *testing.T, body string) member {
	t.Helper()
	var wire wireError
	if err := json.Unmarshal([]byte(body), &wire); err != nil || len(wire.RequestError) != 1 {
		t.Fatalf("not an error: %s", body)
	}
	for name, e := range wire.RequestError {
		return member{name, e.MessageID, e.Text, len(e.Variables)}
	}
	return member{}
}

// shape is an error without its values.
func shape(t *testing.T, body string) string { return fmt.Sprint(exception(t, body)) }

// TestWebhooks holds what is really posted against the document: the bodies and the headers' names.
func TestWebhooks(t *testing.T) {
	hooks, err := load(t).Webhooks()
	if err != nil {
		t.Fatal(err)
	}
	g := open(t)
	payment := g.kit.StoreFinalPayment(orderID, ledger.Successful, purchase)
	payment.Channel, payment.NotifToken = "web", "nt-1"
	message := g.kit.StoreMessage(messageID)
	bodies := map[string][]byte{}
	for _, status := range []ledger.Status{ledger.Successful, ledger.Failed, ledger.Cancelled, ledger.Expired} {
		bodies["notifyPayment "+string(status)] = delivery.NotificationBody(payment, ledger.Notification{Status: status})
	}
	for _, status := range []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal,
		ledger.DeliveryUncertain, ledger.DeliveryImpossible, ledger.NotificationNotSupp} {
		bodies["notifyDelivery "+string(status)] = delivery.NotificationBody(message, ledger.Notification{Status: status})
	}
	for _, hook := range hooks {
		schema, err := contract.Compile(hook.Body["application/json"].Schema)
		if err != nil {
			t.Fatal(err)
		}
		for name, body := range bodies {
			if err := schema.ValidateJSON(body); strings.HasPrefix(name, hook.ID) && err != nil {
				t.Errorf("%s: %v\n%s", name, err, body)
			}
		}
		for _, name := range []string{webhook.HeaderID, webhook.HeaderTimestamp, webhook.HeaderSignature} {
			if !slices.ContainsFunc(hook.Parameters, func(p contract.Parameter) bool { return strings.EqualFold(p.Name, name) && p.Required }) {
				t.Errorf("%s has no header %s", hook.ID, name)
			}
		}
		signature := webhook.Sign([]webhook.Secret{{1}, {2}}, "msg_1", g.kit.Clock.Now(), bodies["notifyPayment successful"])
		for _, p := range hook.Parameters {
			if strings.EqualFold(p.Name, webhook.HeaderSignature) {
				valid(t, hook.ID, p.Schema, signature)
			}
		}
	}
}
