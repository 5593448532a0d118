package operator

import "maps"

// DriverDirectory finds the driver that speaks to an operator. It is made once, by a bootstrap, and never changes.
type DriverDirectory struct {
	drivers map[string]Driver
}

// NewDriverDirectory makes a directory of drivers by the names that the rows of the table give them ("gateway").
func NewDriverDirectory(drivers map[string]Driver) *DriverDirectory {
	return &DriverDirectory{drivers: maps.Clone(drivers)}
}

// Driver returns an operator's driver and its row of the table. The name is compared without case; false where the
// operator is unknown or its driver is not in the directory.
func (d *DriverDirectory) Driver(operatorName string) (Driver, Capabilities, bool) {
	row, ok := FindCapabilities(operatorName)
	if !ok {
		return nil, Capabilities{}, false
	}
	driver, ok := d.drivers[row.DriverName]
	return driver, row, ok
}

// StatusLookup returns the status lookup for an operator; false where its row declares none or its driver has none.
func (d *DriverDirectory) StatusLookup(operatorName string) (StatusLookup, bool) {
	driver, row, ok := d.Driver(operatorName)
	if !ok || !row.HasStatusLookup {
		return nil, false
	}
	reader, ok := driver.(StatusLookup)
	return reader, ok
}

// UserSMSSender returns what sends the purchaser's SMS for an operator; false where the operator sends it itself or its
// driver cannot (decision "user-sms").
func (d *DriverDirectory) UserSMSSender(operatorName string) (UserSMSSender, Capabilities, bool) {
	driver, row, ok := d.Driver(operatorName)
	if !ok || row.SendsUserSMS {
		return nil, row, false
	}
	notifier, ok := driver.(UserSMSSender)
	return notifier, row, ok
}
