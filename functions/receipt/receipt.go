// Package receipt handles the operators' SMS delivery receipts:
// POST /callbacks/v1/receipts/{operator}/{requestId}/{token}.
//
// Its invariants: a forged request costs no read of the database; 200 means that the receipt is stored; a delivery
// status never returns to an earlier one.
package receipt

import (
	"context"
	"encoding/json"
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

// jsonObject is a JSON object whose keys are case-sensitive (decision "unknown-fields").
type jsonObject map[string]json.RawMessage

// oneOrMany is an object or an array of objects (decision "sms-receipts").
type oneOrMany []jsonObject

// UnmarshalJSON implements json.Unmarshaler for both forms.
func (l *oneOrMany) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, (*[]jsonObject)(l))
	}
	var one jsonObject
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	*l = oneOrMany{one}
	return nil
}

// readStatuses returns the statuses of a receipt in their order. It refuses an unknown status.
func readStatuses(body []byte) ([]ledger.Status, error) {
	if _, err := strictjson.Parse(body); err != nil {
		return nil, err
	}
	var root, notification jsonObject
	var infos oneOrMany
	if json.Unmarshal(body, &root) != nil || decodeOptional(root["deliveryInfoNotification"], &notification) != nil ||
		decodeOptional(notification["deliveryInfo"], &infos) != nil || len(infos) > maxDeliveryInfos {
		return nil, fault.ForPart(fault.InvalidPart, partInfo)
	}
	if len(infos) == 0 {
		return nil, fault.ForPart(fault.MissingPart, partInfo)
	}
	var statuses []ledger.Status
	for _, info := range infos {
		var statusText string
		if decodeOptional(info["deliveryStatus"], &statusText) != nil {
			return nil, fault.ForPart(fault.InvalidPart, partStatus)
		}
		status, recognized := operator.ParseDeliveryStatus(statusText)
		if !recognized {
			return nil, fault.ForPart(fault.InvalidPart, partStatus)
		}
		statuses = append(statuses, status)
	}
	return statuses, nil
}

// decodeOptional decodes a part into value, and leaves value unchanged if the part is absent or null.
func decodeOptional(part json.RawMessage, value any) error {
	if len(part) == 0 || string(part) == "null" {
		return nil
	}
	return json.Unmarshal(part, value)
}
