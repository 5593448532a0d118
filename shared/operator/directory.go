package operator

import (
	"context"
	"maps"
	"slices"
	"strings"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
)

// RouteReader reads a deployment's routes.
type RouteReader interface {
	// Routes returns the routes of now. The error is a *fault.Fault of kind IntegrationRejected: they cannot be read.
	Routes(ctx context.Context) (Routes, error)
}

// DriverDirectory finds the driver of a platform. It never changes once it is used.
type DriverDirectory struct {
	drivers map[string]Driver
	routes  RouteReader
}

// NewDriverDirectory makes a directory of drivers by their names in the rows of the table ("gateway"). routes is nil
// for a deployment without routes.
func NewDriverDirectory(drivers map[string]Driver, routes RouteReader) *DriverDirectory {
	return &DriverDirectory{maps.Clone(drivers), routes}
}

// Routes returns the deployment's routes of now, with the error of RouteReader.
func (d *DriverDirectory) Routes(ctx context.Context) (Routes, error) {
	if d.routes == nil {
		return Routes{}, nil
	}
	return d.routes.Routes(ctx)
}

// Driver returns a platform's driver and row. The name is compared without case. It returns false for an unknown
// platform, or if the directory lacks the driver.
func (d *DriverDirectory) Driver(platform string) (Driver, Capabilities, bool) {
	row, _ := FindCapabilities(platform)
	driver, ok := d.drivers[row.DriverName] // an unknown platform has no name of a driver
	return driver, row, ok
}

// DriverOf returns the driver that an entry is pinned to; false if the directory lacks it.
func (d *DriverDirectory) DriverOf(e *ledger.Entry) (Driver, bool) {
	driver, _, ok := d.Driver(PinOf(e).Platform)
	return driver, ok
}

// Accounts lists the accounts, as "platform/id", that may get new transactions of an operation: those of routes, and
// the current ones of all platforms. An account may be in the list twice. The error is that of RouteReader.
func (d *DriverDirectory) Accounts(ctx context.Context, operation string) ([]string, error) {
	routes, err := d.Routes(ctx)
	var accounts []string
	for _, platform := range routes.Platforms {
		driver, row, found := d.Driver(platform)
		if !found || !slices.Contains(row.Operations, operation) {
			continue
		}
		if id, err := driver.FindAccount(ctx, platform, ""); err == nil {
			accounts = append(accounts, Pin{platform, id}.String())
		}
	}
	for _, all := range routes.ByOperator {
		for _, route := range all {
			if route.Operation == operation {
				accounts = append(accounts, route.To)
			}
		}
	}
	return accounts, err
}

// AccountFields returns the fields of a platform's accounts; false for an unknown platform.
func (d *DriverDirectory) AccountFields(platform string) ([]AccountField, bool) {
	driver, _, found := d.Driver(platform)
	if !found {
		return nil, false
	}
	if describer, ok := driver.(AccountDescriber); ok {
		return describer.AccountFields(), true
	}
	return BasicAccountFields(), true
}

// StatusLookup returns the status lookup for an entry; false if its platform or its driver has none, or if the entry
// lacks what the lookup needs.
func (d *DriverDirectory) StatusLookup(e *ledger.Entry) (StatusLookup, bool) {
	driver, row, ok := d.Driver(PinOf(e).Platform)
	if !ok || !row.HasStatusLookup || e.LostUpstreamKey() || row.LookupNeedsDriverData && e.DriverData == "" {
		return nil, false
	}
	reader, ok := driver.(StatusLookup)
	return reader, ok
}

// UserSMSSender returns the sender of the payer's SMS for an entry; false if the platform sends it itself or the
// driver cannot (decision "user-sms").
func (d *DriverDirectory) UserSMSSender(e *ledger.Entry) (UserSMSSender, Capabilities, bool) {
	driver, row, ok := d.Driver(PinOf(e).Platform)
	if !ok || row.SendsUserSMS {
		return nil, row, false
	}
	notifier, ok := driver.(UserSMSSender)
	return notifier, row, ok
}

// NewCall returns the part of an entry's calls that is common to all operations.
func NewCall(e *ledger.Entry) Call {
	pin := PinOf(e)
	country, _ := market.ByAlpha2(e.Route.Country)
	call := Call{
		Platform: pin.Platform, AccountID: pin.Account, Operator: e.Route.Operator, UpstreamKey: e.Route.UpstreamKey,
		MCO: country.MCO, Country: e.Route.Country, DriverData: e.DriverData,
	}
	if e.Kind == ledger.Payment {
		call.OrderID = e.ID
	}
	return call
}

// Pin is the platform and the account that a transaction uses for its whole life.
type Pin struct {
	Platform string
	Account  string // the account's id; "" for the platform's current one
}

// String returns "platform/id".
func (p Pin) String() string { return p.Platform + "/" + p.Account }

// PinOf returns the pin of an entry. Entry.Account is "platform/id" after a route, and the id of an account of the
// platform with the operator's own name without one.
func PinOf(e *ledger.Entry) Pin { return ParsePin(e.Route.Account, e.Route.Operator) }

// ParsePin is PinOf for the account of an operator's entry, or for Route.To.
func ParsePin(text, operatorName string) Pin {
	platform, id, routed := strings.Cut(text, "/")
	if _, known := FindCapabilities(platform); routed && known {
		return Pin{platform, id}
	}
	return Pin{operatorName, text}
}

// CapabilitiesOf returns the row of the platform that an entry is pinned to; the zero value for an unknown one.
func CapabilitiesOf(e *ledger.Entry) Capabilities {
	row, _ := FindCapabilities(PinOf(e).Platform)
	return row
}

// FindCapabilities returns a platform's row by its name, compared without case.
func FindCapabilities(platform string) (Capabilities, bool) {
	for _, row := range capabilityTable {
		if strings.EqualFold(row.Platform, platform) {
			return row, true
		}
	}
	return Capabilities{}, false
}
