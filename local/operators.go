package local

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
	"mobilegateway/world/operators/platforms"
)

// storedOperator is a platform in the operators' secret, with its accounts as they were written.
type storedOperator struct {
	Current  string                     `json:"current"`
	Accounts map[string]json.RawMessage `json:"accounts"`
}

// routesKey is the member of the operators' secret that has the routes.
const routesKey = "routes"

// mergeOperatorAccounts puts the run's accounts and routes into the operators' secret (empty for none). It replaces
// those of an earlier run, because their addresses may have changed. Accounts and routes that a person added stay, and
// so does a current account among them. A person's routes precede the run's.
func mergeOperatorAccounts(
	stored []byte, own map[string]storedOperator, routes map[string][]operator.Route,
) ([]byte, error) {
	var previous map[string]storedOperator
	var kept struct {
		Routes map[string][]operator.Route `json:"routes"`
	}
	if len(stored) > 0 && (json.Unmarshal(stored, &previous) != nil || json.Unmarshal(stored, &kept) != nil) {
		return nil, errors.New("the operators' secret is not of its form") // the parser's error may quote it
	}
	delete(previous, routesKey)
	merged := map[string]any{}
	for name, before := range previous {
		own[name] = own[name].merge(before)
	}
	for name, platform := range own {
		if len(platform.Accounts) > 0 {
			merged[name] = platform
		}
	}
	allRoutes := map[string][]operator.Route{}
	isStub := func(r operator.Route) bool { return platforms.IsStub(operator.ParsePin(r.To, "").Account) }
	for name, existing := range kept.Routes {
		allRoutes[name] = slices.DeleteFunc(existing, isStub)
	}
	for name, added := range routes {
		allRoutes[name] = append(allRoutes[name], added...)
	}
	maps.DeleteFunc(allRoutes, func(_ string, all []operator.Route) bool { return len(all) == 0 })
	if len(allRoutes) > 0 {
		merged[routesKey] = allRoutes
	}
	return json.Marshal(merged)
}

// merge adds the stored accounts of a platform to the run's own, except those of an earlier run's stubs. A current
// account that is gone is replaced.
func (o storedOperator) merge(before storedOperator) storedOperator {
	accounts := maps.Clone(before.Accounts)
	maps.DeleteFunc(accounts, func(id string, _ json.RawMessage) bool { return platforms.IsStub(id) })
	if accounts == nil {
		accounts = map[string]json.RawMessage{}
	}
	maps.Copy(accounts, o.Accounts)
	current := before.Current
	if _, found := accounts[current]; !found && len(accounts) > 0 {
		current = cmp.Or(o.Current, slices.Min(slices.Collect(maps.Keys(accounts))))
	}
	return storedOperator{current, accounts}
}

// sandboxCredentials is the operators' secret in which the sandbox is each platform that has an operator's name.
func sandboxCredentials(address, token string) map[string]storedOperator {
	senders := map[string]string{}
	for _, c := range market.All() {
		senders[c.Alpha2] = c.SenderPrefix() + "0000"
	}
	account, _ := json.Marshal(map[string]any{ // texts always marshal
		"base_url": address, "access_token": token,
		"service_id": serviceID, "application_id": applicationID, "contact_id": contactID,
		"user_sms": map[string]any{"gw_token": "gateway-gw-token", "sender": senders, "sender_name": "Gateway"},
	})
	operators := map[string]storedOperator{}
	for _, name := range operator.NamesWithPlatform() {
		operators[name] = storedOperator{Current: "local", Accounts: map[string]json.RawMessage{"local": account}}
	}
	return operators
}

// stubCredentials returns the stubs' accounts in the form of the operators' secret. The first account is the current
// one, which no route needs.
func stubCredentials(stubs platforms.Config) map[string]storedOperator {
	operators := map[string]storedOperator{}
	for platform, accounts := range stubs.Accounts() {
		stored := storedOperator{slices.Min(slices.Collect(maps.Keys(accounts))), map[string]json.RawMessage{}}
		for id, fields := range accounts {
			stored.Accounts[id], _ = json.Marshal(fields) // texts always marshal
		}
		operators[platform] = stored
	}
	return operators
}
