// Package receipt handles the operators' SMS delivery receipts:
// POST /callbacks/v1/receipts/{operator}/{requestId}/{token}.
//
// Its invariants: a forged request costs no read of the database; 200 means that the receipt is stored; a delivery
// status never returns to an earlier one.
package receipt

import (
	"context"
	"errors"
	"strings"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
	"mobilegateway/shared/telemetry"
	"mobilegateway/shared/timeline"
)

// maxDeliveryInfos bounds the delivery infos of one receipt; a message has one recipient.
const maxDeliveryInfos = 16

// maxStatusLength is the limit of a status in characters.
const maxStatusLength = 64

// The parts of the body that faults name.
const (
	partInfo   = "deliveryInfoNotification.deliveryInfo"
	partStatus = partInfo + ".deliveryStatus"
)

// ReceiptHandler verifies and stores delivery receipts.
type ReceiptHandler struct {
	Verifier *callback.Keys
	Book     *ledger.Book
	// Operators and Messages are for platforms that send all receipts to one address. Such a receipt waits for
	// KeepReceipts, if it comes before the response to its message.
	Operators *operator.DriverDirectory
	Messages  ledger.MessageIndex
	Now       func() time.Time
}

// KeepReceipts is how long a receipt of an unknown message is kept.
const KeepReceipts = 7 * 24 * time.Hour

// Routes returns the function's routes, as in template.yaml.
func (h *ReceiptHandler) Routes() []apigw.Route {
	const perAccount = "/callbacks/v1/accounts/receipts/{platform}/{account}/{secret}"
	return []apigw.Route{
		{Method: "POST", Resource: "/callbacks/v1/receipts/{operator}/{requestId}/{token}", Handle: h.Handle},
		{Method: "POST", Resource: perAccount, Handle: h.HandleStatic},
	}
}

// HandleStatic stores a receipt that came to the one address of an account (decision "static-callbacks"). It responds
// 200 if the receipt is stored, or cannot be read; 404 if it is forged; and 503 if nothing was stored.
func (h *ReceiptHandler) HandleStatic(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	driver, err := callback.VerifyStatic(ctx, req, h.Operators)
	if err != nil {
		return apigw.Response{}, err
	}
	reader, isReader := driver.(operator.ReceiptReader)
	if !isReader {
		return apigw.Response{}, fault.New(fault.RouteNotFound)
	}
	reference, statuses, ok := reader.ReadReceipt(req.Body)
	if !ok {
		req.LogLine.Increment(telemetry.UnreadCallbacks)
		return callback.Response(nil)
	}
	account := req.Params["platform"] + "/" + req.Params["account"]
	id, early, err := h.Messages.FindMessage(ctx, account, reference, statuses, h.Now().Add(KeepReceipts))
	if err != nil || id == "" {
		return callback.Response(err)
	}
	req.LogLine.SetTransactionKey(id)
	key := ledger.Key{Kind: ledger.SMS, ID: id}
	updated, err := h.Book.Change(ctx, key, func(e *ledger.Entry) (ledger.Transition, error) {
		changed := callback.IsPinned(req, e) && e.ApplyReceipts(append(early, statuses...), ledger.Timestamp(h.Now()))
		return h.keepReceipt(e, changed), nil
	})
	if errors.Is(err, ledger.ErrNotFound) { // it is past its retention
		return callback.Response(nil)
	}
	if err == nil {
		req.LogLine.SetMerchant(updated.Merchant.Name)
		req.LogLine.SetRouting(updated.Route.Operator, updated.Route.Country, updated.Request.Channel)
		req.LogLine.SetOutcome(string(updated.Status))
	}
	return callback.Response(err)
}

// Handle verifies, decodes and stores a receipt. It responds 200 if the receipt is stored, now or before. It responds
// 404 if the receipt is forged or the message is not the operator's. A receipt that cannot be read gets 200 and changes
// nothing (decision "unread-callbacks"). It responds 503 if nothing was stored, so that the operator sends it again.
func (h *ReceiptHandler) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	name, id := req.Params["operator"], req.Params["requestId"]
	proof, err := h.Verifier.VerifyRequest(ctx, req, callback.ReceiptPath(name, id))
	if err != nil {
		return apigw.Response{}, err
	}
	req.LogLine.SetTransactionKey(id)
	statuses, err := readStatuses(req.Body)
	if err != nil {
		req.LogLine.Increment(telemetry.UnreadCallbacks)
		req.LogLine.SetCause(err)
		return callback.Response(nil)
	}
	entry, err := callback.FindTransaction(ctx, req, h.Book, ledger.Key{Kind: ledger.SMS, ID: id}, proof)
	if err != nil {
		return apigw.Response{}, err
	}
	updated, err := h.Book.ApplyChange(ctx, entry, func(e *ledger.Entry) ledger.Transition {
		return h.keepReceipt(e, e.ApplyReceipts(statuses, ledger.Timestamp(h.Now())))
	})
	if err == nil {
		req.LogLine.SetOutcome(string(updated.Status))
	}
	return callback.Response(err)
}

// keepReceipt keeps a receipt that changed the status of a message in its timeline.
func (h *ReceiptHandler) keepReceipt(e *ledger.Entry, changed bool) ledger.Transition {
	if changed {
		at := e.FinalAt
		if at.IsZero() {
			at = ledger.Timestamp(h.Now())
		}
		e.AddReport(timeline.Event{Kind: timeline.Receipt, At: at, Outcome: ledger.ReportOutcome(e.Status)})
	}
	return ledger.AddReceipt.If(changed)
}

// readStatuses returns the statuses of a receipt in their order. It refuses an unknown status.
func readStatuses(body []byte) ([]ledger.Status, error) {
	doc, err := strictjson.Parse(body)
	if err != nil {
		return nil, err
	}
	infos := doc.Objects(partInfo, maxDeliveryInfos)
	if doc.FirstFault() != nil {
		return nil, fault.ForPart(fault.InvalidPart, partInfo)
	}
	if len(infos) == 0 {
		return nil, fault.ForPart(fault.MissingPart, partInfo)
	}
	var statuses []ledger.Status
	for _, info := range infos {
		text, _ := info.OptionalText(strings.TrimPrefix(partStatus, partInfo+"."), maxStatusLength)
		status, recognized := operator.ParseDeliveryStatus(text)
		if !recognized {
			return nil, fault.ForPart(fault.InvalidPart, partStatus)
		}
		statuses = append(statuses, status)
	}
	return statuses, nil
}
