package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
)

// minCallbackSecret is the shortest secret of a static callback's address in characters.
const minCallbackSecret = 32

// CheckCallbackSecret is the rule of the account field callback_secret, the last segment of a static callback's
// address.
func CheckCallbackSecret(text string) error {
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	if len(text) < minCallbackSecret || strings.Trim(text, characters) != "" {
		return errors.New("has fewer than 32 characters, or others than letters, digits, _ and -")
	}
	return nil
}

// CheckPayAccount implements operator.Driver.FindAccount for a platform with only payments.
func CheckPayAccount(
	ctx context.Context, accounts *credentials.Reader, platform, id string, fields []operator.AccountField,
) (string, error) {
	found, err := FindPayAccount(ctx, accounts, platform, id, fields)
	if err != nil {
		return "", &fault.Fault{Kind: fault.IntegrationRejected, Cause: err}
	}
	return found.ID, nil
}

// FindPayAccount returns an account whose fields are usable for payments. Its errors have no values of fields.
func FindPayAccount(
	ctx context.Context, accounts *credentials.Reader, platform, id string, fields []operator.AccountField,
) (credentials.Account, error) {
	found, err := accounts.Find(ctx, platform, id)
	if err == nil {
		unusable := operator.UnusableFields(fields, operator.AccountPay, found.Field)
		if unusable == nil {
			return found, nil
		}
		err = fmt.Errorf("the operator's account has no usable %s", strings.Join(unusable, ", "))
	}
	accounts.RecordUse(platform, 0, false)
	return credentials.Account{}, err
}

// NotOffered returns the outcome of an operation that the platform lacks. Nothing was sent.
func NotOffered() operator.Result {
	return NotApplied(fault.IntegrationRejected, errors.New("the platform does not offer the operation"))
}

// RefusedPart returns the outcome of a payment that was not sent, because its platform cannot take a part of the
// merchant's request. The merchant gets 400 SVC0002 with the part. reason is for the log, without the part's value.
func RefusedPart(part, reason string) operator.Result {
	result := NotApplied(fault.OperatorError, errors.New(part+" "+reason))
	result.Fault.OperatorException = &fault.OperatorException{
		MessageID: "SVC0002", Variables: []string{part}, HTTPStatus: http.StatusBadRequest,
	}
	return result
}
