package accounts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/settings"
)

// ServiceView is a service of an operator, or the part of a service that a route names.
type ServiceView struct {
	Operator  string `json:"operator" col:"OPERATOR"`
	Country   string `json:"country" col:"COUNTRY"`
	Operation string `json:"operation" col:"OPERATION"`
	Channel   string `json:"channel,omitempty" col:"CHANNEL"`
}

// Text names the service: "mtn CI pay tpe".
func (v ServiceView) Text() string {
	return strings.TrimSpace(strings.Join([]string{v.Operator, v.Country, v.Operation, v.Channel}, " "))
}

func serviceOf(operatorName string, r operator.Route) ServiceView {
	return ServiceView{operatorName, r.Country, r.Operation, r.Channel}
}

// servicesOf lists all services that an operator can have.
func servicesOf(name string) (services []ServiceView) {
	for _, country := range market.Alpha2s() {
		for _, operation := range []string{operator.AccountCharge, operator.AccountPay, operator.AccountSMS} {
			channels := []string{""}
			if operation == operator.AccountPay {
				channels = operator.Channels()
			}
			for _, channel := range channels {
				services = append(services, ServiceView{name, country, operation, channel})
			}
		}
	}
	return services
}

// accountOf returns the account that new orders of a service get now, and whether a route leads to it. The pin is zero
// if they get none.
func (c Stored) accountOf(service ServiceView) (pin operator.Pin, routed bool) {
	selected, _ := c.Table().Select(operator.Service(service))
	pin = operator.ParsePin(selected.Account, selected.Platform)
	if pin.Account = cmp.Or(pin.Account, c.operators[pin.Platform].Current); pin.Account == "" {
		return operator.Pin{}, false
	}
	return pin, selected.Account != ""
}

// selectionText returns "platform/account" with "(default)" if no route leads to it, "none" for the zero pin.
func selectionText(pin operator.Pin, routed bool) string {
	switch {
	case pin.Account == "":
		return noRoute
	case routed:
		return pin.Platform + "/" + pin.Account
	}
	return pin.Platform + "/" + pin.Account + " (default)"
}

type routeCommands struct {
	Set   routeSet   `cmd:"" help:"Send an operator's new orders to an account, and show the difference."`
	List  routeList  `cmd:"" help:"List the services of operators: the account of each, and who may use it."`
	Check routeCheck `cmd:"" help:"Check each route and its account; it sends only a status lookup."`
}

const actionSetRoute = "set a route"

// noRoute is the value of --to that removes a route.
const noRoute = "none"

type routeSet struct {
	Operator  string `arg:"" help:"The operator, as mno-name."`
	Country   string `arg:"" help:"The country (alpha-2)."`
	Operation string `arg:"" enum:"charge,pay,sms" help:"charge, pay or sms."`
	Channel   string `enum:"web,tpe,ussd," default:"" placeholder:"web|tpe|ussd" help:"${route_channel_help}"`
	To        string `required:"" placeholder:"PLATFORM/ACCOUNT" help:"The account; none removes the route."`
}

// Validate refuses a channel of an operation without channels, and a value of --to of another form.
func (c *routeSet) Validate() error {
	if c.Channel != "" && c.Operation != operator.AccountPay {
		return fmt.Errorf("--channel is for pay: a %s has no channels, remove it", c.Operation)
	}
	if c.To != noRoute && !strings.Contains(c.To, "/") {
		return fmt.Errorf("--to is %q: expected platform/account, or none", c.To)
	}
	return nil
}

// Run stores the route, and shows each service that gets another account. Transactions stay with the account that they
// are pinned to.
func (c *routeSet) Run(s *session.Session, stored Stored) error {
	name := strings.ToLower(c.Operator)
	if !slices.Contains(operator.Names(), name) {
		return output.UsageError("%w", UnknownOperatorError(name))
	}
	platform, id, _ := strings.Cut(c.To, "/")
	route := operator.Route{
		Country: strings.ToUpper(c.Country), Operation: c.Operation, Channel: c.Channel,
		To: strings.ToLower(platform) + "/" + id,
	}
	if c.To == noRoute {
		route.To = noRoute
	} else if err := checkRoute(s, stored, name, route); err != nil {
		return output.UsageError("%w", err)
	}
	next, before := stored.withRoute(name, route)
	if before == route.To {
		return fmt.Errorf("nothing changes: %s leads to %s already", serviceOf(name, route).Text(), before)
	}
	changes, err := routeChanges(s, stored, next, name)
	if err != nil {
		return err
	}
	value, err := next.encode()
	if err != nil {
		return err
	}
	return s.ExecuteAndShow(actionSetRoute, serviceOf(name, route).Text(), func() (string, error) {
		return before + " -> " + route.To, s.Stores.Secrets.Put(s, stored.Secret, value)
	}, func() error { return session.ShowList(s, changes) })
}

// withRoute returns the credentials with the route in the place of the stored one, and where that one leads. Routes
// with a channel come first, because the first route that fits a service serves it.
func (c Stored) withRoute(name string, route operator.Route) (next Stored, before string) {
	before = noRoute
	routes := slices.DeleteFunc(slices.Clone(c.routes[name]), func(r operator.Route) bool {
		same := serviceOf(name, r) == serviceOf(name, route)
		if same {
			before = r.To
		}
		return same
	})
	if route.To != noRoute {
		routes = append(routes, route)
	}
	slices.SortFunc(routes, func(a, b operator.Route) int {
		return cmp.Or(cmp.Compare(a.Country, b.Country), cmp.Compare(a.Operation, b.Operation),
			cmp.Compare(b.Channel, a.Channel))
	})
	next = Stored{c.Secret, c.operators, map[string][]operator.Route{}}
	maps.Copy(next.routes, c.routes)
	next.routes[name] = routes
	if len(routes) == 0 {
		delete(next.routes, name)
	}
	return next, before
}

// checkRoute returns why a route cannot serve new orders, and what is possible; nil if it can.
func checkRoute(s *session.Session, stored Stored, name string, route operator.Route) error {
	platformName, id, _ := strings.Cut(route.To, "/")
	row, known := operator.FindCapabilities(platformName)
	service := serviceOf(name, route)
	if why := row.WhyNotOffered(operator.Service(service)); known && why != "" {
		possible := servedPlatforms(func(row operator.Capabilities) bool {
			return row.Offers(operator.Service(service))
		})
		return fmt.Errorf("%s; platforms for %s: %s", why, service.Text(), cmp.Or(output.JoinComma(possible), "none"))
	}
	schema, err := findAccountSchema(platformName)
	if err != nil {
		return err
	}
	platform := stored.operators[row.Platform]
	account, exists := platform.Accounts[id]
	if !exists {
		return fmt.Errorf("platform %s has no account %q; its accounts: %s. Add one with operator set", row.Platform,
			id, cmp.Or(output.JoinComma(slices.Sorted(maps.Keys(platform.Accounts))), "none"))
	}
	faults := schema.unusable(credentials.ReadFields(account), route.Operation, route.Country)
	if len(faults) > 0 {
		possible := slices.DeleteFunc(slices.Sorted(maps.Keys(platform.Accounts)), func(id string) bool {
			fields := credentials.ReadFields(platform.Accounts[id])
			return len(schema.unusable(fields, route.Operation, route.Country)) > 0
		})
		return fmt.Errorf("account %s cannot serve %s: %s. Change it with operator set; accounts that can: %s",
			route.To, route.Operation, strings.Join(faults, "; "), cmp.Or(output.JoinComma(possible), "none"))
	}
	return checkCallbackLength(s, row, name)
}

// maxOrderID is the length of the longest order_id (decision "pay-order-id").
const maxOrderID = 30

// checkCallbackLength refuses a platform that cannot take the longest callback address of the deployment.
func checkCallbackLength(s *session.Session, row operator.Capabilities, operatorName string) error {
	if row.MaxCallbackURL == 0 {
		return nil
	}
	base := cmp.Or(s.Getenv(settings.CallbackBaseURL), s.Getenv(settings.BaseURL))
	if base == "" {
		fmt.Fprintf(s.Stderr, "Warning: %s takes callback addresses of at most %d characters. "+
			"This could not be checked: set %s or %s.\n",
			row.Platform, row.MaxCallbackURL, settings.CallbackBaseURL, settings.BaseURL)
		return nil
	}
	path := callback.PaymentPath(operatorName, strings.Repeat("0", maxOrderID)) + "/"
	length := len(strings.TrimRight(base, "/")) + len(path) + callback.TokenLength
	if excess := length - row.MaxCallbackURL; excess > 0 {
		return fmt.Errorf("%s takes callback addresses of at most %d characters, but those below %s have up to %d: "+
			"shorten the base address by %d", row.Platform, row.MaxCallbackURL, base, length, excess)
	}
	return nil
}

// RouteChange is a service that gets another account. Live is the number of transactions that are pinned to the account
// that it leaves.
type RouteChange struct {
	ServiceView
	From string `json:"from" col:"FROM"`
	To   string `json:"to" col:"TO"`
	Live int    `json:"live_transactions" col:"LIVE"`
}

// routeChanges lists the services of an operator that get another account, or the same by a route instead of the
// default. It reports each account that they leave.
func routeChanges(s *session.Session, stored, next Stored, name string) (changes []RouteChange, err error) {
	counts, _, err := CountLive(s)
	if err != nil {
		return nil, err
	}
	left := map[operator.Pin]bool{}
	for _, service := range servicesOf(name) {
		from, fromRouted := stored.accountOf(service)
		to, toRouted := next.accountOf(service)
		if from == to && fromRouted == toRouted {
			continue
		}
		change := RouteChange{service, selectionText(from, fromRouted), selectionText(to, toRouted), 0}
		if from != to && from.Account != "" {
			change.Live = counts[AccountKey(from)]
			if !left[from] {
				fmt.Fprintf(s.Stderr, "%s stops taking new orders of the services below; its live transactions (%d) "+
					"stay with it.\n", selectionText(from, true), change.Live)
			}
			left[from] = true
		}
		changes = append(changes, change)
	}
	return changes, nil
}

type routeList struct {
	Names []string `arg:"" optional:"" name:"operator" help:"Which operators; all if none is given."`
}

// Run lists the services that have an account.
func (c *routeList) Run(s *session.Session, stored Stored, profiles []*merchant.Profile) error {
	var views []RoutedService
	for _, name := range operator.Names() {
		for _, service := range servicesOf(name) {
			pin, routed := stored.accountOf(service)
			if pin.Account == "" || len(c.Names) > 0 && !slices.Contains(c.Names, name) {
				continue
			}
			view := RoutedService{service, pin.Platform, pin.Account, "default", 0}
			if routed {
				view.By = "route"
			}
			view.Merchants = len(slices.DeleteFunc(slices.Clone(profiles), func(p *merchant.Profile) bool {
				return !p.Allows(service.Operation, service.Country, name)
			}))
			views = append(views, view)
		}
	}
	return session.ShowList(s, views)
}

// RoutedService is a service with the account of its new orders.
type RoutedService struct {
	ServiceView
	Platform  string `json:"platform" col:"PLATFORM"`
	Account   string `json:"account" col:"ACCOUNT"`
	By        string `json:"by" col:"BY"`               // route or default
	Merchants int    `json:"merchants" col:"MERCHANTS"` // active ones that may use the service
}

type routeCheck struct {
	Timeout time.Duration `default:"10s" help:"The longest wait for a response."`
}

// Run checks each route as operator route set does, and its account by a status lookup, once for each account.
func (c *routeCheck) Run(s *session.Session, stored Stored) error {
	directory := NewDirectory(s, stored.Secret.Value)
	lookup, refused := &operatorCheck{Timeout: c.Timeout}, map[operator.Pin]string{}
	var results []RouteResult
	var failed error
	for _, name := range slices.Sorted(maps.Keys(stored.routes)) {
		for _, route := range stored.routes[name] {
			result := RouteResult{ServiceView: serviceOf(name, route), To: route.To}
			if err := checkRoute(s, stored, name, route); err != nil {
				result.Error = err.Error()
			} else {
				pin := operator.ParsePin(route.To, "")
				if _, known := refused[pin]; !known {
					refused[pin] = lookup.lookUp(s, directory, pin)
				}
				result.Error = refused[pin]
			}
			if result.OK = result.Error == ""; !result.OK {
				failed = errors.New("a route does not work: see its error. " +
					"Change it with operator route set, its account with operator set")
			}
			results = append(results, result)
		}
	}
	return errors.Join(session.ShowList(s, results), failed)
}

// RouteResult is the check of one route.
type RouteResult struct {
	ServiceView
	To    string `json:"to" col:"TO"`
	OK    bool   `json:"ok" col:"OK"`
	Error string `json:"error,omitempty" col:"ERROR"`
}
