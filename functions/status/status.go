// Package status is every lookup: a charge by its resourceURL or by its key, a payment by both getStatus paths, and the
// delivery infos of an SMS.
//
// It reads one entry for each request, for a referenceCode its small item too, and writes nothing. Its invariant: a
// merchant sees only its own transactions; another merchant's looks exactly like one that does not exist.
package status

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/payment"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/strictjson"
)

// maxIDBytes is the longest id that is looked up, in bytes. No id of ours is longer, and the table limits its keys.
const maxIDBytes = 255

// StatusHandler is every lookup, and their dependencies.
type StatusHandler struct {
	Merchants   operation.Authenticator
	RateLimiter *limit.RateLimiter
	Reader      ledger.Reader
	References  ledger.ReferenceIndex
	Now         func() time.Time
}

// Routes returns the routes of the lookups, as in template.yaml. The two getStatus paths are the same lookup (decision
// "pay-getstatus").
func (h *StatusHandler) Routes() []apigw.Route {
	chargeParams := map[string]string{"endUserId": resource.EndUserID}
	const (
		charges       = "/payment/v1/{endUserId}/transactions/amount"
		charge        = charges + "/{transactionId}"
		deliveryInfos = "/smsmessaging/v1/outbound/{senderAddress}/requests/{requestId}/deliveryInfos"
	)
	getCharge := h.byID(lookup{ledger.Charge, "transactionId", "transactionId", chargeResponse})
	getPayment := h.byID(lookup{ledger.Payment, "orderId", "order_id", paymentResponse})
	getDeliveryInfos := h.byID(lookup{ledger.SMS, "requestId", "requestId", deliveryInfosResponse})
	return []apigw.Route{
		{Method: "GET", Resource: charges, FixedParams: chargeParams, Handle: h.FindCharge},
		{Method: "GET", Resource: charge, FixedParams: chargeParams, Handle: getCharge},
		{Method: "GET", Resource: "/mobilemoney/v1/getStatus/{orderId}", Handle: getPayment},
		{Method: "GET", Resource: "/mobilemoney/getstatus/v1/{orderId}", Handle: getPayment},
		{Method: "GET", Resource: deliveryInfos, Handle: getDeliveryInfos},
	}
}

// lookup is a resource that is looked up by its id, and its response.
type lookup struct {
	kind      ledger.Kind
	parameter string // of the path
	part      string // the parameter's name in a fault
	respond   func(entry *ledger.Entry, req *apigw.Request) (apigw.Response, error)
}

// byID handles a lookup by the id in the path.
func (h *StatusHandler) byID(l lookup) func(context.Context, *apigw.Request) (apigw.Response, error) {
	return func(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
		profile, err := operation.Authenticate(ctx, req, h.Merchants, h.RateLimiter)
		if err != nil {
			return apigw.Response{}, err
		}
		entry, err := h.find(ctx, req, profile, ledger.Key{Kind: l.kind, ID: req.Params[l.parameter]}, l.part)
		if err != nil {
			return apigw.Response{}, err
		}
		return l.respond(entry, req)
	}
}

// find reads one of a merchant's entries. A missing, expired or released entry, and one of another merchant, is
// NotFound with the part's name.
func (h *StatusHandler) find(
	ctx context.Context, req *apigw.Request, profile *merchant.Profile, key ledger.Key, part string,
) (*ledger.Entry, error) {
	req.LogLine.SetTransactionKey(key.ID)
	if len(key.ID) > maxIDBytes {
		return nil, fault.ForPart(fault.NotFound, part)
	}
	book := ledger.Book{Reader: h.Reader, Now: h.Now}
	entry, err := book.Find(ctx, key)
	if err != nil {
		return nil, fault.NewInternal(err)
	}
	if entry == nil || entry.Merchant.ID != profile.ID || entry.State == ledger.Released {
		return nil, fault.ForPart(fault.NotFound, part)
	}
	req.LogLine.SetRouting(entry.Route.Operator, entry.Route.Country, entry.Request.Channel)
	return entry, nil
}

// The query parameters of a lookup by key.
const (
	queryCorrelator = "clientCorrelator"
	queryReference  = "referenceCode"
)

// FindCharge returns a charge as a lookup by its id does, by its clientCorrelator or its referenceCode: exactly one of
// them, once and not empty. Every other query is an unknown route (decision "charge-by-key").
func (h *StatusHandler) FindCharge(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	correlator, reference := req.Query[queryCorrelator], req.Query[queryReference]
	if (correlator == "") == (reference == "") || req.RepeatsQuery(queryCorrelator, queryReference) {
		return apigw.Response{}, fault.New(fault.RouteNotFound)
	}
	profile, err := operation.Authenticate(ctx, req, h.Merchants, h.RateLimiter)
	if err != nil {
		return apigw.Response{}, err
	}
	key := ledger.Key{Kind: ledger.Charge, ID: ledger.ChargeID(profile.ID, correlator, reference)}
	part := queryCorrelator
	if reference != "" {
		part = queryReference
		owner, err := h.References.ChargeOfReference(ctx, profile.ID, reference)
		if err != nil {
			return apigw.Response{}, fault.NewInternal(err)
		}
		// A charge without a correlator has the reference in its id, also if it died before it bound the reference.
		key.ID = cmp.Or(owner, key.ID)
	}
	entry, err := h.find(ctx, req, profile, key, part)
	if err != nil {
		return apigw.Response{}, err
	}
	return chargeResponse(entry, req)
}

// chargeResponse is the stored response of a charge, or 200 with status Processing while its outcome is not known.
func chargeResponse(entry *ledger.Entry, req *apigw.Request) (apigw.Response, error) {
	response := apigw.Response{Status: http.StatusOK, Body: resource.ChargeBody(entry, req.BaseURL)}
	if entry.Response.Status != 0 && entry.State != ledger.Done {
		response.Status = entry.Response.Status
	}
	return response, nil
}

// paymentResponse is the body of the payment's notification, with meta.type "payment".
func paymentResponse(entry *ledger.Entry, _ *apigw.Request) (apigw.Response, error) {
	return apigw.Response{Status: http.StatusOK, Body: payment.ResponseBody(entry, entry.Status)}, nil
}

// deliveryInfosResponse is the delivery status of an SMS, or an empty list with Retry-After while it has none (decision
// "sms-delivery-infos"). There is no resource under a sender address that is not the message's own.
func deliveryInfosResponse(entry *ledger.Entry, req *apigw.Request) (apigw.Response, error) {
	if sender := req.Params["senderAddress"]; entry.Request.Sender != sender {
		return apigw.Response{}, &fault.Fault{Kind: fault.InvalidPathAddress, Part: "senderAddress", Value: sender}
	}
	status, infos, header := resource.DeliveryStatus(entry), []resource.DeliveryInfo{}, map[string]string{}
	if status == "" {
		header[oneapi.HeaderRetryAfter] = unknownRetryAfter
	} else {
		infos = append(infos, resource.DeliveryInfo{Address: entry.Request.Address, DeliveryStatus: status})
	}
	body := strictjson.Marshal(map[string]deliveryInfoList{"deliveryInfoList": {
		DeliveryInfo: infos, ResourceURL: resource.MessageURL(req.BaseURL, entry.Request.Sender, entry.ID),
	}})
	return apigw.Response{Status: http.StatusOK, Header: header, Body: body}, nil
}

// unknownRetryAfter is the wait before the next lookup of an SMS without a status, in seconds: as after its 504.
const unknownRetryAfter = "5"

type deliveryInfoList struct {
	DeliveryInfo []resource.DeliveryInfo `json:"deliveryInfo"`
	ResourceURL  string                  `json:"resourceURL"`
}
