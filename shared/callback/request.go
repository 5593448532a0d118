package callback

import (
	"context"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operation"
)

// VerifyRequest checks the token of a callback request before anything is read (decision "callbacks"). It returns
// RouteNotFound for a forged one. It returns OperatorUnavailable if the keys cannot be read, so that the operator
// retries.
func (k *Keys) VerifyRequest(ctx context.Context, req *apigw.Request, path string) error {
	valid, err := k.Verify(ctx, path, req.Params["token"])
	if err != nil {
		return &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	}
	if !valid {
		return fault.New(fault.RouteNotFound)
	}
	return nil
}

// FindTransaction finds the entry of a verified callback. It returns RouteNotFound if that operator has none, and
// OperatorUnavailable if the ledger cannot be read.
func FindTransaction(
	ctx context.Context, req *apigw.Request, book *ledger.Book, key ledger.Key,
) (*ledger.Entry, error) {
	entry, err := book.Find(ctx, key)
	if err != nil {
		return nil, &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	}
	if entry == nil || entry.Operator != req.Params["operator"] {
		return nil, fault.New(fault.RouteNotFound)
	}
	req.LogLine.SetMerchant(entry.Merchant)
	operation.LogRouting(req, entry)
	return entry, nil
}

// Response is the response to a callback: 200 if its report is stored, OperatorUnavailable if err says that it is not.
func Response(err error) (apigw.Response, error) {
	if err != nil {
		return apigw.Response{}, &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	}
	return apigw.Response{Status: 200, Body: []byte(`{"status":"OK"}`)}, nil
}
