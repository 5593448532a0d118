package deliverytest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/operator"
)

// ForgedCallback is the valid callback that CheckForged changes.
type ForgedCallback struct {
	// NewEvent returns the callback of an operator for an id, with a valid token.
	NewEvent        func(t testing.TB, k *DeliveryFixture, operator, id string) *operationtest.Event
	ID, IDParameter string
	// Path is the signed path of the callback, OtherPath that of the other kind of callback.
	Path, OtherPath func(operator, id string) string
}

// CheckForged checks that forged callbacks get 404 without a call of the ledger, and that foreign ones get 404 after
// one read (decision "callbacks"). newFixture stores the transaction, which belongs to the operator "sandbox".
func CheckForged(t *testing.T, newFixture func(testing.TB) *DeliveryFixture, c ForgedCallback) {
	t.Helper()
	const operator, unknownID = "sandbox", "DemoShop_9"
	check := func(name string, reads int, newEvent func(*DeliveryFixture) *operationtest.Event) {
		t.Run("decision callbacks: "+name, func(t *testing.T) {
			k := newFixture(t)
			k.Send(t, newEvent(k)).AssertError(t, 404, "900906")
			got := [3]int{k.Ledger.CallCount(storetest.Get), k.Ledger.WriteCount(), len(k.Operator.Lookups())}
			operationtest.AssertEqual(t, "reads, writes and lookups", got, [3]int{reads, 0, 0})
		})
	}
	forge := func(name, parameter string, value func(*DeliveryFixture) string) {
		check(name, 0, func(k *DeliveryFixture) *operationtest.Event {
			return c.NewEvent(t, k, operator, c.ID).SetPathParameter(parameter, value(k))
		})
	}
	fixed := func(value string) func(*DeliveryFixture) string {
		return func(*DeliveryFixture) string { return value }
	}
	forge("no token", "token", fixed("x"))
	forge("a token of the right length", "token", fixed(strings.Repeat("A", callback.TokenLength)))
	forge("the last character changed", "token", func(k *DeliveryFixture) string {
		valid := k.SignPath(t, c.Path(operator, c.ID))
		last := "A"
		if strings.HasSuffix(valid, last) {
			last = "Q"
		}
		return valid[:len(valid)-1] + last
	})
	forge("the token of the other kind", "token", func(k *DeliveryFixture) string {
		return k.SignPath(t, c.OtherPath(operator, c.ID))
	})
	forge("another id's token", c.IDParameter, fixed(unknownID))
	forge("another operator's token", "operator", fixed("orange"))
	check("a malformed body", 0, func(k *DeliveryFixture) *operationtest.Event {
		return c.NewEvent(t, k, operator, c.ID).SetPathParameter("token", "x").SetRawBody("{")
	})
	check("another operator's transaction", 1, func(k *DeliveryFixture) *operationtest.Event {
		return c.NewEvent(t, k, "orange", c.ID)
	})
	check("an unknown id", 1, func(k *DeliveryFixture) *operationtest.Event {
		return c.NewEvent(t, k, operator, unknownID)
	})
}

// CheckForgedStatic checks that forged callbacks to the one address of an account get 404 without a call of the ledger
// (decision "static-callbacks"). newFixture stores the transaction that newEvent, the valid callback, is about.
// withoutStatic is a platform without such an address.
func CheckForgedStatic(
	t *testing.T, newFixture func(testing.TB) *DeliveryFixture, newEvent func(testing.TB) *operationtest.Event,
	withoutStatic string,
) {
	t.Helper()
	for name, change := range map[string]func(*operationtest.Event){
		"another secret":           func(e *operationtest.Event) { e.SetPathParameter("secret", "x") },
		"no secret":                func(e *operationtest.Event) { e.SetPathParameter("secret", "") },
		"an unknown account":       func(e *operationtest.Event) { e.SetPathParameter("account", "ci") },
		"an unknown platform":      func(e *operationtest.Event) { e.SetPathParameter("platform", "zz") },
		"without static addresses": func(e *operationtest.Event) { e.SetPathParameter("platform", withoutStatic) },
		"an unreadable body":       func(e *operationtest.Event) { e.SetPathParameter("secret", "x").SetRawBody("{") },
		"another method":           func(e *operationtest.Event) { e.SetField("httpMethod", "PUT") },
	} {
		t.Run("decision static-callbacks: "+name, func(t *testing.T) {
			k, e := newFixture(t), newEvent(t)
			before := k.Ledger.WriteCount()
			change(e)
			k.Send(t, e).AssertError(t, 404, "900906")
			got := [3]int{k.Ledger.CallCount(storetest.Get), k.Ledger.WriteCount() - before, len(k.Operator.Lookups())}
			operationtest.AssertEqual(t, "reads, writes and lookups", got, [3]int{})
		})
	}
}

// UnreadableAccount is a driver whose account cannot be read.
type UnreadableAccount struct{ *Operator }

// VerifyStaticCallback implements operator.StaticCallbackVerifier.
func (UnreadableAccount) VerifyStaticCallback(context.Context, operator.StaticCallback) (bool, error) {
	return false, errors.New("the credentials cannot be read")
}
