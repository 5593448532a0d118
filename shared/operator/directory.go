package operator

import "maps"

// Directory finds the driver that speaks to an operator. It is made once, by a bootstrap, and never changes.
type Directory struct {
	drivers map[string]Driver
}

// NewDirectory makes a directory of drivers by the names that the rows of the table give them ("gateway").
func NewDirectory(drivers map[string]Driver) *Directory {
	return &Directory{drivers: maps.Clone(drivers)}
}

// Driver returns an operator's driver and its row of the table. The name is compared without case; false where the
// operator is unknown or its driver is not in the directory.
func (d *Directory) Driver(operatorName string) (Driver, Capabilities, bool) {
	row, ok := Find(operatorName)
	if !ok {
		return nil, Capabilities{}, false
	}
	driver, ok := d.drivers[row.Driver]
	return driver, row, ok
}

// StatusReader returns the status lookup for an operator; false where its row declares none or its driver has none.
func (d *Directory) StatusReader(operatorName string) (StatusReader, bool) {
	driver, row, ok := d.Driver(operatorName)
	if !ok || !row.StatusLookup {
		return nil, false
	}
	reader, ok := driver.(StatusReader)
	return reader, ok
}

// UserNotifier returns what sends the purchaser's SMS for an operator; false where the operator sends it itself or its
// driver cannot (decision "user-sms").
func (d *Directory) UserNotifier(operatorName string) (UserNotifier, Capabilities, bool) {
	driver, row, ok := d.Driver(operatorName)
	if !ok || row.SendsUserSMS {
		return nil, row, false
	}
	notifier, ok := driver.(UserNotifier)
	return notifier, row, ok
}
