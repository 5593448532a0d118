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
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
)

// Method and Resource are the route as template.yaml has it.
const (
	Method   = "POST"
	Resource = "/callbacks/v1/receipts/{operator}/{requestId}/{token}"
)

// maxInfos bounds the delivery infos read of one receipt; a message has one recipient.
const maxInfos = 16

// The message parts that are read.
const (
	partInfo   = "deliveryInfoNotification.deliveryInfo"
	partStatus = partInfo + ".deliveryStatus"
)

// Inbox takes delivery receipts in.
type Inbox struct {
	Callbacks operation.Verifier
	Book      *ledger.Book
	Now       func() time.Time
}

// Route is the function's entry in the gateway.
func (i *Inbox) Route() apigw.Route {
	return apigw.Route{Method: Method, Resource: Resource, Handle: i.Handle}
}

// Handle verifies, reads and commits a receipt. 200 once it is committed or known already; 404 for a forged or foreign
// one; 400 for one that cannot be read; 503 where it could not be committed, so that the operator comes again.
func (i *Inbox) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	name, id := req.Params["operator"], req.Params["requestId"]
	if err := operation.Genuine(ctx, req, i.Callbacks, callback.ReceiptPath(name, id)); err != nil {
		return apigw.Response{}, err
	}
	req.Event.SetKey(id)
	statuses, err := read(req.Body)
	if err != nil {
		return apigw.Response{}, err
	}
	entry, err := operation.Reported(ctx, req, i.Book, ledger.Key{Kind: ledger.SMS, ID: id})
	if err != nil {
		return apigw.Response{}, err
	}
	settled, err := i.Book.Apply(ctx, entry, func(e *ledger.Entry) error {
		if !advance(e, statuses, ledger.Moment(i.Now())) {
			return ledger.ErrUnchanged
		}
		return nil
	})
	if err == nil {
		req.Event.SetOutcome(string(settled.Status))
	}
	return operation.Committed(err)
}

// advance applies the statuses in their order and tells whether one of them was news.
func advance(e *ledger.Entry, statuses []ledger.Status, now time.Time) bool {
	changed := false
	for _, status := range statuses {
		changed = e.Receipt(status, now) == ledger.Applied || changed
	}
	return changed
}

// object is a JSON object whose names are matched with their case (decision "unknown-fields").
type object map[string]json.RawMessage

// list is an object or an array of objects (decision "sms-receipts").
type list []object

// UnmarshalJSON reads either form.
func (l *list) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, (*[]object)(l))
	}
	var one object
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	*l = list{one}
	return nil
}

// read takes the statuses of a receipt, in its order. A word that is none of the six is refused.
func read(body []byte) ([]ledger.Status, error) {
	if _, err := strictjson.Parse(body); err != nil {
		return nil, err
	}
	var root map[string]json.RawMessage
	var notification object
	var infos list
	if json.Unmarshal(body, &root) != nil || decode(root["deliveryInfoNotification"], &notification) != nil ||
		decode(notification["deliveryInfo"], &infos) != nil || len(infos) > maxInfos {
		return nil, fault.In(fault.Invalid, partInfo)
	}
	if len(infos) == 0 {
		return nil, fault.In(fault.Missing, partInfo)
	}
	var statuses []ledger.Status
	for _, info := range infos {
		var word string
		if decode(info["deliveryStatus"], &word) != nil {
			return nil, fault.In(fault.Invalid, partStatus)
		}
		status, known := operator.DeliveryWord(word)
		if !known {
			return nil, fault.In(fault.Invalid, partStatus)
		}
		statuses = append(statuses, status)
	}
	return statuses, nil
}

// decode reads a part into a value; an absent part, or null, leaves it as it is.
func decode(part json.RawMessage, value any) error {
	if len(part) == 0 || string(part) == "null" {
		return nil
	}
	return json.Unmarshal(part, value)
}
