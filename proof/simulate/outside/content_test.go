package outside

import (
	"context"
	"slices"
	"testing"
	"time"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/carrierapi"
	"mobilegateway/shared/webhook"
)

// chargeWith is a charge with a description, under one key.
func chargeWith(description string) driverCall {
	return driverCall{KindCharge, "DemoShop.c1", func(ctx context.Context, d *carrierapi.Driver) operator.Result {
		return d.Charge(ctx, operator.ChargeCall{
			Call: callOf("DemoShop.c1"), ReferenceCode: "R", Amount: "500", Currency: "XOF", Description: description,
			OnBehalfOf: "Demo",
		})
	}}
}

func TestOperatorReportsAnotherContent(t *testing.T) {
	p := newPlatform(t, &Faults{}, script{})
	var reported []string
	p.operator.OnOtherContent = func(kind, key string) { reported = append(reported, kind+" "+key) }
	for _, description := range []string{"a", "a", "b"} {
		chargeWith(description).sendTo(t, p, NoFault)
	}
	if want := []string{"charge DemoShop.c1"}; !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q: the third call only", reported, want)
	}
}

func TestOperatorDoesNotSeeARefusedConnection(t *testing.T) {
	p := newPlatform(t, only(OperatorCalls, ConnectRefused), script{string(OperatorCalls): 1})
	p.operator.OnOtherContent = func(kind, key string) { t.Errorf("%s %s came with another content", kind, key) }
	for _, description := range []string{"a", "b"} {
		chargeWith(description).sendTo(t, p, ConnectRefused)
	}
}

func TestMerchantAcknowledges(t *testing.T) {
	s := &MerchantServer{
		Secrets: []string{signingSecret.Text()}, Faults: &Faults{},
		Windows: []HealthWindow{{From: start, To: start.Add(time.Hour), Fault: ServerErrorBefore}},
	}
	notify(s, start, []webhook.Secret{signingSecret}, script{})
	if s.Acknowledged("id-1") {
		t.Error("a notification that got 500 is acknowledged")
	}
	s.Windows = nil
	notify(s, start, []webhook.Secret{signingSecret}, script{})
	if !s.Acknowledged("id-1") || s.Acknowledged("id-2") {
		t.Error("id-1 is not acknowledged, or id-2 is")
	}
}
