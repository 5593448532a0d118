package operator_test

import (
	"context"
	"testing"

	"mobilegateway/shared/operator"
)

// plainDriver has none of the optional abilities.
type plainDriver struct{}

func (plainDriver) Account(context.Context, string) (string, error) { return "a1", nil }
func (plainDriver) Charge(context.Context, operator.ChargeCall) operator.Result {
	return operator.Result{}
}
func (plainDriver) Pay(context.Context, operator.PayCall) operator.PayAnswer {
	return operator.PayAnswer{}
}
func (plainDriver) SendSMS(context.Context, operator.SMSCall) operator.Result {
	return operator.Result{}
}

// fullDriver has all of them.
type fullDriver struct{ plainDriver }

func (fullDriver) PaymentStatus(context.Context, operator.StatusCall) operator.StatusAnswer {
	return operator.StatusAnswer{}
}
func (fullDriver) UserSMS(context.Context, operator.UserSMSCall) operator.Result {
	return operator.Result{}
}

func TestDirectoryFindsDrivers(t *testing.T) {
	drivers := map[string]operator.Driver{"gateway": fullDriver{}}
	directory := operator.NewDirectory(drivers)
	delete(drivers, "gateway") // the directory holds its own copy
	driver, row, ok := directory.Driver("ORANGE")
	if !ok || driver == nil || row.Operator != "orange" {
		t.Fatalf("got %v, %q, %v", driver, row.Operator, ok)
	}
	if _, ok := directory.StatusReader("mtn"); !ok {
		t.Error("no status lookup")
	}
	if _, row, ok := directory.UserNotifier("sandbox"); !ok || row.Operator != "sandbox" {
		t.Error("no purchaser's SMS")
	}
	if _, _, ok := directory.Driver("nobody"); ok {
		t.Error("an unknown operator has a driver")
	}
}

func TestDirectoryWithout(t *testing.T) {
	empty := operator.NewDirectory(nil)
	if _, row, ok := empty.Driver("orange"); ok || row.Operator != "orange" {
		t.Error("a driver that is not there was found")
	}
	for name, directory := range map[string]*operator.Directory{
		"no driver":    empty,
		"plain driver": operator.NewDirectory(map[string]operator.Driver{"gateway": plainDriver{}}),
	} {
		if _, ok := directory.StatusReader("orange"); ok {
			t.Errorf("%s: has a status lookup", name)
		}
		if _, _, ok := directory.UserNotifier("orange"); ok {
			t.Errorf("%s: sends the purchaser's SMS", name)
		}
	}
}
