package gatewayctl

import (
	"errors"
	"maps"
	"slices"
	"time"

	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/secret"
)

type routeList struct {
	Names []string `arg:"" optional:"" name:"operator" help:"Which operators; all if none is given."`
}

// routedService is a service with the account of its new orders.
type routedService struct {
	serviceView
	Platform  string `json:"platform" col:"PLATFORM"`
	Account   string `json:"account" col:"ACCOUNT"`
	By        string `json:"by" col:"BY"`               // route or default
	Merchants int    `json:"merchants" col:"MERCHANTS"` // active ones that may use the service
}

// Run lists the services that have an account.
func (c *routeList) Run(s *session, stored storedCredentials) error {
	profiles, err := s.allMerchants()
	if err != nil {
		return err
	}
	var views []routedService
	for _, name := range operator.Names() {
		for _, service := range servicesOf(name) {
			pin, routed := stored.accountOf(service)
			if pin.Account == "" || len(c.Names) > 0 && !slices.Contains(c.Names, name) {
				continue
			}
			view := routedService{service, pin.Platform, pin.Account, "default", 0}
			if routed {
				view.By = "route"
			}
			view.Merchants = len(slices.DeleteFunc(slices.Clone(profiles), func(p *merchant.Profile) bool {
				return !p.Allows(service.Operation, service.Country, name)
			}))
			views = append(views, view)
		}
	}
	return showList(s, views)
}

type routeCheck struct {
	Timeout time.Duration `default:"10s" help:"The longest wait for a response."`
}

// routeResult is the result for one route.
type routeResult struct {
	serviceView
	To    string `json:"to" col:"TO"`
	OK    bool   `json:"ok" col:"OK"`
	Error string `json:"error,omitempty" col:"ERROR"`
}

var errRouteCheck = errors.New("a route does not work: see its error. " +
	"Change it with operator route set, its account with operator set")

// Run checks each route as operator route set does, and its account by a status lookup, once for each account.
func (c *routeCheck) Run(s *session, stored storedCredentials) error {
	directory := drivers.NewDirectory(secret.Static(stored.secret.Value), nil, s.Now)
	lookup, refused := &operatorCheck{Timeout: c.Timeout}, map[operator.Pin]string{}
	var results []routeResult
	var failed error
	for _, name := range slices.Sorted(maps.Keys(stored.routes)) {
		for _, route := range stored.routes[name] {
			result := routeResult{serviceView: serviceOf(name, route), To: route.To}
			if err := s.checkRoute(stored, name, route); err != nil {
				result.Error = err.Error()
			} else {
				pin := operator.ParsePin(route.To, "")
				row, _ := operator.FindCapabilities(pin.Platform)
				if _, known := refused[pin]; !known {
					account := accountView{Operator: pin.Platform, Account: pin.Account}
					refused[pin] = lookup.lookUp(s, directory, row, account)
				}
				result.Error = refused[pin]
			}
			if result.OK = result.Error == ""; !result.OK {
				failed = errRouteCheck
			}
			results = append(results, result)
		}
	}
	return errors.Join(showList(s, results), failed)
}
