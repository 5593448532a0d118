package callback

import (
	"context"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

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
