package local

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"mobilegateway/world/apigateway"
)

// console writes lines for the person at the terminal. It never shows a token, a number or a body.
type console struct {
	mu  sync.Mutex
	out io.Writer
}

func (c *console) printf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintf(c.out, time.Now().Format("15:04:05.000")+" "+format+"\n", args...)
}

func (c *console) logRequest(l apigateway.AccessLogEntry) {
	if l.Resource == "" {
		c.printf("unknown route %d", l.Status)
		return
	}
	c.printf("%s %s %d %s", l.Method, l.Resource, l.Status, l.Duration.Round(100*time.Microsecond))
}

// functionLog writes a function's output to a file. It also shows each line on the console that is not JSON: a failed
// start, or the trace of a crash.
type functionLog struct {
	name    string
	file    io.Writer
	console *console
}

// Write implements io.Writer for one line.
func (l *functionLog) Write(line []byte) (int, error) {
	if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '{' {
		l.console.printf("%s: %s", l.name, text)
	}
	return l.file.Write(line)
}

// WriteBanner prints the addresses, the demo merchant's token and three curl lines that work as printed. Their
// idempotency keys contain the current time: a charge or payment sent again by the same line is a repeat, and an SMS is
// a duplicate.
func (r *Gateway) WriteBanner(out io.Writer) {
	i := r.info
	key := time.Now().UnixMilli()
	common := headerOptions("Authorization: Bearer "+i.AccessToken, "Content-Type: application/json")
	user := headerOptions("gw-token: "+i.GWToken, "gw-alias: "+i.GWAlias)
	pay := headerOptions("mno-name: sandbox", "country-code: CI", "channel: web", "lang: fr")
	sms := headerOptions("X-Operator-MCO: OCI", "X-Operator-ISE2: "+i.GWAlias,
		"X-OAPI-Application-Id: "+i.ApplicationID, "X-OAPI-Contact-Id: "+i.ContactID, "X-OAPI-Resource-Type: SMS_OSM")
	stubs := ""
	if i.StubsURL != "" {
		stubs = "Stubs of operators      " + i.StubsURL + "\n"
	}
	_, _ = fmt.Fprintf(out, `
The gateway listens at  %[1]s
Access token            %[2]s (merchant %[3]s)
Sandbox operator        %[4]s
Merchant's inbox        %[5]s
%[14]sMore for programs       %[6]s/run.json; in a shell: . %[6]s/env
Ctrl-C stops everything

Charge:
curl -i -X POST '%[1]s/payment/v1/acr%%3AOperatorAPIToken/transactions/amount' %[7]s %[8]s -d '%[9]s'

Payment (then open payment_url; the page needs what this gives: curl -X POST %[4]s/sandbox/v1/tests):
curl -i -X POST '%[1]s/mobilemoney/v1' %[7]s %[10]s -d '%[11]s'

SMS:
curl -i -X POST '%[1]s/smsmessaging/v1/outbound/tel%%3A%%2B2250000/requests' %[7]s %[8]s %[12]s -d '%[13]s'

`, i.BaseURL, i.AccessToken, i.Merchant, i.SandboxURL, i.InboxURL, r.config.Dir, common, user,
		chargeExample(i, key), pay, payExample(i, key), sms, smsExample(key), stubs)
	if r.pages != nil {
		address := listenerURL(r.listeners.pages) + r.pages.Opening()
		_, _ = fmt.Fprintf(out, "Console (opens one session)  %s\n\n", address)
	}
}

func headerOptions(headers ...string) string {
	return "-H '" + strings.Join(headers, "' -H '") + "'"
}

func chargeExample(i Info, key int64) string {
	return fmt.Sprintf(`{"amountTransaction":{"endUserId":"acr:OperatorAPIToken","paymentAmount":{`+
		`"chargingInformation":{"amount":"500","currency":"XOF","description":"Demo"},`+
		`"chargingMetaData":{"onBehalfOf":"%s","serviceId":"%s"}},`+
		`"transactionOperationStatus":"Charged","referenceCode":"REF-%d","clientCorrelator":"demo-%d"}}`,
		i.OnBehalfOf, i.ServiceID, key, key)
}

func payExample(i Info, key int64) string {
	return fmt.Sprintf(`{"currency":"XOF","order_id":"%s_%d","amount":"1000","return_url":"%s/","cancel_url":"%s/",`+
		`"notif_url":"%s/notifications","reference":"%s","state":"demo"}`,
		i.Merchant, key, i.InboxURL, i.InboxURL, i.InboxURL, i.Merchant)
}

func smsExample(key int64) string {
	return fmt.Sprintf(`{"outboundSMSMessageRequest":{"address":["acr:X-Operator-ISE2"],`+
		`"senderAddress":"tel:+2250000",`+
		`"outboundSMSTextMessage":{"message":"Hello"},"senderName":"Demo","clientCorrelator":"demo-%d"}}`, key)
}
