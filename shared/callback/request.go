package operation

import (
	"context"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
)

// CallbackKeys gives the keys that sign callback addresses; *callback.Keys is the one that ships.
type CallbackKeys interface {
	Ring(ctx context.Context) (*callback.Ring, error)
}

// CallbackVerifier checks the token of a callback address; *callback.Keys is the one that ships.
type CallbackVerifier interface {
	Verify(ctx context.Context, path, token string) (bool, error)
}

// VerifyCallback checks the token of a callback before anything is read (decision "callbacks"): RouteNotFound for a forged one,
// OperatorUnavailable where nothing is known about the token, so that the operator comes again.
func VerifyCallback(ctx context.Context, req *apigw.Request, callbacks CallbackVerifier, path string) error {
	valid, err := callbacks.Verify(ctx, path, req.Params["token"])
	if err != nil {
		return &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	}
	if !valid {
		return fault.New(fault.RouteNotFound)
	}
	return nil
}

// FindTransaction finds the entry that a genuine callback speaks of: RouteNotFound where there is none of that operator, OperatorUnavailable
// where the ledger does not answer.
func FindTransaction(ctx context.Context, req *apigw.Request, book *ledger.Book, key ledger.Key) (*ledger.Entry, error) {
	entry, err := book.Find(ctx, key)
	if err != nil {
		return nil, &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	}
	if entry == nil || entry.Operator != req.Params["operator"] {
		return nil, fault.New(fault.RouteNotFound)
	}
	req.LogLine.SetMerchant(entry.Merchant)
	LogRouting(req, entry)
	return entry, nil
}

// CallbackResponse is the answer to a callback: 200 once its state is stored, OperatorUnavailable where it could not be.
func CallbackResponse(err error) (apigw.Response, error) {
	if err != nil {
		return apigw.Response{}, &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	}
	return apigw.Response{Status: 200, Body: []byte(`{"status":"OK"}`)}, nil
}
