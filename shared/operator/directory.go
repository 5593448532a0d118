package operator

import "maps"

// DriverDirectory finds the driver of an operator. It never changes once it is used.
type DriverDirectory struct {
	drivers map[string]Driver
}

// NewDriverDirectory makes a directory of drivers by their names in the rows of the table ("gateway").
func NewDriverDirectory(drivers map[string]Driver) *DriverDirectory {
	return &DriverDirectory{drivers: maps.Clone(drivers)}
}

// AcceptPrivateNetworks lets every driver reach operators at http addresses of private networks. Call it
// before the first use, and only in a function that is not deployed (decision "outgoing-addresses").
func (d *DriverDirectory) AcceptPrivateNetworks() {
	for _, driver := range d.drivers {
		if local, ok := driver.(interface{ AcceptPrivateNetworks() }); ok {
			local.AcceptPrivateNetworks()
		}
	}
}

// Driver returns an operator's driver and row. The name is compared without case. It returns false for an unknown
// operator, or if the directory lacks the driver.
func (d *DriverDirectory) Driver(operatorName string) (Driver, Capabilities, bool) {
	row, ok := FindCapabilities(operatorName)
	if !ok {
		return nil, Capabilities{}, false
	}
	driver, ok := d.drivers[row.DriverName]
	return driver, row, ok
}

// StatusLookup returns the status lookup for an operator; false if its row or its driver has none.
func (d *DriverDirectory) StatusLookup(operatorName string) (StatusLookup, bool) {
	driver, row, ok := d.Driver(operatorName)
	if !ok || !row.HasStatusLookup {
		return nil, false
	}
	reader, ok := driver.(StatusLookup)
	return reader, ok
}

// UserSMSSender returns the sender of the payer's SMS for an operator; false if the operator sends it itself or the
// driver cannot (decision "user-sms").
func (d *DriverDirectory) UserSMSSender(operatorName string) (UserSMSSender, Capabilities, bool) {
	driver, row, ok := d.Driver(operatorName)
	if !ok || row.SendsUserSMS {
		return nil, row, false
	}
	notifier, ok := driver.(UserSMSSender)
	return notifier, row, ok
}
