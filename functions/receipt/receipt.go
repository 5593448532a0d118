// Package receipt takes in the operators' SMS delivery receipts: POST /callbacks/v1/receipts/{operator}/{requestId}/{token}.
//
// Its invariants: a forged call costs no read of the database; 200 is answered only when the state is committed; a
// delivery status never goes back.
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

// Method and Resource are the route as template.yaml has it.
const (
	Method   = "POST"
	Resource = "/callbacks/v1/receipts/{operator}/{requestId}/{token}"
)

// maxDeliveryInfos bounds the delivery infos read of one receipt; a message has one recipient.
const maxDeliveryInfos = 16

// The message parts that are read.
const (
	partInfo   = "deliveryInfoNotification.deliveryInfo"
	partStatus = partInfo + ".deliveryStatus"
)

// ReceiptHandler takes delivery receipts in.
type ReceiptHandler struct {
	Verifier *callback.Keys
	Book     *ledger.Book
	Now      func() time.Time
}

// Route is the function's entry in the gateway.
func (i *ReceiptHandler) Route() apigw.Route {
	return apigw.Route{Method: Method, Resource: Resource, Handle: i.Handle}
}

// Handle verifies, reads and commits a receipt. 200 once it is committed or known already; 404 for a forged or foreign
// one; 400 for one that cannot be read; 503 where it could not be committed, so that the operator comes again.
func (i *ReceiptHandler) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	name, id := req.Params["operator"], req.Params["requestId"]
	if err := i.Verifier.VerifyRequest(ctx, req, callback.ReceiptPath(name, id)); err != nil {
		return apigw.Response{}, err
	}
	req.LogLine.SetTransactionKey(id)
	statuses, err := readStatuses(req.Body)
	if err != nil {
		return apigw.Response{}, err
	}
	entry, err := callback.FindTransaction(ctx, req, i.Book, ledger.Key{Kind: ledger.SMS, ID: id})
	if err != nil {
		return apigw.Response{}, err
	}
	updated, err := i.Book.ChangeKnown(ctx, entry, func(e *ledger.Entry) error {
		if !applyStatuses(e, statuses, ledger.Timestamp(i.Now())) {
			return ledger.ErrUnchanged
		}
		return nil
	})
	if err == nil {
		req.LogLine.SetOutcome(string(updated.Status))
	}
	return callback.Response(err)
}

// applyStatuses applies the statuses in their order and tells whether one of them was news.
func applyStatuses(e *ledger.Entry, statuses []ledger.Status, now time.Time) bool {
	changed := false
	for _, status := range statuses {
		changed = e.ApplyReceipt(status, now) == ledger.Applied || changed
	}
	return changed
}

// jsonObject is a JSON object whose names are matched with their case (decision "unknown-fields").
type jsonObject map[string]json.RawMessage

// oneOrMany is an object or an array of objects (decision "sms-receipts").
type oneOrMany []jsonObject

// UnmarshalJSON reads either form.
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

// readStatuses takes the statuses of a receipt, in its order. A word that is none of the six is refused.
func readStatuses(body []byte) ([]ledger.Status, error) {
	if _, err := strictjson.Parse(body); err != nil {
		return nil, err
	}
	var root map[string]json.RawMessage
	var notification jsonObject
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

// decodeOptional reads a part into a value; an absent part, or null, leaves it as it is.
func decodeOptional(part json.RawMessage, value any) error {
	if len(part) == 0 || string(part) == "null" {
		return nil
	}
	return json.Unmarshal(part, value)
}
