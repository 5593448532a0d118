package simulate

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/gatewayctl"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/keyring"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/webhook"
	model "mobilegateway/world/dynamodb"
)

// The names of the tables and secrets of a world.
const (
	ledgerTable    = "ledger"
	merchantTable  = "merchants"
	limitTable     = "limits"
	operatorSecret = "operators"
	tokenSecret    = "token-keys"
	publicSecret   = "token-public-keys"
	callbackSecret = "callback-keys"
	webhookSecret  = "webhook-keys"
)

// operatorToken is the access token of the gateway at every operator.
const operatorToken = "operator-access-token"

// dailyLimit is the daily amount of the second shop in each currency, in minor units.
const dailyLimit = 1_000

// shop is a merchant of a world.
type shop struct {
	outside.Shop
	host    string // of its server
	profile *merchant.Profile
	token   string
	secret  string // signs its notifications
	// clientSecret is what the merchant gets short-lived tokens for.
	clientSecret string
	limited      bool
}

// blueprint is what every world begins with. It is made once, and only its tools change.
type blueprint struct {
	database *model.Database
	secrets  map[string][]byte
	shops    []*shop
	tools    sync.Pool // of gatewayctl, that no command uses: to make one takes longer than a command
}

// variables are the environment of every function.
var variables = map[string]string{
	settings.StackName: "simulated", settings.LedgerTable: ledgerTable, settings.MerchantTable: merchantTable,
	settings.LimitTable: limitTable, settings.OperatorCredentialsSecret: operatorSecret,
	settings.TokenKeySecret: tokenSecret, settings.TokenPublicKeySecret: publicSecret,
	settings.CallbackKeySecret: callbackSecret,
	settings.WebhookKeySecret:  webhookSecret, settings.BaseURL: outside.APIBaseURL,
	settings.ServiceID: "SERVICE-1", settings.ApplicationID: "APP-1", settings.ContactID: "CONTACT-1",
	settings.WarmConnections: "false",
}

// must returns a value that our own constants cannot fail to make.
func must[T any](value T, err error) T {
	mustSucceed(err)
	return value
}

func mustSucceed(err error) {
	if err != nil {
		panic(err)
	}
}

// newBlueprint makes the tables, the secrets and the merchants.
func newBlueprint() *blueprint {
	b := &blueprint{database: model.New(time.Now), secrets: map[string][]byte{}}
	b.tools.New = func() any { return must(gatewayctl.NewTool()) }
	createTables(b.database)
	random := tape.FromSeed(1)
	pair := must(keyring.Pair{}.AddKey(random, history.Start.Add(-24*time.Hour)))
	b.secrets[tokenSecret], b.secrets[publicSecret] = pair.Private, pair.Public
	for _, name := range []string{callbackSecret, webhookSecret} {
		b.secrets[name] = must(keyring.AddKey(nil, random, history.Start.Add(-24*time.Hour)))
	}
	b.secrets[operatorSecret] = operatorCredentials(operatorToken)
	for _, name := range []string{"OpenShop", "LimitShop"} {
		b.shops = append(b.shops, b.addShop(name, random))
	}
	return b
}

func createTables(database *model.Database) {
	ledger := ledgerdynamo.Schema(ledgerTable)
	ledger.StreamSpecification = &types.StreamSpecification{
		StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage,
	}
	mustSucceed(database.CreateTable(ledger, ledgerdynamo.TimeToLive))
	for _, name := range []string{merchantTable, limitTable} {
		mustSucceed(database.CreateTable(&dynamodb.CreateTableInput{
			TableName: aws.String(name),
			AttributeDefinitions: []types.AttributeDefinition{
				{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
			},
			KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
		}, ledgerdynamo.TimeToLive))
	}
}

// senders are the operators' sender addresses of the payer's SMS by country.
func senders() map[string]string {
	all := map[string]string{}
	for _, country := range market.All() {
		all[country.Alpha2] = country.SenderPrefix() + "0000"
	}
	return all
}

func operatorNames() []string { return operator.NamesWithPlatform() }

func operatorHost(name string) string { return name + ".operator.example.net" }

// addShop onboards a merchant. The one with the name LimitShop has a daily amount.
func (b *blueprint) addShop(name string, random *tape.Tape) *shop {
	now := history.Start.Add(-time.Hour)
	profile := must(merchant.New(name, random, now))
	s := &shop{profile: profile, host: name + ".example.com", limited: name == "LimitShop"}
	profile.Operations = []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS}
	profile.Countries, profile.Operators = market.Alpha2s(), operator.Names()
	profile.OnBehalfOf = []string{name}
	profile.NotificationHosts, profile.NotifURL = []string{s.host}, "https://"+s.host+"/provisioned"
	profile.ChargeNotif = true
	if s.limited {
		profile.DailyAmounts = map[string]int64{}
		for _, country := range market.All() {
			profile.DailyAmounts[country.Currency] = dailyLimit
		}
	}
	s.token = must(merchant.LongLivedToken.Issue(profile, random, now))
	s.clientSecret = must(merchant.ClientSecret.Issue(profile, random, now))
	key := must(keyring.Parse(b.secrets[webhookSecret])).SigningKey(now, 0)
	issued := must(merchant.IssueWebhookSecret(profile, key.Number, false, now))
	s.secret = webhook.DeriveSecret(key, profile.ID, issued.Version).Text()
	s.Shop = outside.Shop{
		Name: name, ServiceID: "SERVICE-1", ApplicationID: "APP-1", ContactID: "CONTACT-1", OnBehalfOf: name,
		SenderName: "SHOP",
		NotifyURL:  "https://" + s.host + "/notify", Operators: operator.NamesWithPlatform(),
		Countries: market.Alpha2s(),
	}
	registry := merchantdynamo.NewRegistry(model.NewClient(b.database), merchantTable)
	mustSucceed(registry.Create(context.Background(), profile))
	return s
}
