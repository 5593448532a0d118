package e2e

import (
	"net/http"
	"os"
	"sync"
	"testing"
	"time"
)

// deletedPayments is how many payments are in flight when the gateway's stack is deleted, and how many begin while
// there is none. LocalStack has to look up each of the first ones.
const deletedPayments = 16

// deletedAtMost bounds the deletion and the next deployment of the gateway's stack.
const deletedAtMost = 7 * time.Minute

// TestGatewayDeletedWithPaymentsInFlight deletes the gateway's stack with payments in flight and deploys it again. The
// stack with its data stays. Without a domain the callbacks of earlier payments find no gateway. Every payment becomes
// final and is notified, with one effect each. The program that started the target makes the change at
// E2E_DEPLOY_CONTROL_URL.
func TestGatewayDeletedWithPaymentsInFlight(t *testing.T) {
	address := os.Getenv("E2E_DEPLOY_CONTROL_URL")
	if address == "" {
		t.Skip("E2E_DEPLOY_CONTROL_URL is not set: the target cannot delete its stack")
	}
	g := openTarget(t)
	for _, way := range []string{"domain", "no-domain"} {
		t.Run(way, func(t *testing.T) { deleteInFlight(t, g, address+"/"+way) })
	}
}

func deleteInFlight(t *testing.T, g *target, address string) {
	stored, fresh := successfulPayments(g, deletedPayments, "1003"), successfulPayments(g, deletedPayments, "2000")
	forEachPaced(stored, 0, func(one payment) { retryUntilAccepted(t, g, one) })
	changed := make(chan time.Duration, 1)
	go func() {
		started := time.Now()
		if response, err := http.Post(address, "", nil); err != nil || response.StatusCode >= 300 {
			t.Errorf("the change failed: %v %v", response, err)
		}
		changed <- time.Since(started)
	}()
	var group sync.WaitGroup
	group.Go(func() {
		until := time.Now().Add(deletedAtMost)
		forEachPaced(fresh, 0, func(one payment) { retryFor(t, g, one, time.Until(until)) })
	})
	group.Go(func() {
		forEachPaced(stored, changeAtLeast/deletedPayments*parallelMerchants, func(one payment) {
			body := map[string]any{"key": one.order, "status": "successful"}
			if err := g.sandboxControl(http.MethodPost, "settle", body, nil); err != nil {
				t.Error(err)
			}
		})
	})
	group.Wait()
	t.Logf("the change took %s", (<-changed).Round(time.Second))
	forEachPaced(append(stored, fresh...), 0, func(one payment) { one.checkFinal(t, g) })
}
