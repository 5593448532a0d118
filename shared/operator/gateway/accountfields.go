package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mobilegateway/shared/operator"
)

// accountField is a field of an account, and where the driver keeps it.
type accountField struct {
	operator.AccountField
	value func(account) string // nil: the operation itself checks it
}

// AccountFields implements operator.AccountDescriber.
func (d *Driver) AccountFields() []operator.AccountField {
	var fields []operator.AccountField
	for _, field := range accountFields() {
		fields = append(fields, field.AccountField)
	}
	return fields
}

// accountFields are the fields of an account, as OPERATOR_CREDENTIALS_SECRET has them.
func accountFields() []accountField {
	basic := operator.BasicAccountFields()
	constant := func(path, operation string, value func(account) string) accountField {
		return accountField{operator.AccountField{
			Path: path, Identity: true, NeededBy: []string{operation}, Check: operator.CheckHeaderText,
		}, value}
	}
	userSMS := func(path string, check func(string) error, value func(account) string) accountField {
		return accountField{operator.AccountField{
			Path: "user_sms." + path, NeededBy: []string{operator.AccountUserSMS}, Check: check,
		}, value}
	}
	gwToken := userSMS("gw_token", operator.CheckHeaderText, func(a account) string { return a.UserSMS.GWToken })
	gwToken.Secret = true
	return []accountField{
		{basic[0], func(a account) string { return a.BaseURL }},
		{basic[1], func(a account) string { return a.AccessToken }},
		constant("service_id", operator.AccountCharge, func(a account) string { return a.ServiceID }),
		constant("application_id", operator.AccountSMS, func(a account) string { return a.ApplicationID }),
		constant("contact_id", operator.AccountSMS, func(a account) string { return a.ContactID }),
		gwToken,
		userSMS("sender.*", checkSender, nil),
		userSMS("sender_name", checkSenderName, func(a account) string { return a.UserSMS.SenderName }),
	}
}

// checkSender accepts the sender address of the specification (SMS request, senderAddress).
func checkSender(text string) error {
	digits, isNumber := strings.CutPrefix(text, "tel:+")
	if !isNumber || digits == "" || len(digits) > 15 || strings.Trim(digits, "0123456789") != "" {
		return errors.New("is not a sender of the form tel:+2250000")
	}
	return nil
}

func checkSenderName(text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("is empty")
	}
	return nil
}

// checkServes returns which fields an operation cannot be made with. Without them the operator would refuse a correct
// request of the merchant.
func (a account) checkServes(operation string) error {
	var unusable []string
	for _, field := range accountFields() {
		isAddress := field.Path == "base_url" // selectAccount has checked it, by the rule of this deployment
		if field.value == nil || isAddress || !slices.Contains(field.NeededBy, operation) {
			continue
		}
		if field.Check(field.value(a)) != nil {
			unusable = append(unusable, field.Path)
		}
	}
	if unusable != nil {
		return fmt.Errorf("the operator's account has no usable %s", strings.Join(unusable, ", "))
	}
	return nil
}

// filledParts are the parts of our requests whose values come from the account, not from the merchant.
var filledParts = []string{
	"authorization", "serviceId", "X-OAPI-Application-Id", "X-OAPI-Contact-Id", "X-OAPI-Resource-Type",
}

// namesFilledPart reports whether an operator's exception names a part that the gateway filled in.
func namesFilledPart(variables []string) bool {
	return slices.ContainsFunc(variables, func(variable string) bool {
		name := variable[strings.LastIndex(variable, ".")+1:]
		return slices.ContainsFunc(filledParts, func(part string) bool { return strings.EqualFold(part, name) })
	})
}
