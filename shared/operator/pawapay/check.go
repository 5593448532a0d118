package pawapay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
)

// activeConf is the part of an account's active configuration that payments depend on.
type activeConf struct {
	Signatures struct {
		SignedRequestsOnly bool `json:"signedRequestsOnly"`
	} `json:"signatureConfiguration"`
	Countries []struct {
		Providers []struct {
			Provider   string `json:"provider"`
			Currencies []struct {
				Currency   string                `json:"currency"`
				Operations map[string]walletConf `json:"operationTypes"`
			} `json:"currencies"`
		} `json:"providers"`
	} `json:"countries"`
}

// walletConf is the configuration of the deposits from a wallet in one currency.
type walletConf struct {
	AuthType     string          `json:"authType"`
	PINPrompt    string          `json:"pinPrompt"`
	Instructions json.RawMessage `json:"pinPromptInstructions"`
	MinAmount    string          `json:"minAmount"`
	MaxAmount    string          `json:"maxAmount"`
	Decimals     string          `json:"decimalsInAmount"`
	Status       string          `json:"status"`
}

// CheckAccount implements operator.AccountChecker by the account's active configuration.
func (d *Driver) CheckAccount(
	ctx context.Context, call operator.Call, services []operator.Service,
) (notes []string, err error) {
	x, unsent := d.Send(ctx, call, upstream.Get("/v2/active-conf?operationType=DEPOSIT"), isTokenRefused)
	if unsent != nil {
		return nil, unsent
	}
	var conf activeConf
	if !x.IsSuccess() || json.Unmarshal(x.Body, &conf) != nil {
		return nil, errors.Join(logsafe.Errorf("the active configuration responded %d %s", x.Status, failureCode(x)),
			x.Err)
	}
	if conf.Signatures.SignedRequestsOnly {
		err = logsafe.New("the account takes only signed requests: switch that off in the dashboard")
	}
	row, _ := operator.FindCapabilities(call.Platform)
	for _, s := range services {
		note, different := conf.compare(row, s)
		notes, err = append(notes, note), errors.Join(err, different)
	}
	return notes, err
}

// compare compares the deposits of a wallet with the row, and describes them.
func (c activeConf) compare(row operator.Capabilities, s operator.Service) (note string, err error) {
	name, needsOTP := provider(s.Operator, s.Country)
	country, _ := market.ByAlpha2(s.Country)
	wallet, found := c.find(name, country.Currency)
	if !found {
		err = logsafe.Errorf("%s takes no deposits in %s", name, country.Currency)
		return err.Error(), err
	}
	shortCode, wanted := row.ShortCode(s.Operator, s.Country), "PROVIDER_AUTH AUTOMATIC"
	switch {
	case needsOTP:
		wanted = "PREAUTH"
	case shortCode != "":
		wanted = "PROVIDER_AUTH MANUAL"
	}
	prompt := strings.TrimSpace(wallet.AuthType + " " + wallet.PINPrompt)
	if prompt != wanted {
		err = logsafe.Errorf("%s: the payer's approval is %s, and %s in the row", name, prompt, wanted)
	} else if !strings.Contains(string(wallet.Instructions), shortCode) {
		err = logsafe.Errorf("%s: the payer does not dial %s, which is in the row", name, shortCode)
	}
	if country.Exponent > 0 && wallet.Decimals != "TWO_PLACES" {
		err = errors.Join(err, logsafe.Errorf("%s takes no decimals in %s", name, country.Currency))
	}
	return fmt.Sprintf("%s takes %s to %s %s, is %s, and the payer's approval is %s %s", name, wallet.MinAmount,
		wallet.MaxAmount, country.Currency, wallet.Status, prompt, shortCode), err
}

// find returns the deposits of a wallet in a currency; false if the account has none.
func (c activeConf) find(name, currency string) (walletConf, bool) {
	for _, country := range c.Countries {
		for _, p := range country.Providers {
			for _, entry := range p.Currencies {
				wallet, found := entry.Operations["DEPOSIT"]
				if found && p.Provider == name && entry.Currency == currency {
					return wallet, true
				}
			}
		}
	}
	return walletConf{}, false
}
