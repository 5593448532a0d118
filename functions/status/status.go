// Package status answers every lookup: a charge by its resourceURL, a payment's getStatus on both of its paths, and the
// delivery infos of an SMS.
//
// It reads one item a request and writes nothing. Its invariant: a merchant sees its own transactions alone, and another's
// looks exactly like one that never was.
package status

import (
	"context"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/payment"
	"mobilegateway/shared/strictjson"
)

// The routes as template.yaml has them. The two getStatus paths are the same lookup (decision "pay-getstatus").
const (
	Method               = "GET"
	ChargeResource       = "/payment/v1/{endUserId}/transactions/amount/{transactionId}"
	PaymentResource      = "/mobilemoney/v1/getStatus/{orderId}"
	PaymentResourceAlias = "/mobilemoney/getstatus/v1/{orderId}"
	DeliveryInfoResource = "/smsmessaging/v1/outbound/{senderAddress}/requests/{requestId}/deliveryInfos"
)

const (
	statusOK  = 200
	endUserID = "acr:OperatorAPIToken"
	// statusProcessing is the transactionOperationStatus of a charge whose outcome is not known yet (decision "charge-get").
	statusProcessing = "Processing"
	statusCharged    = "Charged"
	// maxIDBytes is the longest id that is looked up, in bytes: none of ours is longer, and the table takes no key of any length.
	maxIDBytes = 255
)

// StatusHandler is every lookup with all it needs.
type StatusHandler struct {
	Merchants   operation.Authenticator
	RateLimiter operation.RateLimiter
	Reader      ledger.Reader
	Now         func() time.Time
}

// Routes are the lookups' entries in the gateway.
func (l *StatusHandler) Routes() []apigw.Route {
	return []apigw.Route{
		{Method: Method, Resource: ChargeResource, FixedParams: map[string]string{"endUserId": endUserID}, Handle: l.GetCharge},
		{Method: Method, Resource: PaymentResource, Handle: l.GetPayment},
		{Method: Method, Resource: PaymentResourceAlias, Handle: l.GetPayment},
		{Method: Method, Resource: DeliveryInfoResource, Handle: l.GetDeliveryInfos},
	}
}

// findOwnEntry authenticates and reads one entry of the caller's. A missing, expired, foreign or released one is NotFound, naming part.
func (l *StatusHandler) findOwnEntry(ctx context.Context, req *apigw.Request, kind ledger.Kind, id, part string) (*ledger.Entry, error) {
	profile, err := operation.Authenticate(ctx, req, l.Merchants, l.RateLimiter)
	if err != nil {
		return nil, err
	}
	req.LogLine.SetTransactionKey(id)
	if len(id) > maxIDBytes {
		return nil, fault.ForPart(fault.NotFound, part)
	}
	book := ledger.Book{Reader: l.Reader, Now: l.Now}
	entry, err := book.Find(ctx, ledger.Key{Kind: kind, ID: id})
	if err != nil {
		return nil, fault.NewInternal(err)
	}
	if entry == nil || entry.MerchantID != profile.ID || entry.State == ledger.Released {
		return nil, fault.ForPart(fault.NotFound, part)
	}
	operation.LogRouting(req, entry)
	return entry, nil
}

// GetCharge answers a charge's stored answer; while its outcome is not known, 200 with status Processing.
func (l *StatusHandler) GetCharge(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	entry, err := l.findOwnEntry(ctx, req, ledger.Charge, req.Params["transactionId"], "transactionId")
	if err != nil {
		return apigw.Response{}, err
	}
	if entry.ResponseStatus == 0 {
		return jsonResponse(statusOK, pendingChargeBody(entry, req.BaseURL)), nil
	}
	if entry.State == ledger.Done {
		return jsonResponse(statusOK, entry.ResponseBody), nil
	}
	return jsonResponse(entry.ResponseStatus, entry.ResponseBody), nil
}

// GetPayment answers getStatus: the notification's body with meta.type "payment".
func (l *StatusHandler) GetPayment(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	entry, err := l.findOwnEntry(ctx, req, ledger.Payment, req.Params["orderId"], "order_id")
	if err != nil {
		return apigw.Response{}, err
	}
	return jsonResponse(statusOK, payment.ResponseBody(entry, entry.Status)), nil
}

// GetDeliveryInfos answers the delivery status of an SMS (decision "sms-delivery-infos"). A sender address that is not the
// message's own names no resource.
func (l *StatusHandler) GetDeliveryInfos(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	entry, err := l.findOwnEntry(ctx, req, ledger.SMS, req.Params["requestId"], "requestId")
	if err != nil {
		return apigw.Response{}, err
	}
	if entry.Sender != req.Params["senderAddress"] {
		return apigw.Response{}, &fault.Fault{Kind: fault.InvalidPathAddress, Part: "senderAddress", Value: req.Params["senderAddress"]}
	}
	status := entry.Status
	switch {
	case status == "" && entry.State == ledger.Refused:
		status = ledger.DeliveryImpossible
	case status == "":
		status = ledger.MessageWaiting
	}
	list := deliveryInfoList{
		DeliveryInfo: []deliveryInfo{{Address: entry.Address, DeliveryStatus: status}},
		ResourceURL:  operation.MessageURL(req.BaseURL, entry.Sender, entry.ID),
	}
	return jsonResponse(statusOK, strictjson.Marshal(deliveryInfosResponse{list})), nil
}

func jsonResponse(status int, body []byte) apigw.Response {
	return apigw.Response{Status: status, Header: map[string]string{"Content-Type": "application/json"}, Body: body}
}

type (
	deliveryInfosResponse struct {
		DeliveryInfoList deliveryInfoList `json:"deliveryInfoList"`
	}
	deliveryInfoList struct {
		DeliveryInfo []deliveryInfo `json:"deliveryInfo"`
		ResourceURL  string         `json:"resourceURL"`
	}
	deliveryInfo struct {
		Address        string        `json:"address"`
		DeliveryStatus ledger.Status `json:"deliveryStatus"`
	}
)

// The part of the charge response that is known before the operator has answered.
type (
	pendingChargeResponse struct {
		AmountTransaction amountTransaction `json:"amountTransaction"`
	}
	amountTransaction struct {
		EndUserID                  string        `json:"endUserId"`
		PaymentAmount              paymentAmount `json:"paymentAmount"`
		TransactionOperationStatus string        `json:"transactionOperationStatus"`
		ReferenceCode              string        `json:"referenceCode"`
		ServerReferenceCode        string        `json:"serverReferenceCode"`
		ClientCorrelator           string        `json:"clientCorrelator,omitempty"`
		ResourceURL                string        `json:"resourceURL"`
	}
	paymentAmount struct {
		ChargingInformation chargingInformation `json:"chargingInformation"`
	}
	chargingInformation struct {
		Amount   string `json:"amount"`
		Currency string `json:"currency"`
	}
)

// pendingChargeBody is a charge whose outcome is not known yet; or whose outcome a person told, whom no answer came with
// (decision "unknown-by-hand").
func pendingChargeBody(e *ledger.Entry, base string) []byte {
	status := statusProcessing
	if e.State == ledger.Done {
		status = statusCharged
	}
	return strictjson.Marshal(pendingChargeResponse{amountTransaction{
		EndUserID:                  endUserID,
		PaymentAmount:              paymentAmount{chargingInformation{Amount: e.AmountAsSent, Currency: e.Currency}},
		TransactionOperationStatus: status,
		ReferenceCode:              e.ReferenceCode,
		ServerReferenceCode:        e.ID,
		ClientCorrelator:           e.Correlator,
		ResourceURL:                operation.ChargeURL(base, e.ID),
	}})
}
