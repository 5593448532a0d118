package gatewayctl_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/deliveries"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
)

// TestCommandsOnLocalAWS sets up a new deployment: keys, a merchant, a rotation, a replay and the audit.
func TestCommandsOnLocalAWS(t *testing.T) {
	d, client, _ := gatewayctltest.NewOnLocalAWS(t)
	d.Apply("keys add tokens", "keys add callbacks", "keys add webhooks", "keys add webhooks")
	d.ExpectCount("webhook keys", "keys list webhooks", 2)
	d.ExpectExit("operator list --operator-secret none", gatewayctl.ExitFailed, "there is no secret none")
	d.UseSandboxOperator()

	shop := d.Onboard("ShopA")
	d.Apply("token rotate ShopA", "host add ShopA b.example")
	d.ExpectFailed("merchant add shopa --country ci --operator sandbox", merchant.ErrNameTaken.Error())
	const count = 30
	store := ledgerdynamo.New(client.DynamoDB(), "ledger")
	for i := range count {
		e := d.AddDeliveredPayment(shop, i, d.Now.Add(time.Duration(i)*time.Second))
		e.Version = 1
		if _, err := store.Insert(context.Background(), e, ledger.Reserve); err != nil {
			t.Fatal(err)
		}
	}
	d.Now = d.Now.Add(time.Hour)
	result := gatewayctltest.Change[deliveries.Result](d,
		"deliveries replay --merchant ShopA --from 2026-03-01 --to 2026-03-02")
	d.Equal("replay", result, deliveries.Result{Queued: count, Failed: []string{},
		Addresses: gatewayctltest.ToShop(count)})
	e, err := store.Get(context.Background(), ledger.Key{Kind: ledger.Payment, ID: "ShopA_7"})
	if err != nil || !e.Outbox.WakesRelay() || e.Version != 2 {
		t.Errorf("replayed payment: version %d, wakes the relay %v, %v", e.Version, e.Outbox.WakesRelay(), err)
	}
	if _, out, _ := d.Exec("export ShopA --from 2026-03-01 --to 2026-03-01"); strings.Count(out, "\n") != count+1 {
		t.Errorf("export: %s", out)
	}
	outcomes := map[string]int{}
	for _, r := range gatewayctltest.Query[[]auditlog.Record](d, "audit") {
		outcomes[r.What+" "+r.Outcome]++
	}
	for what, want := range map[string]int{"add a key done": 5, // onboardShop adds one too
		"add a merchant done": 1, "add a merchant failed": 1, "issue a token done": 1,
		"add notification hosts done": 1, "replay deliveries done": 1, "set operators' credentials done": 1} {
		if outcomes[what] != want {
			t.Errorf("%s: %d records, want %d of %v", what, outcomes[what], want, outcomes)
		}
	}
	d.ExpectCount("merchants, without audit records", "merchant list", 1)
}
