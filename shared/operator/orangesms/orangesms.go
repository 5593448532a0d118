// Package orangesms is the driver for the Orange SMS API ("SMS Africa and Middle East"): one message to one number.
//
// The platform has no idempotency key and no lookup, so a message is sent at most once: its row declares no repeats.
// Delivery receipts come to one address of the account. The driver's invariant: a message is sent again only after
// Orange's API gateway has refused the access token.
package orangesms

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/market"
	"mobilegateway/shared/msisdn"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/operator/upstream"
	"mobilegateway/shared/smstext"
	"mobilegateway/shared/strictjson"
)

// maxSenderName is the longest sender name, in characters.
const maxSenderName = 11

// Driver implements the protocol. It is safe for concurrent use.
type Driver struct{ upstream.Base }

// New makes the driver. It neither fetches nor connects yet.
func New(accounts *credentials.Reader, client *upstream.Client, tokens *upstream.Tokens) *Driver {
	return &Driver{upstream.Base{
		Accounts: accounts, Client: client, Tokens: tokens, Operation: operator.AccountSMS, Fields: accountFields(),
		Credentials: upstream.ClientCredentials{
			Path: "/oauth/v3/token", ID: "client_id", Secret: "client_secret", RenewBefore: 5 * time.Minute,
		},
	}}
}

func accountFields() []operator.AccountField {
	sms := []string{operator.AccountSMS}
	return []operator.AccountField{
		{Path: "base_url", Identity: true, NeededBy: sms, Check: operator.CheckBaseURL},
		{Path: "client_id", NeededBy: sms, Check: upstream.CheckBasicName},
		{Path: "client_secret", Secret: true, NeededBy: sms, Check: operator.CheckHeaderText},
		upstream.CallbackSecretField(operator.AccountSMS),
		{Path: "sender.*", NeededBy: sms, Check: checkSender},
		{Path: "approved_names", Check: checkApprovedNames},
	}
}

// checkSender accepts Orange's sender addresses. They are not telephone numbers of the country's plan.
func checkSender(text string) error {
	if _, isSender := msisdn.ParseSender(text); !isSender {
		return logsafe.New("is not a sender of the form tel:+2250000")
	}
	return nil
}

func checkApprovedNames(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		if operator.CheckHeaderText(name) != nil || utf8.RuneCountInString(name) > maxSenderName {
			return logsafe.New("is not names of at most 11 characters with commas between them")
		}
	}
	return nil
}

// message is the body of a request. The response has the same form, with a list as the address.
type message struct {
	Request struct {
		Address       string `json:"address"`
		SenderAddress string `json:"senderAddress"`
		SenderName    string `json:"senderName,omitempty"`
		Text          struct {
			Message string `json:"message"`
		} `json:"outboundSMSTextMessage"`
	} `json:"outboundSMSMessageRequest"`
}

// The parts of a merchant's request that the driver refuses.
const (
	partRecipient  = "X-Operator-ISE2"
	partSender     = "outboundSMSMessageRequest.senderAddress"
	partSenderName = "outboundSMSMessageRequest.senderName"
)

// newMessage makes the body. The recipient is a number of the country. The sender is the account's one of the country.
// An account with approved names takes only these; without them no name is sent. The fault names the merchant's part
// that breaks a rule, or is IntegrationRejected.
func newMessage(account credentials.Account, call operator.SMSCall) (message, *fault.Fault) {
	country, _ := market.ByAlpha2(call.Country)
	recipient, err := recipientOf(call)
	sender, approved := account.Field("sender."+country.Alpha2), account.Field("approved_names")
	names := strings.Split(approved, ",")
	switch {
	case err != nil:
		form := fmt.Sprintf("a number of %s (+%s and %d digits)", country.Name, country.CallingCode,
			country.NationalLengths[0])
		return message{}, fault.NotAllowed(partRecipient, []string{form})
	case checkSender(sender) != nil:
		cause := logsafe.New("the operator's account has no usable sender for the country")
		return message{}, &fault.Fault{Kind: fault.IntegrationRejected, Cause: cause}
	case call.Sender != sender:
		return message{}, fault.NotAllowed(partSender, []string{sender})
	case approved != "" && call.SenderName != "" && !slices.Contains(names, call.SenderName):
		return message{}, refuseName(names, call.SenderNames)
	}
	var m message
	m.Request.Address, m.Request.SenderAddress = recipient, sender
	if approved != "" {
		m.Request.SenderName = call.SenderName
	}
	m.Request.Text.Message, _ = smstext.Decode(call.Message)
	return m, nil
}

// recipientOf returns the address of the recipient, a number of the country: tel:+225...
func recipientOf(call operator.SMSCall) (string, error) {
	country, _ := market.ByAlpha2(call.Country)
	number, err := msisdn.Parse(call.ISE2, country)
	return "tel:" + number.E164(), err
}

// refuseName returns the fault of a name that is not approved. It lists those approved names that the merchant may use,
// all of them if allowed is empty.
func refuseName(approved, allowed []string) *fault.Fault {
	working := slices.DeleteFunc(slices.Clone(approved), func(name string) bool {
		return len(allowed) > 0 && !slices.Contains(allowed, name)
	})
	if len(working) == 0 {
		return fault.BrokenRule(partSenderName, logsafe.New("no name of the merchant is approved for the account"))
	}
	return fault.NotAllowed(partSenderName, working)
}

// CheckMessage implements operator.MessageChecker.
func (d *Driver) CheckMessage(ctx context.Context, call operator.SMSCall) *fault.Fault {
	return d.Check(ctx, call.Call, func(account credentials.Account) (upstream.Request, *fault.Fault) {
		_, invalid := newMessage(account, call)
		return upstream.Request{}, invalid
	})
}

// SendSMS sends a message. A success has the id that the receipts name.
func (d *Driver) SendSMS(ctx context.Context, call operator.SMSCall) operator.Result {
	if call.MayRepeat {
		return upstream.Unknown(logsafe.New("an earlier attempt may have sent the message, and orange-sms has no key"))
	}
	recipient, _ := recipientOf(call)
	return d.SendTransaction(ctx, call.Call, func(account credentials.Account) (upstream.Request, *fault.Fault) {
		body, invalid := newMessage(account, call)
		path := "/smsmessaging/v1/outbound/" + url.QueryEscape(body.Request.SenderAddress) + "/requests"
		return upstream.Request{Method: http.MethodPost, URL: path, Body: strictjson.Marshal(body)}, invalid
	}, isTokenRefusal, func(x upstream.Exchange) operator.PayResponse {
		return operator.PayResponse{Result: classifyMessage(x, recipient)}
	}).Result
}

// VerifyStaticCallback implements operator.StaticCallbackVerifier: the secret in the path is the account's. Receipts
// have no signature.
func (d *Driver) VerifyStaticCallback(ctx context.Context, callback operator.StaticCallback) (bool, error) {
	return d.VerifyCallback(ctx, callback, nil)
}

// maxDeliveryInfos bounds the delivery infos of one receipt. A message has one recipient.
const maxDeliveryInfos = 16

// ReadReceipt implements operator.ReceiptReader. callbackData is the id of the message.
func (d *Driver) ReadReceipt(body []byte) (operatorReference string, statuses []ledger.Status, ok bool) {
	doc := upstream.CallbackDocument(body)
	id := doc.Text("deliveryInfoNotification.callbackData", upstream.MaxFieldLength)
	for _, info := range doc.Objects("deliveryInfoNotification.deliveryInfo", maxDeliveryInfos) {
		status, isKnown := operator.ParseDeliveryStatus(upstream.Text(info, "deliveryStatus"))
		if !isKnown {
			return "", nil, false
		}
		statuses = append(statuses, status)
	}
	if doc.FirstFault() != nil || len(statuses) == 0 {
		return "", nil, false
	}
	return id, statuses, true
}
