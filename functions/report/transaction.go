package report

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/msisdn"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/spreadsheet"
)

// transaction is a row of a list. An absent text is left out.
type transaction struct {
	Operation string `json:"operation"` // charge, pay or sms
	// ID is the transactionId of a charge, the order_id of a payment, the requestId of an SMS.
	ID               string `json:"id"`
	ClientCorrelator string `json:"client_correlator,omitempty"`
	ReferenceCode    string `json:"reference_code,omitempty"` // of a charge
	TransactionID    string `json:"transaction_id,omitempty"` // of a payment: Transaction-id
	// Amount is as the merchant sent it, MinorUnits the same amount as an integer. An SMS has neither.
	Amount     string `json:"amount,omitempty"`
	MinorUnits int64  `json:"minor_units,omitempty"`
	Currency   string `json:"currency,omitempty"`
	Status     string `json:"status"`
	// Reason is why a payment was not paid, or the messageId of a refusal.
	Reason            string                  `json:"reason,omitempty"`
	Operator          string                  `json:"operator"`
	Country           string                  `json:"country"`
	Channel           string                  `json:"channel,omitempty"`
	CreatedAt         time.Time               `json:"created_at"`
	FinalAt           time.Time               `json:"final_at,omitzero"`
	Payer             string                  `json:"payer,omitempty"` // masked
	OperatorReference string                  `json:"operator_reference,omitempty"`
	Notifications     []resource.Notification `json:"notifications"`
}

func newTransaction(e *ledger.Entry) transaction {
	row := transaction{
		Operation: string(e.Kind), ID: e.ID, ClientCorrelator: e.Request.Correlator,
		ReferenceCode: e.Request.ReferenceCode, TransactionID: e.Request.TransactionID,
		Amount: e.Amount.AsSent, MinorUnits: e.Amount.Minor, Currency: e.Amount.Currency,
		Status: statusOf(e), Reason: reasonOf(e),
		Operator: e.Route.Operator, Country: e.Route.Country, Channel: e.Request.Channel,
		CreatedAt: e.CreatedAt, FinalAt: e.FinalAt, OperatorReference: e.Reference(),
		Notifications: resource.Notifications(e),
	}
	if payer := e.PayerMSISDN(); payer != "" {
		row.Payer = msisdn.Mask(payer)
	}
	return row
}

// statusRefused is the status of a charge whose stored response is a refusal.
const statusRefused = "Refused"

// statusOf is a transaction's status in the words of its lookup. An SMS whose lookup has no status yet is Processing,
// as a charge is.
func statusOf(e *ledger.Entry) string {
	switch {
	case e.Kind == ledger.Payment:
		return string(e.Status)
	case e.Kind == ledger.SMS:
		if status := resource.DeliveryStatus(e); status != "" {
			return string(status)
		}
		return resource.StatusProcessing
	case e.State == ledger.Done:
		return resource.StatusCharged
	case e.State == ledger.Refused:
		return statusRefused
	default:
		return resource.StatusProcessing
	}
}

// statuses are the values of the filter status.
func statuses() []string {
	all := []string{resource.StatusCharged, statusRefused, resource.StatusProcessing}
	for _, status := range ledger.Statuses() {
		all = append(all, string(status))
	}
	return all
}

// reasonOf is the failureReason of a payment, and the messageId of another transaction's stored refusal.
func reasonOf(e *ledger.Entry) string {
	if e.Kind == ledger.Payment {
		return string(e.WhyNotPaid(e.Status))
	}
	if e.State != ledger.Refused {
		return ""
	}
	exception, isRequestError := oneapi.DecodeRequestError(e.Response.Body)
	if !isRequestError {
		return ""
	}
	return exception.MessageID
}

// csvColumns are the columns of a list as CSV. A transaction is one row, with its last notification.
var csvColumns = []string{
	"operation", "id", "client_correlator", "reference_code", "transaction_id", "amount", "minor_units", "currency",
	"status", "reason", "operator", "country", "channel", "created_at", "final_at", "payer", "operator_reference",
	"webhook_id", "notification_status", "notification_state", "notification_attempts", "notification_delivered_at",
}

// csvOf writes a page as CSV (RFC 4180, with the header line). It has no text that a spreadsheet would run.
func csvOf(rows []transaction) []byte {
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	w.UseCRLF = true
	_ = w.Write(csvColumns) // a Buffer never fails
	for _, r := range rows {
		cells := []string{
			r.Operation, r.ID, r.ClientCorrelator, r.ReferenceCode, r.TransactionID,
			r.Amount, formatCount(r.MinorUnits), r.Currency, r.Status, r.Reason, r.Operator, r.Country, r.Channel,
			formatTime(r.CreatedAt), formatTime(r.FinalAt), r.Payer, r.OperatorReference,
		}
		last := lastNotification(r)
		cells = append(cells, last.WebhookID, string(last.Status), last.State, formatCount(int64(last.Attempts)),
			formatTime(last.DeliveredAt))
		for i, cell := range cells {
			cells[i] = spreadsheet.EscapeFormulas(cell)
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return text.Bytes()
}

// lastNotification is the notification of a row's status, or the last of the list if none has its word. A dead letter
// of an earlier status is behind the delivered ones.
func lastNotification(r transaction) (last resource.Notification) {
	for _, n := range r.Notifications {
		if last = n; string(n.Status) == r.Status {
			break
		}
	}
	return last
}

// formatCount writes a number, "" for 0.
func formatCount(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// formatTime writes a time as JSON has it, "" for none.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
