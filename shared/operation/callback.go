package operation

import (
	"context"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
)

// Callbacks gives the keys that sign callback addresses; *callback.Keys is the one that ships.
type Callbacks interface {
	Ring(ctx context.Context) (*callback.Ring, error)
}

// Verifier checks the token of a callback address; *callback.Keys is the one that ships.
type Verifier interface {
	Verify(ctx context.Context, path, token string) (bool, error)
}

// Genuine checks the token of a callback before anything is read (decision "callbacks"): NoRoute for a forged one,
// OperatorDown where nothing is known about the token, so that the operator comes again.
func Genuine(ctx context.Context, req *apigw.Request, callbacks Verifier, path string) error {
	genuine, err := callbacks.Verify(ctx, path, req.Params["token"])
	if err != nil {
		return &fault.Fault{Kind: fault.OperatorDown, Cause: err}
	}
	if !genuine {
		return fault.Of(fault.NoRoute)
	}
	return nil
}

// Reported finds the entry that a genuine callback speaks of: NoRoute where there is none of that operator, OperatorDown
// where the ledger does not answer.
func Reported(ctx context.Context, req *apigw.Request, book *ledger.Book, key ledger.Key) (*ledger.Entry, error) {
	entry, err := book.Find(ctx, key)
	if err != nil {
		return nil, &fault.Fault{Kind: fault.OperatorDown, Cause: err}
	}
	if entry == nil || entry.Operator != req.Params["operator"] {
		return nil, fault.Of(fault.NoRoute)
	}
	req.Event.SetMerchant(entry.Merchant)
	Note(req, entry)
	return entry, nil
}

// Committed is the answer to a callback: 200 once its state is stored, OperatorDown where it could not be.
func Committed(err error) (apigw.Response, error) {
	if err != nil {
		return apigw.Response{}, &fault.Fault{Kind: fault.OperatorDown, Cause: err}
	}
	return apigw.Response{Status: 200, Body: []byte(`{"status":"OK"}`)}, nil
}
