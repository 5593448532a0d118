package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// movedServer lets a merchant's server refuse a notification for an hour, and then move. deliveries send delivers it at
// the new address, under its webhook-id. There it meets a 410 by mistake, which endpoint enable ends. webhook test
// proves the new address before that.
func (e *ctlSession) movedServer() {
	former, moved := newFaultyServer(e.t), newFaultyServer(e.t)
	former.modes["/hook"] = []responseMode{respondLater}
	made := e.createMerchant("Juliet", former.URL+"/hook")
	order := "Juliet_" + e.target.newID()
	got, err := e.target.sendForStatus(newPayment(made.MerchantCredentials, order, "ussd", successfulMSISDN))
	if err != nil || got != http.StatusCreated {
		e.t.Fatalf("the payment got %d, %v", got, err)
	}
	e.awaitDeliveryState(order, "waiting", 1)
	e.mustRun("merchant change Juliet --notif-url "+moved.URL+"/hook"+confirmFlags, nil)
	e.mustRun("webhook test --merchant Juliet"+confirmFlags, nil)

	send := "deliveries send --profile-cache 1s --merchant Juliet --since " + time.Now().UTC().Format(time.DateOnly)
	e.eventually(func() error {
		if code, _, stderr := e.runCommand(send); code != 0 {
			return errors.New(stderr)
		}
		return nil
	})
	moved.modes["/hook"] = []responseMode{respond410}
	started := time.Now()
	if stderr := e.mustRun(send+confirmFlags, nil); stderr != "" {
		e.t.Errorf("deliveries send: %s", stderr)
	}
	e.awaitDeliveryState(order, "parked", 0)
	e.t.Logf("sent to the new address %s after the command", time.Since(started).Round(time.Millisecond))

	var enabled struct{ Queued int }
	e.mustRun("endpoint enable Juliet --all"+confirmFlags, &enabled)
	if enabled.Queued != 1 {
		e.t.Errorf("endpoint enable queued %d, want 1", enabled.Queued)
	}
	e.awaitDeliveryState(order, "delivered", 1)
	if attempts := former.attemptsAt("/hook"); len(attempts) != 1 {
		e.t.Errorf("the former address got %d attempts, want the first only", len(attempts))
	}
	want := former.attemptsAt("/hook")[0].notification.header.Get("Webhook-Id")
	for i, v := range moved.attemptsAt("/hook") {
		id := v.notification.header.Get("Webhook-Id")
		if isSample := strings.HasPrefix(id, "test_"); isSample != (i == 0) || !isSample && id != want {
			e.t.Errorf("attempt %d at the new address has the webhook-id %s, want the sample, then %s", i, id, want)
		}
		if err := verifyWithGoLibrary(made.WebhookSecret, v.notification); err != nil {
			e.t.Errorf("attempt %d at the new address: %v", i, err)
		}
	}
}

// awaitDeliveryState waits until the notification of an order has a state and at least these attempts.
func (e *ctlSession) awaitDeliveryState(order, state string, attempts int) {
	e.t.Helper()
	e.eventually(func() error {
		var history struct {
			Notifications []struct {
				State    string
				Attempts int
			}
		}
		e.mustRun("deliveries show "+order, &history)
		for _, n := range history.Notifications {
			if n.State == state && n.Attempts >= attempts {
				return nil
			}
		}
		return fmt.Errorf("the notifications of %s are %+v, want one that is %s", order, history.Notifications, state)
	})
}
