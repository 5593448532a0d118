// Command client is a small merchant client over the package that openapi-generator generates from docs/openapi.yaml
// in the folder gateway. It runs against the local run whose run.json is in CONTRACT_RUN.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	gateway "client/gateway"
)

// local has the fields of the local run's run.json.
type local struct {
	BaseURL       string `json:"base_url"`
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
	Merchant      string `json:"merchant"`
	OnBehalfOf    string `json:"on_behalf_of"`
	ServiceID     string `json:"service_id"`
	ApplicationID string `json:"application_id"`
	ContactID     string `json:"contact_id"`
	Token         string `json:"gw_token"`
	Alias         string `json:"gw_alias"`
}

// must ends the program if a condition is false.
func must(condition bool, what ...any) {
	if !condition {
		fmt.Fprintln(os.Stderr, what...)
		os.Exit(1)
	}
}

// data returns the value of a response, which must have a request id.
func data[T any](value T, response *http.Response, err error) T {
	must(err == nil && response.Header.Get("x-amzn-requestid") != "", response, err)
	return value
}

func amount(text string) gateway.Amount { return gateway.StringAsAmount(&text) }

func main() {
	var run local
	must(json.Unmarshal([]byte(os.Getenv("CONTRACT_RUN")), &run) == nil, "no run")
	configuration := gateway.NewConfiguration()
	configuration.Servers = gateway.ServerConfigurations{{URL: run.BaseURL}}
	client, key := gateway.NewAPIClient(configuration), strconv.FormatInt(time.Now().UnixMicro(), 10)
	ctx := authenticate(client, run)
	pay(ctx, client, run, run.Merchant+"_"+key)
	charge(ctx, client, run, key)
	send(ctx, client, run, key)
}

// authenticate gets a token by client credentials.
func authenticate(client *gateway.APIClient, run local) context.Context {
	credentials := gateway.BasicAuth{UserName: run.ClientID, Password: run.ClientSecret}
	basic := context.WithValue(context.Background(), gateway.ContextBasicAuth, credentials)
	token := data(client.TokenAPI.IssueToken(basic).GrantType2("client_credentials").Execute())
	return context.WithValue(context.Background(), gateway.ContextAccessToken, token.AccessToken)
}

// pay creates a payment by USSD and looks it up. Another request with the same order_id must be an error.
// Then pay creates a payment page.
func pay(ctx context.Context, client *gateway.APIClient, run local, order string) {
	purchase := gateway.NewPaymentRequest(gateway.XOF, order, amount("100"),
		"https://shop.example.com/return", "https://shop.example.com/cancel", run.Merchant, "client")
	purchase.SetUserMsisdn("+2250700002000")
	request := client.MobileMoneyAPI.Pay(ctx).MnoName("sandbox").CountryCode("CI").Lang("fr").PaymentRequest(*purchase)
	payment := data(request.Channel(gateway.USSD).Execute()).TerminalPayment
	must(payment != nil && payment.OrderId == order && payment.Meta.Source == gateway.SANDBOX, payment)
	status := data(client.MobileMoneyAPI.GetPaymentStatus(ctx, order).Execute())
	must(status.TransactionId == payment.TransactionId, status)
	purchase.Amount = amount("200")
	_, response, err := request.Channel(gateway.USSD).PaymentRequest(*purchase).Execute()
	refused, _ := err.(*gateway.GenericOpenAPIError)
	must(refused != nil && response.StatusCode == http.StatusConflict, response, err)
	taken := refused.Model().(gateway.Error409)
	exception := taken.RequestError.ServiceException
	must(exception.MessageId == "SVC0005" && exception.Variables[0] == order, taken)
	purchase.OrderId = order + "0"
	page := data(request.Channel(gateway.WEB).PaymentRequest(*purchase).Execute()).PaymentPage
	must(page != nil && page.PaymentUrl != "", page)
}

// charge creates a charge and looks it up.
func charge(ctx context.Context, client *gateway.APIClient, run local, key string) {
	information := gateway.NewChargeRequestAmountTransactionPaymentAmountChargingInformation(
		amount("100"), gateway.XOF, "A song")
	service := gateway.NewChargeRequestAmountTransactionPaymentAmountChargingMetaData(run.OnBehalfOf, run.ServiceID)
	payment := gateway.NewChargeRequestAmountTransactionPaymentAmount(*information, *service)
	transaction := gateway.NewChargeRequestAmountTransaction("acr:OperatorAPIToken", *payment, "Charged", key)
	transaction.SetClientCorrelator(key)
	request := client.ChargeAPI.Charge(ctx).GwToken(run.Token).GwAlias(run.Alias)
	made := data(request.ChargeRequest(*gateway.NewChargeRequest(*transaction)).Execute()).AmountTransaction
	found := data(client.ChargeAPI.GetCharge(ctx, made.ServerReferenceCode).Execute()).AmountTransaction
	must(*found.PaymentAmount.TotalAmountCharged.String == "100", found)
}

// send sends an SMS and looks up its delivery.
func send(ctx context.Context, client *gateway.APIClient, run local, key string) {
	text := gateway.NewSmsRequestOutboundSMSMessageRequestOutboundSMSTextMessage("Bonjour")
	message := gateway.NewSmsRequestOutboundSMSMessageRequest(
		[]gateway.Recipient{gateway.ACR_X_OPERATOR_ISE2}, "tel:+2250000", *text, "DEMO", key)
	request := client.SMSAPI.SendSms(ctx, "tel:+2250000").
		XOAPIApplicationId(run.ApplicationID).XOAPIContactId(run.ContactID).XOAPIResourceType("SMS_OSM").
		GwAlias(run.Alias).GwToken(run.Token).XOperatorMCO(gateway.OCI)
	sent := data(request.SmsRequest(*gateway.NewSmsRequest(*message)).Execute()).OutboundSMSMessageRequest
	resource, err := url.Parse(sent.ResourceURL)
	must(err == nil, err)
	segments := strings.Split(resource.Path, "/")
	lookup := client.SMSAPI.GetDeliveryInfos(ctx, "tel:+2250000", segments[len(segments)-2])
	delivery := data(lookup.Execute()).DeliveryInfoList
	must(delivery.DeliveryInfo[0].DeliveryStatus != "", delivery)
}
