package carrierapi

import (
	"cmp"
	"slices"
	"strings"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
)

// The paths of an account's fields, as OPERATOR_CREDENTIALS_SECRET has them.
const (
	fieldAccessToken   = "access_token"
	fieldServiceID     = "service_id"
	fieldApplicationID = "application_id"
	fieldContactID     = "contact_id"
	fieldHeaderPrefix  = "header_prefix"
	fieldPathWord      = "path_word"
	fieldSuccess       = "success_status"
	fieldUserSMSToken  = "user_sms.gw_token" //nolint:gosec // a name, and no value
	fieldUserSMSSender = "user_sms.sender."  // and the alpha-2 code
	fieldUserSMSName   = "user_sms.sender_name"
)

func accountFields() []operator.AccountField {
	constant := func(path, operation string) operator.AccountField {
		return operator.AccountField{
			Path: path, Identity: true, NeededBy: []string{operation}, Check: operator.CheckHeaderText,
		}
	}
	userSMS := func(path string, check func(string) error) operator.AccountField {
		return operator.AccountField{Path: path, NeededBy: []string{operator.AccountUserSMS}, Check: check}
	}
	gwToken := userSMS(fieldUserSMSToken, operator.CheckHeaderText)
	gwToken.Secret = true
	return append(operator.BasicAccountFields(),
		constant(fieldServiceID, operator.AccountCharge),
		constant(fieldApplicationID, operator.AccountSMS),
		constant(fieldContactID, operator.AccountSMS),
		gwToken,
		userSMS(fieldUserSMSSender+"*", checkSender),
		userSMS(fieldUserSMSName, checkSenderName),
		operator.AccountField{Path: fieldHeaderPrefix, Check: checkWord},
		operator.AccountField{Path: fieldPathWord, Check: checkWord},
		operator.AccountField{Path: fieldSuccess, Check: checkSuccess},
	)
}

func checkWord(text string) error {
	if !upstream.IsIdentifier(text) {
		return logsafe.New("has other characters than letters, digits, _ and -")
	}
	return nil
}

func checkSuccess(text string) error {
	if text != "200" && text != "201" {
		return logsafe.New("is not 200 or 201")
	}
	return nil
}

// specifiedPrefix begins the names of headers with the user and the country (specification, Headers).
const specifiedPrefix = "X-Operator"

// headerName returns the name of a header at an account's platform, which may have another prefix.
func headerName(target credentials.Account, name string) string {
	if rest, isOwn := strings.CutPrefix(name, specifiedPrefix); isOwn {
		return cmp.Or(target.Field(fieldHeaderPrefix), specifiedPrefix) + rest
	}
	return name
}

// checkSender accepts the sender address of the specification (SMS request, senderAddress).
func checkSender(text string) error {
	digits, isNumber := strings.CutPrefix(text, "tel:+")
	if !isNumber || len(digits) > 15 || !ascii.IsDigits(digits) {
		return logsafe.New("is not a sender of the form tel:+2250000")
	}
	return nil
}

func checkSenderName(text string) error {
	if strings.TrimSpace(text) == "" {
		return logsafe.New("is empty")
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

// namesOwnWord reports whether a platform refused a part that has its name from the account: then the account is wrong,
// and not the merchant's request.
func namesOwnWord(prefix, word string, f *fault.Fault) bool {
	if f == nil || f.Kind != fault.OperatorError || f.OperatorException == nil {
		return false
	}
	return slices.ContainsFunc(f.OperatorException.Variables, func(variable string) bool {
		return prefix != "" && (strings.HasPrefix(variable, specifiedPrefix) || strings.HasPrefix(variable, prefix)) ||
			word != "" && strings.Contains(variable, "endUserId")
	})
}
