package callback

import (
	"context"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
)

// errOtherTime is for the log: the address is authentic, but its key signed at another time than this transaction's.
var errOtherTime = logsafe.New("the callback key did not sign at the time of the transaction")

// VerifyRequest checks the token of a callback request before anything is read (decision "callbacks"). It returns
// RouteNotFound for a forged one. It returns OperatorUnavailable if the keys cannot be read, so that the operator
// retries.
func (k *Keys) VerifyRequest(ctx context.Context, req *apigw.Request, path string) (Proof, error) {
	proof, valid, err := k.Verify(ctx, path, req.Params["token"])
	if err != nil {
		return Proof{}, &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	}
	if !valid {
		return Proof{}, fault.New(fault.RouteNotFound)
	}
	return proof, nil
}

// FindTransaction finds the entry of a verified callback. It returns RouteNotFound if that operator has none, or if the
// key of the proof signed no address of it. It returns OperatorUnavailable if the ledger or the keys cannot be read.
func FindTransaction(
	ctx context.Context, req *apigw.Request, book *ledger.Book, key ledger.Key, proof Proof,
) (*ledger.Entry, error) {
	entry, err := book.Find(ctx, key)
	if err != nil {
		return nil, &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	}
	if entry == nil || entry.Route.Operator != req.Params["operator"] {
		return nil, fault.New(fault.RouteNotFound)
	}
	req.LogLine.SetMerchant(entry.Merchant.Name)
	req.LogLine.SetRouting(entry.Route.Operator, entry.Route.Country, entry.Request.Channel)
	covered, err := proof.Covers(ctx, entry)
	if err != nil {
		return nil, &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	}
	if !covered {
		return nil, &fault.Fault{Kind: fault.RouteNotFound, Cause: errOtherTime}
	}
	return entry, nil
}

// Response is the response to a callback: 200 if its report is stored, OperatorUnavailable if err says that it is not.
func Response(err error) (apigw.Response, error) {
	if err != nil {
		return apigw.Response{}, &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	}
	return apigw.Response{Status: 200, Body: []byte(`{"status":"OK"}`)}, nil
}

// VerifyStatic authenticates a callback to an account's one address, and returns the platform's driver. It reads no
// table. It returns RouteNotFound for a forged callback and for a platform without such callbacks, and
// OperatorUnavailable if the account cannot be read, so that the platform retries.
func VerifyStatic(
	ctx context.Context, req *apigw.Request, operators *operator.DriverDirectory,
) (operator.Driver, error) {
	driver, row, found := operators.Driver(req.Params["platform"])
	verifier, isVerifier := driver.(operator.StaticCallbackVerifier)
	if !found || !row.StaticCallbacks || !isVerifier || row.Platform != req.Params["platform"] {
		return nil, fault.New(fault.RouteNotFound)
	}
	valid, err := verifier.VerifyStaticCallback(ctx, operator.StaticCallback{
		Platform: row.Platform, AccountID: req.Params["account"], PathSecret: req.Params["secret"],
		Header: req.Header, Body: req.Body,
	})
	if err != nil {
		return nil, &fault.Fault{Kind: fault.OperatorUnavailable, Cause: err}
	}
	if !valid {
		return nil, fault.New(fault.RouteNotFound)
	}
	return driver, nil
}

// IsPinned reports whether an entry is pinned to the account of a static callback; false for nil.
func IsPinned(req *apigw.Request, e *ledger.Entry) bool {
	pin := operator.Pin{Platform: req.Params["platform"], Account: req.Params["account"]}
	return e != nil && operator.PinOf(e) == pin
}
