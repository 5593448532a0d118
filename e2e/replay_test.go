package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
)

// replayCount is how many deliveries are replayed.
const replayCount = 1000

// replayThousand stores payments whose notifications were delivered yesterday and replays all by one command. It
// checks the notifications at the merchant's server, the listed deliveries and an export.
func (e *ctlSession) replayThousand() {
	if testing.Short() {
		e.t.Skip("a thousand notifications take a while")
	}
	m := newFaultyServer(e.t)
	made := e.createMerchant("Hotel", m.URL+"/hook")
	at := time.Now().UTC().Truncate(24 * time.Hour).Add(-12 * time.Hour)
	e.seedNotifiedPayments(made, at)
	span := " --from " + at.Format(time.DateOnly) + " --to "
	next := at.Add(24 * time.Hour).Format(time.DateOnly)
	e.mustRun("deliveries replay --merchant Hotel"+span+next, nil) // without --yes
	started := time.Now()
	var result struct{ Queued int }
	stderr := e.mustRun("deliveries replay --merchant Hotel"+span+next+confirmFlags, &result)
	queued := time.Since(started)
	if result.Queued != replayCount || !strings.Contains(stderr, "900 of 1000") {
		e.t.Errorf("queued %d; progress: %s", result.Queued, stderr)
	}
	eventuallyNoError(e.t, 2*time.Minute, func() error {
		if got := len(attemptsByWebhookID(m)); got != replayCount {
			return fmt.Errorf("%d of %d notifications were sent again", got, replayCount)
		}
		return nil
	})
	e.t.Logf("%d deliveries: queued in %s, all sent again after %s", replayCount, queued.Round(time.Millisecond),
		time.Since(started).Round(time.Millisecond))
	for id, v := range attemptsByWebhookID(m) {
		if err := verifyWithGoLibrary(made.WebhookSecret, v.notification); err != nil {
			e.t.Fatalf("the signature of %s is invalid: %v", id, err)
		}
	}
	e.eventually(func() error {
		var delivered []struct{ State string }
		e.mustRun("deliveries list Hotel"+span+next+" --state delivered", &delivered)
		if len(delivered) != replayCount {
			return fmt.Errorf("%d deliveries are listed as delivered, want all", len(delivered))
		}
		return nil
	})
	_, rows, _ := e.runCommand("export Hotel" + span + at.Format(time.DateOnly))
	if strings.Count(rows, "\n") != replayCount+1 {
		e.t.Errorf("the export has %d lines, want a heading and one per payment", strings.Count(rows, "\n"))
	}
}

// attemptsByWebhookID returns the attempts at the merchant's server by webhook-id.
func attemptsByWebhookID(m *faultyServer) map[string]deliveryAttempt {
	found := map[string]deliveryAttempt{}
	for _, v := range m.attemptsAt("/hook") {
		found[v.notification.header.Get("Webhook-Id")] = v
	}
	return found
}

// seedNotifiedPayments stores payments whose notifications were delivered.
func (e *ctlSession) seedNotifiedPayments(from createdMerchant, at time.Time) {
	e.t.Helper()
	environment := e.run.Environment()
	store := ledgerdynamo.New(newAWSClient(e.t, environment).DynamoDB(), environment["LEDGER_TABLE"])
	forEachParallel(4, replayCount, func(i int) {
		if _, err := store.Insert(context.Background(), notifiedPayment(from, i, at), ledger.Reserve); err != nil {
			e.t.Error(err)
		}
	})
}

// notifiedPayment returns a payment whose notification was delivered.
func notifiedPayment(from createdMerchant, number int, at time.Time) *ledger.Entry {
	key := ledger.Key{Kind: ledger.Payment, ID: fmt.Sprintf("%s_%d", from.Merchant, number)}
	at = at.Add(time.Duration(number) * time.Second)
	return &ledger.Entry{
		Key: key, Merchant: ledger.Merchant{ID: from.id, Name: from.Merchant}, Version: 1,
		Call:     ledger.Call{State: ledger.Done, SentAt: at, ReservedAt: at},
		Progress: ledger.Progress{Status: ledger.Successful, FinalAt: at}, CreatedAt: at, UpdatedAt: at,
		Route: ledger.Route{Country: "CI", Operator: "sandbox", Account: "local", UpstreamKey: key.ID},
		Request: ledger.Request{
			CountryAsSent: "CI", Channel: "ussd", Lang: "fr", TransactionID: ledger.PaymentTransactionID(key.ID),
		},
		Amount:   ledger.Amount{Minor: 1000, Currency: "XOF", AsSent: "1000"},
		Response: ledger.Response{Status: http.StatusCreated, Body: []byte("{}")},
		Outbox: ledger.Outbox{
			URL: from.notifyURL,
			Delivered: []ledger.Notification{{ID: ledger.NotificationID(key, ledger.Successful),
				Status: ledger.Successful,
				At:     at, Attempts: 1, DeliveredAt: at}},
		},
	}
}
