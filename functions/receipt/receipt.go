// Package receipt handles the operators' SMS delivery receipts:
// POST /callbacks/v1/receipts/{operator}/{requestId}/{token}.
//
// Its invariants: a forged request costs no read of the database; 200 means that the receipt is stored; a delivery
// status never returns to an earlier one.
package receipt

import (
	"context"
	"strings"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
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
	Now      func() time.Time
}

// Route returns the function's route, as in template.yaml.
func (i *ReceiptHandler) Route() apigw.Route {
	return apigw.Route{
		Method: "POST", Resource: "/callbacks/v1/receipts/{operator}/{requestId}/{token}", Handle: i.Handle,
	}
}

// Handle verifies, decodes and stores a receipt. It responds 200 if the receipt is stored, now or before. It responds
// 404 if the receipt is forged or the message is not the operator's, and 400 if it cannot be decoded. It responds 503
// if nothing was stored, so that the operator sends the receipt again.
func (i *ReceiptHandler) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	name, id := req.Params["operator"], req.Params["requestId"]
	proof, err := i.Verifier.VerifyRequest(ctx, req, callback.ReceiptPath(name, id))
	if err != nil {
		return apigw.Response{}, err
	}
	req.LogLine.SetTransactionKey(id)
	statuses, err := readStatuses(req.Body)
	if err != nil {
		return apigw.Response{}, err
	}
	entry, err := callback.FindTransaction(ctx, req, i.Book, ledger.Key{Kind: ledger.SMS, ID: id}, proof)
	if err != nil {
		return apigw.Response{}, err
	}
	updated, err := i.Book.ApplyChange(ctx, entry, func(e *ledger.Entry) bool {
		return applyStatuses(e, statuses, ledger.Timestamp(i.Now()))
	})
	if err == nil {
		req.LogLine.SetOutcome(string(updated.Status))
	}
	return callback.Response(err)
}

// applyStatuses applies the statuses in order and reports whether one of them changed the entry.
func applyStatuses(e *ledger.Entry, statuses []ledger.Status, now time.Time) bool {
	changed := false
	for _, status := range statuses {
		changed = e.ApplyReceipt(status, now) == ledger.Applied || changed
	}
	return changed
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
