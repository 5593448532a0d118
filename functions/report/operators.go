package report

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/circuit"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/strictjson"
)

// Accounts reads the deployment's routes and accounts. It needs no driver, because nothing is called.
type Accounts interface {
	operator.RouteReader
	// Find returns a platform's account by its id, the current one for "".
	Find(ctx context.Context, platform, id string) (credentials.Account, error)
}

// The health of a service.
const (
	healthAvailable = "available"
	healthDegraded  = "degraded" // calls fail, or only a few pass as probes
	healthRefused   = "refused"  // new transactions get 503, or 502 without a usable account
)

// The ways in which a payer approves a payment.
const (
	approvalPage      = "page"          // on the page of payment_url
	approvalPush      = "push"          // in a message that the phone shows by itself
	approvalShortCode = "short-code"    // after dialling ShortCode, which the merchant shows
	approvalCode      = "one-time-code" // by a code that OneTimeCodeDial makes before the payment
)

// The rules for otp_code.
const (
	codeRequired = "required"
	codeOptional = "optional"
	codeUnused   = "unused"
	codeOnPage   = "on-page" // the payer types a code on the page, and the request has none
)

// service is one operator in one country, for one operation and channel. Amounts are integers in minor units.
type service struct {
	Operator  string `json:"operator"`
	Country   string `json:"country"`
	Operation string `json:"operation"`
	Channel   string `json:"channel,omitempty"`
	Health    string `json:"health"`
	// RetryAfter is when a refused service may take transactions again, in seconds; absent if that is not known.
	RetryAfter int    `json:"retry_after,omitempty"`
	Currency   string `json:"currency,omitempty"`
	Decimals   *int   `json:"decimals,omitempty"`
	// AmountIsMinorUnits is true where a charge's amount counts minor units (decision "charge-odc-unit").
	AmountIsMinorUnits bool  `json:"amount_is_minor_units,omitempty"`
	MinMinorUnits      int64 `json:"min_minor_units,omitempty"`   // of one payment; absent for no known bound
	MaxMinorUnits      int64 `json:"max_minor_units,omitempty"`   // as MinMinorUnits
	DailyMinorUnits    int64 `json:"daily_minor_units,omitempty"` // the merchant's own limit of a UTC day
	// Approval and OneTimeCode are of payments.
	Approval    string `json:"approval,omitempty"`
	ShortCode   string `json:"short_code,omitempty"`
	OneTimeCode string `json:"one_time_code,omitempty"`
	// OneTimeCodeDial is what the payer dials to make a required code, with {amount} for the amount.
	OneTimeCodeDial string `json:"one_time_code_dial,omitempty"`

	circuit circuit.Key // without an account: none is usable
}

// ListOperators returns the merchant's operators by country, operation and channel, with their health of now.
func (h *Handler) ListOperators(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	profile, err := operation.Authenticate(ctx, req, h.Merchants, h.RateLimiter)
	if err != nil {
		return apigw.Response{}, err
	}
	if reason := profile.ReasonNotAllowed(merchant.OperationOperators, "", ""); reason != nil {
		return apigw.Response{}, fault.NotEntitled(reason)
	}
	routes, err := h.Accounts.Routes(ctx)
	if err != nil {
		return apigw.Response{}, err
	}
	services := []service{}
	accounts := map[string]string{}
	for _, selected := range selections(profile, routes) {
		s := newService(selected, profile)
		if account := h.accountOf(ctx, selected.Selection, accounts); account != "" {
			s.circuit = circuit.Key{Account: account, Operation: selected.Operation}
		}
		services = append(services, s)
	}
	h.addHealth(ctx, services)
	body := strictjson.Marshal(map[string][]service{"operators": services})
	return apigw.Response{Status: http.StatusOK, Body: body}, nil
}

// selection is what the gateway selects for a service of the merchant.
type selection struct {
	operator.Selection
	operator.Service
}

// selections lists the services of a profile that have a platform, in the order of the profile. A charge and an SMS
// name no operator: they get the first one that serves the country (decision "charge-country").
func selections(p *merchant.Profile, routes operator.Routes) []selection {
	var found []selection
	for _, country := range p.Countries {
		for _, name := range p.Operations {
			if !slices.Contains(operations, name) {
				continue
			}
			for _, operatorName := range p.Operators {
				channels := routes.Channels(operatorName, country, name)
				for _, channel := range channels {
					s := operator.Service{
						Operator: strings.ToLower(operatorName), Country: country, Operation: name, Channel: channel,
					}
					selected, _ := routes.Select(s)
					found = append(found, selection{selected, s})
				}
				if len(channels) > 0 && name != merchant.OperationPay {
					break
				}
			}
		}
	}
	return found
}

// newService describes a service without its health.
func newService(selected selection, p *merchant.Profile) service {
	of, row := selected.Service, selected.Capabilities
	s := service{Operator: of.Operator, Country: of.Country, Operation: of.Operation, Channel: of.Channel}
	if of.Operation == merchant.OperationSMS {
		return s
	}
	country, _ := market.ByAlpha2(of.Country)
	s.Currency, s.Decimals = country.Currency, &country.Exponent
	s.AmountIsMinorUnits = country.ChargesInMinorUnits && of.Operation == merchant.OperationCharge
	s.DailyMinorUnits = p.DailyAmounts[country.Currency]
	if of.Operation != merchant.OperationPay {
		return s
	}
	s.MinMinorUnits, s.MaxMinorUnits = row.Amounts.Min, row.Amounts.Max
	s.ShortCode = row.ShortCode(of.Operator, of.Country)
	s.OneTimeCodeDial = row.CodeFirst(of.Operator, of.Country)
	s.OneTimeCode = codeRule(of, row)
	switch {
	case of.Channel == "web":
		s.Approval, s.ShortCode, s.OneTimeCodeDial = approvalPage, "", ""
	case s.OneTimeCodeDial != "":
		s.Approval = approvalCode
	case s.ShortCode != "":
		s.Approval = approvalShortCode
	default:
		s.Approval = approvalPush
	}
	return s
}

// codeRule returns the rule for the one-time code of a payment.
func codeRule(of operator.Service, row operator.Capabilities) string {
	switch {
	case of.Channel == "web" && row.PageTakesCode:
		return codeOnPage
	case of.Channel == "web":
		return codeUnused
	case row.CodeFirst(of.Operator, of.Country) != "", row.OTPRule == operator.OTPRequired:
		return codeRequired
	case len(row.CodesFirst) > 0, row.OTPRule == operator.OTPUnused:
		return codeUnused
	default:
		return codeOptional
	}
}

// accountOf returns the account of a selection as "platform/id", "" for none. known are the current accounts that were
// found, by platform.
func (h *Handler) accountOf(ctx context.Context, selected operator.Selection, known map[string]string) string {
	pin := operator.Pin{Platform: selected.Platform}
	if selected.Account != "" {
		pin = operator.ParsePin(selected.Account, selected.Operator)
	}
	account, found := known[pin.String()]
	if !found {
		if usable, err := h.Accounts.Find(ctx, pin.Platform, pin.Account); err == nil {
			account = operator.Pin{Platform: pin.Platform, Account: usable.ID}.String()
		}
		known[pin.String()] = account
	}
	return account
}

// maxCircuitReads is the number of circuits that are read at once.
const maxCircuitReads = 8

// addHealth reads the circuits of the services, each once, and sets their health.
func (h *Handler) addHealth(ctx context.Context, services []service) {
	now := h.Now()
	var keys []circuit.Key
	for _, s := range services {
		if s.circuit.Account != "" && !slices.Contains(keys, s.circuit) {
			keys = append(keys, s.circuit)
		}
	}
	summaries := make([]circuit.Summary, len(keys))
	var group sync.WaitGroup
	for first := range min(maxCircuitReads, len(keys)) {
		group.Go(func() {
			for i := first; i < len(keys); i += maxCircuitReads {
				summaries[i] = h.readCircuit(ctx, keys[i], now)
			}
		})
	}
	group.Wait()
	for i := range services {
		var found circuit.Summary
		if at := slices.Index(keys, services[i].circuit); at >= 0 {
			found = summaries[at]
		}
		services[i].setHealth(found, now)
	}
}

// readCircuit reads a circuit. One that cannot be read or trusted is closed, as for a transaction.
func (h *Handler) readCircuit(ctx context.Context, key circuit.Key, now time.Time) circuit.Summary {
	form, err := h.Circuits.Load(ctx, key)
	if err != nil {
		return circuit.Summary{}
	}
	state, _ := circuit.Decode(form) // the zero state if it is torn or newer
	return state.Summarize(now)
}

func (s *service) setHealth(of circuit.Summary, now time.Time) {
	switch {
	case s.circuit.Account == "":
		s.Health = healthRefused
	case of.Phase == circuit.Open:
		s.Health = healthRefused
		s.RetryAfter = int((of.ProbesAt.Sub(now) + time.Second - 1) / time.Second)
	case of.Phase == circuit.Suspect, of.Phase == circuit.HalfOpen:
		s.Health = healthDegraded
	default:
		s.Health = healthAvailable
	}
}
