// Package platforms serves the stubs of all platforms on one port, and lists the accounts and routes with which a
// gateway uses them. It never ships.
//
// Each stub is below the prefix of its platform, with its control paths: /mtn/stub/v1/effects. The invariant: every
// account and route that it lists is for a stub that it serves.
package platforms

import (
	"net/http"
	"strings"

	"mobilegateway/shared/operator"
	"mobilegateway/world/operators/flouci"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/mtn"
	"mobilegateway/world/operators/orangecm"
	"mobilegateway/world/operators/orangesms"
	"mobilegateway/world/operators/orangewebpay"
	"mobilegateway/world/operators/pawapay"
	"mobilegateway/world/operators/wave"
)

// Config is the settings of the stubs. All are required, except Kit.
type Config struct {
	// URL is the address of the stubs, GatewayURL that of the gateway's API: both without a slash at the end.
	URL, GatewayURL string
	// CallbackSecret is the last segment of the static callbacks' addresses: at least 32 letters or digits.
	CallbackSecret string
	// Kit has the settings of every stub.
	Kit kit.Config
}

// account is the id of an account that serves all countries of its platform. accountPrefix begins the others' ids.
const (
	account       = "stub"
	accountPrefix = account + "-"
)

// IsStub reports whether an account's id is one that Accounts gives.
func IsStub(id string) bool { return id == account || strings.HasPrefix(id, accountPrefix) }

// accountOf is the id of the account for a country (alpha-2).
func accountOf(country string) string { return accountPrefix + strings.ToLower(country) }

// staticCallback is the address of static callbacks of an account. kind is payments or receipts.
func (c Config) staticCallback(kind, platform, id string) string {
	return strings.Join([]string{c.GatewayURL, "callbacks/v1/accounts", kind, platform, id, c.CallbackSecret}, "/")
}

// credentials are those of the stubs that are not the defaults.
type credentials struct {
	pawapay pawapay.Credentials
	wave    wave.Credentials
	webpay  orangewebpay.Credentials
	sms     orangesms.Credentials
	flouci  flouci.Credentials
}

func (c Config) credentials() credentials {
	all := credentials{pawapay.DefaultCredentials(), wave.DefaultCredentials(), orangewebpay.DefaultCredentials(),
		orangesms.DefaultCredentials(), flouci.DefaultCredentials()}
	all.pawapay.CallbackURL = c.staticCallback("payments", "pawapay", account)
	all.wave.PageURL, all.wave.LocalURLs = c.URL+"/wave", true
	for i, wallet := range all.wave.Wallets {
		all.wave.Wallets[i].WebhookURL = c.staticCallback("payments", "wave-checkout", accountOf(country(wallet)))
	}
	all.webpay.PageURL, all.webpay.LocalURLs = c.URL+"/orangewebpay", true
	all.flouci.PageURL = c.URL + "/flouci"
	all.sms.ReceiptURL = c.staticCallback("receipts", "orange-sms", account)
	for i, sender := range all.sms.Senders {
		all.sms.Senders[i].Names = append(sender.Names, demoName)
	}
	return all
}

// country is the country in the name of one of the default wallets, "Stub shop CI".
func country(w wave.Wallet) string { return w.Name[len(w.Name)-2:] }

// demoName is the sender's name of the local run's examples, beside the stub's own.
const demoName = "Demo"

// Handler serves all stubs.
func (c Config) Handler() http.Handler {
	mux, all := http.NewServeMux(), c.credentials()
	for prefix, stub := range map[string]http.Handler{
		"/mtn":          mtn.New(c.Kit, mtn.DefaultCredentials()).Handler(),
		"/pawapay":      pawapay.New(c.Kit, all.pawapay).Handler(),
		"/wave":         wave.New(c.Kit, all.wave).Handler(),
		"/orangewebpay": orangewebpay.New(c.Kit, all.webpay).Handler(),
		"/orangecm":     orangecm.New(c.Kit, orangecm.DefaultCredentials()).Handler(),
		"/orangesms":    orangesms.New(c.Kit, all.sms).Handler(),
		"/flouci":       flouci.New(c.Kit, all.flouci).Handler(),
	} {
		mux.Handle(prefix+"/", http.StripPrefix(prefix, stub))
	}
	return mux
}

// Accounts returns the accounts by platform and id, with their fields as the operators' credentials have them.
func (c Config) Accounts() map[string]map[string]map[string]any {
	ours := c.credentials()
	all := map[string]map[string]map[string]any{
		"mtn-momo": {}, "wave-checkout": {}, "orange-webpay": {},
		"pawapay": {account: {
			"base_url": c.URL + "/pawapay", "access_token": ours.pawapay.APIToken, "callback_secret": c.CallbackSecret,
		}},
		"orange-sms": {account: c.smsAccount(ours.sms)},
		"flouci-checkout": {account: {
			"base_url": c.URL + "/flouci", "public_key": ours.flouci.PublicKey, "private_key": ours.flouci.PrivateKey,
		}},
	}
	for country, environment := range map[string]string{"CI": "mtnivorycoast", "CM": "mtncameroon"} {
		m := mtn.DefaultCredentials()
		all["mtn-momo"][accountOf(country)] = map[string]any{
			"base_url": c.URL + "/mtn", "api_user": m.APIUser, "api_key": m.APIKey,
			"subscription_key": m.SubscriptionKeys[0], "target_environment": environment,
		}
	}
	for _, w := range ours.wave.Wallets {
		all["wave-checkout"][accountOf(country(w))] = map[string]any{
			"base_url": c.URL + "/wave", "access_token": w.APIKey, "callback_secret": c.CallbackSecret,
			"webhook_secrets": map[string]any{"first": w.WebhookSecrets[0]},
		}
	}
	for segment, a := range ours.webpay.Accounts {
		if segment != "dev" {
			all["orange-webpay"][accountOf(segment)] = map[string]any{
				"base_url": c.URL + "/orangewebpay", "segment": segment, "merchant_key": a.MerchantKey,
				"client_id": a.ClientID, "client_secret": a.ClientSecret,
			}
		}
	}
	o := orangecm.DefaultCredentials()
	all["orange-cm"] = map[string]map[string]any{account: {
		"base_url": c.URL + "/orangecm", "consumer_key": o.ConsumerKey, "consumer_secret": o.ConsumerSecret,
		"api_user": o.APIUser, "api_password": o.APIPassword, "channel_msisdn": o.ChannelMSISDN, "pin": o.PIN,
	}}
	return all
}

func (c Config) smsAccount(credentials orangesms.Credentials) map[string]any {
	senders := map[string]any{}
	alpha2 := map[string]string{"CIV": "CI", "SEN": "SN", "CMR": "CM", "BFA": "BF", "COD": "CD", "TUN": "TN"}
	for _, sender := range credentials.Senders {
		senders[alpha2[sender.Country]] = sender.Address
	}
	return map[string]any{
		"base_url": c.URL + "/orangesms", "client_id": credentials.ClientID,
		"client_secret": credentials.ClientSecret, "callback_secret": c.CallbackSecret, "sender": senders,
		"approved_names": strings.Join(credentials.Senders[0].Names, ","),
	}
}

// routeTable is what the stubs serve: the operator, the operation, the countries and the account, in which * is that of
// the country.
var routeTable = [][4]string{
	{"mtn", operator.AccountPay, "CI CM", "mtn-momo/*"},
	{"orange", operator.AccountPay, "CI BF CM SN", "orange-webpay/*"},
	{"orange", operator.AccountPay, "CM", "orange-cm/" + account},
	{"orange", operator.AccountPay, "CI CD SN BF", "pawapay/" + account},
	{"orange", operator.AccountSMS, "CI CD CM SN TN BF", "orange-sms/" + account},
	{"wave", operator.AccountPay, "SN CI BF", "wave-checkout/*"},
	{"moov", operator.AccountPay, "BF", "pawapay/" + account},
	{"airtel", operator.AccountPay, "CD", "pawapay/" + account},
	{"vodacom", operator.AccountPay, "CD", "pawapay/" + account},
	{"free", operator.AccountPay, "SN", "pawapay/" + account},
	{"flouci", operator.AccountPay, "TN", "flouci-checkout/" + account},
}

// Routes returns the routes to the accounts by operator. A route has no channel: it is for those of its platform.
func Routes() map[string][]operator.Route {
	routes := map[string][]operator.Route{}
	for _, row := range routeTable {
		for country := range strings.FieldsSeq(row[2]) {
			to := strings.Replace(row[3], "*", accountOf(country), 1)
			routes[row[0]] = append(routes[row[0]], operator.Route{Country: country, Operation: row[1], To: to})
		}
	}
	return routes
}
