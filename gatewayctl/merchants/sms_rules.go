package merchants

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// SMSRule is what the operator that gets a merchant's SMS in a country takes, as a text for the merchant.
type SMSRule struct {
	Country    string `json:"country"`
	Operator   string `json:"operator"`
	Recipient  string `json:"recipient"`
	Sender     string `json:"sender_address"`
	SenderName string `json:"sender_name"`
}

// smsRows shows the rules by the names of the contract.
func smsRows(rules []SMSRule) output.Table {
	return output.MapAll(rules, func(r SMSRule) []string {
		return []string{"SMS in " + r.Country, fmt.Sprintf("by %s: X-Operator-ISE2 %s; senderAddress %s; senderName %s",
			r.Operator, r.Recipient, r.Sender, r.SenderName)}
	})
}

// smsRulesOf returns the rules of the merchant's countries that have an operator for SMS. It needs the operators'
// credentials: the routes select the platform, and its account has the senders.
func smsRulesOf(s *session.Session, p *merchant.Profile) (rules []SMSRule) {
	if !slices.Contains(p.Operations, merchant.OperationSMS) {
		return nil
	}
	stored, err := accounts.ReadStored(s)
	if err != nil {
		fmt.Fprintf(s.Stderr, "The recipient and sender of an SMS are not known here: %s.\n", err)
		return nil
	}
	routes, directory := stored.Table(), accounts.NewDirectory(s, stored.Secret.Value)
	for _, code := range p.Countries {
		for _, name := range p.Operators {
			service := operator.Service{Operator: name, Country: code, Operation: operator.AccountSMS}
			if selected, found := routes.Select(service); found {
				driver, _, _ := directory.Driver(selected.Platform)
				rules = append(rules, findSMSRule(s, p, code, selected, driver))
				break // as the function selects it: the first operator that serves the country
			}
		}
	}
	return rules
}

// findSMSRule finds a platform's rule by its own check, which sends nothing: each refusal of a message lists what
// works.
func findSMSRule(
	s *session.Session, p *merchant.Profile, code string, selected operator.Selection, driver operator.Driver,
) SMSRule {
	country, _ := market.ByAlpha2(code)
	rule := SMSRule{
		Country: code, Operator: selected.Operator, Recipient: "the alias",
		Sender: country.SenderPrefix() + " and digits", SenderName: cmp.Or(output.JoinComma(p.SenderNames), "any"),
	}
	checker, isRestricted := driver.(operator.MessageChecker)
	if !isRestricted {
		return rule
	}
	call := operator.SMSCall{Sender: rule.Sender, SenderName: rule.SenderName, SenderNames: p.SenderNames}
	pin := operator.ParsePin(selected.Account, selected.Platform)
	call.Platform, call.AccountID, call.Country = pin.Platform, pin.Account, code
	for range 3 { // a recipient, a sender and a name that no platform takes
		refused := checker.CheckMessage(s, call)
		if refused == nil {
			break
		}
		works := cmp.Or(refused.Value, "none works: "+refused.Error())
		switch refused.Part[strings.LastIndex(refused.Part, ".")+1:] {
		case "X-Operator-ISE2":
			rule.Recipient = works
			call.ISE2 = "+" + country.CallingCode + strings.Repeat("7", country.NationalLengths[0])
		case "senderName":
			rule.SenderName, call.SenderName = works, ""
		default: // senderAddress, or the account lacks one
			rule.Sender, call.Sender = works, works
		}
	}
	return rule
}
