package carrierapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/strictjson"
)

// headerISE2 has the recipient. The only allowed value of address refers to it.
const headerISE2 = "X-Operator-ISE2"

// SendSMS sends a message once per key. A success has the operator's request id. If the operator knows the key already,
// the outcome is Unknown with DuplicateKey (decision "sms-duplicate").
func (d *Driver) SendSMS(ctx context.Context, call operator.SMSCall) operator.Result {
	build := func(target credentials.Account) (upstream.Request, error) { return buildSMSRequest(target, call), nil }
	return d.execute(ctx, call.Call, smsProtocol(operator.AccountSMS, build)).Result
}

func smsProtocol(operation string, build requestBuilder) callProtocol {
	return callProtocol{
		operation: operation, buildRequest: build, parseSuccess: parseSMSSuccess, reportsDuplicates: true,
	}
}

// SendUserSMS sends the payer's SMS through the operator's own SMS operation, with the service's token, sender and
// name, and without a receipt (decision "user-sms"). Without a sender for the country the outcome is NotApplied.
func (d *Driver) SendUserSMS(ctx context.Context, call operator.UserSMSCall) operator.Result {
	build := func(target credentials.Account) (upstream.Request, error) {
		sender := target.Field(fieldUserSMSSender + strings.ToUpper(call.Country))
		if sender == "" {
			return upstream.Request{}, logsafe.New("the operator's account has no user_sms.sender for the country")
		}
		sms := operator.SMSCall{
			Call:       call.Call,
			ISE2:       call.MSISDN,
			Sender:     sender,
			SenderName: target.Field(fieldUserSMSName),
			Message:    escapeRFC1738(call.Text),
		}
		sms.GWToken, sms.GWAlias = target.Field(fieldUserSMSToken), call.MSISDN
		return buildSMSRequest(target, sms), nil
	}
	return d.execute(ctx, call.Call, smsProtocol(operator.AccountUserSMS, build)).Result
}

func buildSMSRequest(target credentials.Account, call operator.SMSCall) upstream.Request {
	request := resource.Message{
		Address:                []string{"acr:" + headerName(target, headerISE2)},
		SenderAddress:          call.Sender,
		OutboundSMSTextMessage: resource.TextMessage{Message: call.Message},
		SenderName:             call.SenderName,
		ClientCorrelator:       call.UpstreamKey,
	}
	if call.NotifyURL != "" {
		request.ReceiptRequest = &resource.ReceiptRequest{NotifyURL: call.NotifyURL}
	}
	return upstream.Request{
		Method: http.MethodPost, IsTransaction: true,
		URL: "/smsmessaging/v1/outbound/" + escapeRFC1738(call.Sender) + "/requests",
		Header: map[string]string{
			"X-OAPI-Application-Id": target.Field(fieldApplicationID),
			"X-OAPI-Contact-Id":     target.Field(fieldContactID),
			"X-OAPI-Resource-Type":  "SMS_OSM",
			"gw-alias":              call.GWAlias,
			"gw-token":              call.GWToken,
			"X-Operator-MCO":        call.MCO,
			headerISE2:              call.ISE2,
		},
		Body: request.Body(),
	}
}

// parseSMSSuccess reads a success: a resourceURL with the id of the request.
func parseSMSSuccess(response *strictjson.Reader) (operator.PayResponse, bool) {
	text, _ := response.OptionalText("outboundSMSMessageRequest.resourceURL", upstream.MaxURLLength)
	id := smsRequestID(text)
	return operator.PayResponse{Result: operator.Result{OperatorReference: id}}, id != ""
}

// escapeRFC1738 escapes text by RFC 1738: everything except letters, digits and "-", "_", ".", "~". A space is %20,
// never "+".
func escapeRFC1738(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
