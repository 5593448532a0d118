package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
)

// replays is how many deliveries are sent once more.
const replays = 1000

// thousand puts payments into the ledger that were told of yesterday, sends all again by one command, and looks at what
// comes to the merchant's server, and at an export of them.
func (e *engineer) thousand() {
	if testing.Short() {
		e.t.Skip("a thousand notifications take a while")
	}
	m := newMoody(e.t)
	made := e.onboards("Hotel", m.URL+"/hook")
	at := time.Now().UTC().Truncate(24 * time.Hour).Add(-12 * time.Hour)
	e.told(made, at)
	span := "--merchant Hotel --from " + at.Format(time.DateOnly) + " --to "
	next := at.Add(24 * time.Hour).Format(time.DateOnly)
	e.does("deliveries replay "+span+next, nil) // without --yes
	began := time.Now()
	var result struct{ Queued int }
	notes := e.does("deliveries replay "+span+next+because, &result)
	queued := time.Since(began)
	if result.Queued != replays || !strings.Contains(notes, "900 of 1000") {
		e.t.Errorf("queued %d; progress: %s", result.Queued, notes)
	}
	eventually(e.t, 2*time.Minute, func() (struct{}, error) {
		if got := len(heard(m)); got != replays {
			return struct{}{}, fmt.Errorf("%d of %d were sent again", got, replays)
		}
		return struct{}{}, nil
	})
	e.t.Logf("%d deliveries: queued in %s, all sent again after %s", replays, queued.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	for id, v := range heard(m) {
		if err := verifyGo(made.WebhookSecret, v.message); err != nil {
			e.t.Fatalf("%s is not signed: %v", id, err)
		}
	}
	e.soon(func() error {
		var told []struct{ Standing string }
		if e.does("deliveries list "+span+next+" --standing told", &told); len(told) != replays {
			return fmt.Errorf("%d stand as told", len(told))
		}
		return nil
	})
	if _, rows, _ := e.types("export " + span + at.Format(time.DateOnly)); strings.Count(rows, "\n") != replays+1 {
		e.t.Errorf("the export has %d lines", strings.Count(rows, "\n"))
	}
}

// heard lists what came to the merchant's server, by the webhook-id.
func heard(m *moody) map[string]visit {
	found := map[string]visit{}
	for _, v := range m.seen("/hook") {
		found[v.message.header.Get("Webhook-Id")] = v
	}
	return found
}

// told puts the payments into the ledger as if their notifications had been delivered.
func (e *engineer) told(from onboarded, at time.Time) {
	e.t.Helper()
	environment := e.run.Environment()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		e.t.Fatal(err)
	}
	store := ledgerdynamo.New(client.DynamoDB(), environment["LEDGER_TABLE"])
	numbers := make(chan int)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for i := range numbers {
				if _, err := store.Insert(context.Background(), toldOf(from, i, at)); err != nil {
					e.t.Error(err)
				}
			}
		})
	}
	for i := range replays {
		numbers <- i
	}
	close(numbers)
	writers.Wait()
}

// toldOf is a payment that its merchant was told of.
func toldOf(from onboarded, number int, at time.Time) *ledger.Entry {
	key := ledger.Key{Kind: ledger.Payment, ID: fmt.Sprintf("%s_%d", from.Merchant, number)}
	at = at.Add(time.Duration(number) * time.Second)
	return &ledger.Entry{
		Key: key, MerchantID: from.id, Merchant: from.Merchant, Version: 1, State: ledger.Done, Status: ledger.Successful, CreatedAt: at, SentAt: at,
		ReservedAt: at, UpdatedAt: at, FinalAt: at, Country: "CI", CountryText: "CI", Operator: "sandbox", Account: "local", Channel: "ussd", Lang: "fr",
		Minor: 1000, Currency: "XOF", AmountText: "1000", AnswerStatus: http.StatusCreated, AnswerBody: []byte("{}"),
		PaymentID: ledger.PaymentTransactionID(key.ID), UpstreamKey: key.ID, NotifyURL: from.notifyURL,
		Told: []ledger.Notification{{ID: ledger.NotificationID(key, ledger.Successful), Status: ledger.Successful, At: at, Attempt: 1, ToldAt: at}},
	}
}
