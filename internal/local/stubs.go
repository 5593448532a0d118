package local

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"mobilegateway/internal/operatorstub"
	"mobilegateway/internal/operatorstub/platforms"
	"mobilegateway/shared/operator"
)

// startStubs serves the stubs of operators' platforms if Config.Stubs is set. Their state is in memory only, and the
// secret of their callbacks is new in each run.
func (r *Gateway) startStubs(context.Context) error {
	if !r.config.Stubs {
		return nil
	}
	r.stubs = &platforms.Config{
		URL: listenerURL(r.listeners.stubs), GatewayURL: listenerURL(r.listeners.api),
		CallbackSecret: rand.Text() + rand.Text(),
		Kit:            operatorstub.Config{Speed: float64(r.config.Speed), Logf: r.console.printf},
	}
	r.serve(r.listeners.stubs, r.stubs.Handler())
	return nil
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

// removeStubAccounts removes the accounts of an earlier run's stubs, and a platform that has no others.
func removeStubAccounts(merged map[string]any, previous map[string]storedOperator) {
	for name, platform := range previous {
		before := len(platform.Accounts)
		maps.DeleteFunc(platform.Accounts, func(id string, _ json.RawMessage) bool { return platforms.IsStub(id) })
		switch len(platform.Accounts) {
		case before:
			continue
		case 0:
			delete(merged, name)
			continue
		}
		if _, found := platform.Accounts[platform.Current]; !found {
			platform.Current = slices.Min(slices.Collect(maps.Keys(platform.Accounts)))
		}
		merged[name], previous[name] = platform, platform
	}
}

// replaceStubRoutes replaces the routes to the accounts of an earlier run's stubs.
func replaceStubRoutes(merged map[string]any, stored []byte, routes map[string][]operator.Route) error {
	var kept struct {
		Routes map[string][]operator.Route `json:"routes"`
	}
	if len(stored) > 0 && json.Unmarshal(stored, &kept) != nil {
		return errors.New("the routes in the operators' secret are not of their form")
	}
	isStub := func(r operator.Route) bool { return platforms.IsStub(operator.ParsePin(r.To, "").Account) }
	for name, existing := range kept.Routes {
		others := slices.DeleteFunc(existing, isStub)
		if kept.Routes[name] = others; len(others) == 0 {
			delete(kept.Routes, name)
		}
	}
	if kept.Routes == nil {
		kept.Routes = map[string][]operator.Route{}
	}
	for name, added := range routes {
		kept.Routes[name] = append(kept.Routes[name], added...)
	}
	delete(merged, "routes")
	if len(kept.Routes) > 0 {
		merged["routes"] = kept.Routes
	}
	return nil
}
