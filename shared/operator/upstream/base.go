package upstream

import (
	"context"
	"crypto/subtle"
	"fmt"
	"maps"
	"net/http"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
)

// Base implements operator.Driver by the accounts of a platform. A driver embeds it, and adds what its platform offers.
// It is safe for concurrent use.
type Base struct {
	Accounts *credentials.Reader
	Client   *Client
	// Fields are the fields of an account. Operation is the only operation of the driver: an account is usable if all
	// fields that it needs are.
	Fields    []operator.AccountField
	Operation string
	// Header returns headers of each request of an account, also of a token exchange; nil for none.
	Header func(credentials.Account) map[string]string
	// Tokens are access tokens that Credentials are exchanged for. Without them the token is the field access_token.
	Tokens      *Tokens
	Credentials ClientCredentials
}

// Build makes the request of an account. Its URL is the path below the account's address. A fault means that the
// account or the merchant's values cannot make it.
type Build func(account credentials.Account) (Request, *fault.Fault)

// Get returns how a request for a path is made, which is the same for all accounts.
func Get(path string) Build {
	return func(credentials.Account) (Request, *fault.Fault) {
		return Request{Method: http.MethodGet, URL: path}, nil
	}
}

// asTransaction is a Build whose request is a transaction.
func (b Build) asTransaction(account credentials.Account) (Request, *fault.Fault) {
	request, invalid := b(account)
	request.IsTransaction = true
	return request, invalid
}

// AccountFields implements operator.AccountDescriber.
func (b *Base) AccountFields() []operator.AccountField { return b.Fields }

// FindAccount implements operator.Driver.
func (b *Base) FindAccount(ctx context.Context, platform, id string) (string, error) {
	account, unusable := b.findAccount(ctx, platform, id, "")
	if unusable != nil {
		return "", unusable
	}
	return account.ID, nil
}

// findAccount returns an account that is usable in a country, "" for any. The fault is IntegrationRejected, and names
// the fields that cannot be used.
func (b *Base) findAccount(ctx context.Context, platform, id, country string) (credentials.Account, *fault.Fault) {
	found, err := b.Accounts.Find(ctx, platform, id)
	if err == nil {
		err = found.CheckUsable(b.Fields, b.Operation, country)
	}
	if err != nil {
		b.Accounts.RecordUse(platform, 0, false)
		return credentials.Account{}, &fault.Fault{Kind: fault.IntegrationRejected, Cause: err}
	}
	return found, nil
}

// Send makes the request of a call's account, and sends it with a token. If the platform certainly did not process it,
// because it refused the credentials, they are read again; with new ones, or a new token, it is sent once more. A fault
// means that nothing was processed: the account, its token or the request cannot be made.
func (b *Base) Send(
	ctx context.Context, call operator.Call, build Build, isUnprocessed func(Exchange) bool,
) (Exchange, *fault.Fault) {
	ctx, cancel := WithDefaultTimeout(ctx)
	defer cancel()
	country := call.Country
	if call.IsAccountCheck() {
		country = "" // the check of an account names any country of its platform
	}
	account, unsent := b.findAccount(ctx, call.Platform, call.AccountID, country)
	if unsent != nil {
		return Exchange{}, unsent
	}
	request, unsent := build(account)
	if unsent != nil {
		return Exchange{}, unsent
	}
	x, unsent := b.sendOnce(ctx, account, request)
	if unsent == nil && x.Err == nil && isUnprocessed(x) {
		refused := x
		renewed, isNew := b.Accounts.RefreshAfterRefusal(ctx, account)
		if isNew = isNew && renewed.CheckUsable(b.Fields, b.Operation, country) == nil; isNew {
			account = renewed
		}
		if again, invalid := build(account); invalid == nil && (isNew || b.Tokens != nil) {
			x, unsent = b.sendOnce(ctx, account, again)
			x.Refused = &refused
		}
	}
	b.Accounts.RecordUse(call.Platform, account.Version, unsent == nil && x.IsSuccess())
	return x, unsent
}

// Check makes the request of a call's account and does not send it. It returns the fault of the account or the request.
func (b *Base) Check(ctx context.Context, call operator.Call, build Build) *fault.Fault {
	account, invalid := b.findAccount(ctx, call.Platform, call.AccountID, call.Country)
	if invalid == nil {
		_, invalid = build(account)
	}
	return invalid
}

// sendOnce makes one exchange. A token that the platform has refused is dropped.
func (b *Base) sendOnce(ctx context.Context, account credentials.Account, r Request) (Exchange, *fault.Fault) {
	token, key := account.Field("access_token"), fmt.Sprintf("%s/%s/%d", account.Platform, account.ID, account.Version)
	if b.Tokens != nil {
		var unsent *fault.Fault
		if token, unsent = b.token(ctx, key, account); unsent != nil {
			return Exchange{}, unsent
		}
	}
	r.URL, r.Header = account.BaseURL()+r.URL, b.header(account, "Bearer "+token, r.Header)
	x := b.Client.Send(ctx, r)
	x.Account = account
	if b.Tokens != nil && x.IsUnauthorized() {
		b.Tokens.Drop(key, token)
	}
	return x, nil
}

// header joins the headers of a request; more ones replace those of the account.
func (b *Base) header(account credentials.Account, authorization string, more map[string]string) map[string]string {
	header := map[string]string{"Authorization": authorization}
	if b.Header != nil {
		maps.Copy(header, b.Header(account))
	}
	maps.Copy(header, more)
	return header
}

// SendTransaction sends a payment or a message with the rules of Send. read gets a complete response.
func (b *Base) SendTransaction(
	ctx context.Context, call operator.Call, build Build, isUnprocessed func(Exchange) bool,
	read func(Exchange) operator.PayResponse,
) operator.PayResponse {
	x, unsent := b.Send(ctx, call, build.asTransaction, isUnprocessed)
	return x.Response(unsent, read)
}

// Response returns the response with an exchange, or with the fault for which nothing was sent. read gets a complete
// response.
func (x Exchange) Response(unsent *fault.Fault, read func(Exchange) operator.PayResponse) operator.PayResponse {
	if unsent != nil {
		return operator.PayResponse{Result: NotSent(unsent)}
	}
	response := operator.PayResponse{}
	if result, isWithout := x.WithoutResponse(); isWithout {
		response.Result = result
	} else {
		response = read(x)
	}
	response.HTTPStatus = x.Status
	return response
}

// PaymentBuild makes the request of a payment for an account, with the faults of Build.
type PaymentBuild func(credentials.Account, operator.PayCall) (Request, *fault.Fault)

// Of returns how the request of one payment is made.
func (b PaymentBuild) Of(call operator.PayCall) Build {
	build := Build(func(account credentials.Account) (Request, *fault.Fault) { return b(account, call) })
	return build.asTransaction
}

// CheckPaymentBy is operator.PaymentChecker for a platform whose payment is one request. The request is an argument, so
// that functions which send no payment do not link it.
func (b *Base) CheckPaymentBy(ctx context.Context, call operator.PayCall, build PaymentBuild) *fault.Fault {
	return b.Check(ctx, call.Call, build.Of(call))
}

// SendPayment sends a payment with the rules of SendTransaction.
func (b *Base) SendPayment(
	ctx context.Context, call operator.PayCall, build PaymentBuild, isUnprocessed func(Exchange) bool,
	read func(Exchange) operator.PayResponse,
) operator.PayResponse {
	return b.SendTransaction(ctx, call.Call, build.Of(call), isUnprocessed, read)
}

// minCallbackSecret is the shortest secret of a static callback's address in characters.
const minCallbackSecret = 32

// fieldCallbackSecret is the path of the secret.
const fieldCallbackSecret = "callback_secret"

// CallbackSecretField is the account field with the last segment of a static callback's address.
func CallbackSecretField(operation string) operator.AccountField {
	return operator.AccountField{
		Path: fieldCallbackSecret, Secret: true, NeededBy: []string{operation}, Check: checkCallbackSecret,
	}
}

// checkCallbackSecret refuses a secret that can be guessed, or that an address cannot carry.
func checkCallbackSecret(text string) error {
	if len(text) < minCallbackSecret || !IsIdentifier(text) {
		return logsafe.New("has fewer than 32 characters, or others than letters, digits, _ and -")
	}
	return nil
}

// VerifyCallback verifies a static callback by the account's secret in its path, and by isSigned unless it is nil. If
// that fails, it reads the account once more, because a secret may have been renewed. Its result is that of
// operator.StaticCallbackVerifier.
func (b *Base) VerifyCallback(
	ctx context.Context, callback operator.StaticCallback, isSigned func(credentials.Account) bool,
) (bool, error) {
	if _, err := b.Accounts.Routes(ctx); err != nil {
		return false, err // the secret cannot be read
	}
	account, err := b.Accounts.Find(ctx, callback.Platform, callback.AccountID)
	if err != nil {
		return false, nil // there is no such account
	}
	isAuthentic := func(account credentials.Account) bool {
		want := account.Field(fieldCallbackSecret)
		return checkCallbackSecret(want) == nil &&
			subtle.ConstantTimeCompare([]byte(want), []byte(callback.PathSecret)) == 1 &&
			(isSigned == nil || isSigned(account))
	}
	if isAuthentic(account) {
		return true, nil
	}
	renewed, changed := b.Accounts.RefreshAfterRefusal(ctx, account)
	return changed && isAuthentic(renewed), nil
}
