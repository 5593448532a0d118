//go:build linux

package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/world/operators/sandbox"
)

// message is a notification in the inbox. Verdict is "verified" if its signature is valid.
type message struct {
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Verdict string            `json:"verdict"`

	id     string // the order's
	status ledger.Status
}

// readInbox returns the inbox's messages by the order's id, in order of arrival.
func readInbox(dir string) (map[string][]message, error) {
	text, err := os.ReadFile(filepath.Join(dir, "data", "inbox.jsonl"))
	if err != nil {
		return nil, err
	}
	found := map[string][]message{}
	for line := range bytes.Lines(text) {
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, err
		}
		if err := m.parseBody(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, m.Body)
		}
		found[m.id] = append(found[m.id], m)
	}
	return found, nil
}

// parseBody reads the order's id and the status, of a payment or a delivery receipt.
func (m *message) parseBody() error {
	var body struct {
		OrderID string        `json:"order-id"`
		Status  ledger.Status `json:"status"`
		Receipt struct {
			Data string `json:"callbackData"`
			Info struct {
				Status ledger.Status `json:"deliveryStatus"`
			} `json:"deliveryInfo"`
		} `json:"deliveryInfoNotification"`
	}
	err := json.Unmarshal([]byte(m.Body), &body)
	m.id, m.status = body.OrderID+body.Receipt.Data, body.Status+body.Receipt.Info.Status
	return err
}

// effectKey is the kind and the key of effects at the operator.
type effectKey struct{ kind, key string }

// operatorTransaction is an order at the operator, or the SMS to the payer of one.
type operatorTransaction struct {
	Kind      string `json:"kind"`
	Key       string `json:"key"`
	Callbacks []struct {
		Status  ledger.Status `json:"status"`
		Outcome string        `json:"outcome"` // waiting, delivered or given up
	} `json:"callbacks"`
}

// acceptedReceipt returns the final delivery status of an SMS that the gateway has accepted from the operator, or "".
func (o operatorTransaction) acceptedReceipt() ledger.Status {
	for _, c := range o.Callbacks {
		if o.Kind == "sms" && c.Outcome == "delivered" && c.Status.Final() {
			return c.Status
		}
	}
	return ""
}

// countCallbacks counts callbacks by their outcome.
func countCallbacks(all []operatorTransaction) map[string]int {
	counts := map[string]int{}
	for _, transaction := range all {
		for _, c := range transaction.Callbacks {
			counts[c.Outcome]++
		}
	}
	return counts
}

// countEffects counts the effects by key.
func countEffects(all []sandbox.Effect) map[effectKey]int {
	counts := map[effectKey]int{}
	for _, e := range all {
		counts[effectKey{e.Kind, e.Key}]++
	}
	return counts
}

// openWork returns what an entry still waits for, or "". The entry is nil if the order was never stored.
func openWork(e *ledger.Entry, now time.Time) string {
	switch {
	case e == nil:
		return ""
	case e.State == ledger.Reserved:
		return "the reservation has neither an outcome nor lapsed"
	case e.State == ledger.Unknown && e.DueAt.IsZero() && !e.StatusFinal():
		return "the outcome is unknown, and the sweep will never list it"
	case paymentOpen(e) && !listed(e, now):
		return "the payment is neither final nor overdue"
	case e.UserSMS.State == ledger.UserSMSDue:
		return "the payer's SMS is due"
	case len(e.Outbox.Waiting) > 0 && e.Outbox.Waiting[0].DeadReason == "":
		return fmt.Sprintf("the notification %s is not delivered: %+v", e.Outbox.Waiting[0].Status, e.Outbox.Waiting[0])
	}
	return ""
}

// paymentOpen is true for a payment that the operator may have accepted and that is not final.
func paymentOpen(e *ledger.Entry) bool {
	return e.Kind == ledger.Payment && !e.StatusFinal() && (e.State == ledger.Done || e.State == ledger.Unknown)
}

// listed is true if an alarm lists the entry for a person: an unknown outcome, or a payment after its lifetime. The
// alarm comes 15 minutes after an unknown outcome, at every speed; until then the sweep's index has the entry.
func listed(e *ledger.Entry, now time.Time) bool {
	if e.Kind == ledger.Payment {
		return paymentOpen(e) && now.After(e.ReservedAt.Add(paymentLifetime+overdueSlack)) && e.Poll.Attempts > 0
	}
	return e.State == ledger.Unknown && !e.DueAt.IsZero()
}

// findProblems returns everything that is wrong with an order after the faults have stopped and nothing waits.
func findProblems(o *order, e *ledger.Entry, effects map[effectKey]int, messages []message, now time.Time) []string {
	var problems []string
	report := func(wrong bool, format string, arguments ...any) {
		if wrong {
			problems = append(problems, fmt.Sprintf(format, arguments...))
		}
	}
	waits := openWork(e, now)
	report(waits != "", "it still waits: %s", waits)
	kind := map[ledger.Kind]string{ledger.Charge: "charge", ledger.Payment: "payment", ledger.SMS: "sms"}[o.kind]
	count := effects[effectKey{kind, o.operatorKey()}]
	report(count > 1, "%d effects at the operator", count)
	report(!o.understandable(), "a response that a merchant can neither use nor retry")
	created := o.response.status == http.StatusCreated
	if e == nil {
		report(count > 0 || created, "no entry, but %d effects", count)
		report(!o.decided && !o.impatient, "no entry and no response")
		return problems
	}
	report(!o.decided && !o.impatient && !listed(e, now), "the merchant has no response, the state is %s", e.State)
	if o.kind == ledger.Payment {
		sms := effects[effectKey{"sms", o.id}]
		report(sms > 1, "%d SMS to the payer", sms)
		report(e.UserSMS.State == ledger.UserSMSSent && sms != 1, "the payer's SMS is sent, but the operator has %d",
			sms)
		report(o.payerDone && !e.StatusFinal(), "the payer did %s, but the status is %s", o.payer, e.Status)
		expired := e.Status == ledger.Expired && o.digits != "1003" // 1003 always expires
		report(o.payerDone && expired, "the payer did %s, but the payment expired", o.payer)
		report((e.Status == ledger.Successful) != (count == 1), "the status is %s with %d effects", e.Status, count)
	} else {
		expected := 1
		if o.kind == ledger.SMS && o.digits == "1001" { // accepted, and never sent
			expected = 0
		}
		report(e.State == ledger.Done && count != expected, "%d effects, want %d", count, expected)
		report(e.NotApplied() && count != 0, "the state is %s, but there are %d effects", e.State, count)
		report(created && e.State != ledger.Done, "the response was 201, but the state is %s", e.State)
	}
	return append(problems, findNotificationProblems(e, messages)...)
}

// understandable reports whether a merchant can use the last response, or must retry.
func (o *order) understandable() bool {
	if !o.decided {
		return true
	}
	switch o.response.status {
	case http.StatusCreated:
		return true
	case http.StatusConflict:
		return o.kind != ledger.Charge && o.requests > 1 // the first response was lost, and the order was applied
	case http.StatusForbidden:
		overDay := strings.Contains(o.response.body, "Daily amount limit exceeded") && o.kind != ledger.SMS
		return overDay || o.kind != ledger.Payment && (o.digits == "1001" || o.digits == "1002")
	}
	return false
}

// findNotificationProblems compares an entry with the notifications that arrived.
func findNotificationProblems(e *ledger.Entry, messages []message) []string {
	var problems []string
	arrived, latest := map[ledger.Status]bool{}, 0
	for _, m := range messages {
		arrived[m.status] = true
		if m.Verdict != "verified" {
			problems = append(problems, "a notification's signature: "+m.Verdict)
		}
		if id := ledger.NotificationID(e.Key, m.status); m.Headers["webhook-id"] != id {
			problems = append(problems, fmt.Sprintf("webhook-id %s, want %s", m.Headers["webhook-id"], id))
		}
		if e.Kind == ledger.Payment && m.status != e.Status {
			problems = append(problems, fmt.Sprintf("notified as %s, but the status is %s", m.status, e.Status))
		}
		if progress(m.status) < latest {
			problems = append(problems, fmt.Sprintf("%s arrived after a later status", m.status))
		}
		latest = max(latest, progress(m.status))
	}
	for _, n := range e.Outbox.Delivered {
		if !arrived[n.Status] {
			problems = append(problems, fmt.Sprintf("%s is stored as delivered and did not arrive", n.Status))
		}
	}
	applied := e.State == ledger.Done || e.State == ledger.Unknown
	if dead := len(e.Outbox.Waiting) > 0; applied && e.StatusFinal() && e.Outbox.URL != "" && !arrived[e.Status] &&
		!dead {
		problems = append(problems, fmt.Sprintf("the final status %s was never delivered", e.Status))
	}
	return problems
}

// progress orders the statuses of an SMS. A payment has one notification only.
func progress(s ledger.Status) int {
	order := []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork}
	if at := slices.Index(order, s); at >= 0 {
		return at
	}
	return len(order)
}

// sumXOF adds up what a merchant's charges and payments moved in XOF, which has no minor unit. Their keys begin with
// the merchant's name.
func sumXOF(all []sandbox.Effect, merchant string) (sum int) {
	for _, e := range all {
		amount, err := strconv.Atoi(e.Amount)
		if err == nil && e.Currency == "XOF" && strings.HasPrefix(e.Key, merchant) {
			sum += amount
		}
	}
	return sum
}
