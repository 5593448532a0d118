package dynamo_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/ledgertest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
)

const smsAccount = "orange-sms/a1"

// bind binds an operator's id to a message, and compares the statuses that came before.
func bind(t *testing.T, s ledger.MessageIndex, account, reference, id string, want ...ledger.Status) {
	t.Helper()
	early, err := s.BindMessage(context.Background(), account, reference, id, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, early); diff != "" {
		t.Errorf("statuses before %s was bound (-want +got):\n%s", id, diff)
	}
}

// find finds the message of an operator's id, with the statuses that came before it was bound.
func find(
	t *testing.T, s ledger.MessageIndex, account, reference string, status ledger.Status, wantID string,
	want ...ledger.Status,
) {
	t.Helper()
	id, early, err := s.FindMessage(context.Background(), account, reference, []ledger.Status{status}, time.Time{})
	if err != nil || id != wantID {
		t.Fatalf("%s: message %q, %v; want %q", status, id, err, wantID)
	}
	if diff := cmp.Diff(want, early); diff != "" {
		t.Errorf("%s: statuses before (-want +got):\n%s", status, diff)
	}
}

// messages checks that each receipt is applied by the side that comes second, in every order.
func messages(t *testing.T, s *harness) {
	const waiting, network, terminal = ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal
	first, second, third := s.key(ledger.SMS).ID, s.key(ledger.SMS).ID, s.key(ledger.SMS).ID

	bind(t, s, smsAccount, first, first) // the response came first
	find(t, s, smsAccount, first, network, first)
	find(t, s, smsAccount, first, terminal, first)

	find(t, s, smsAccount, second, waiting, "") // the receipts came first
	find(t, s, smsAccount, second, terminal, "", waiting)
	bind(t, s, smsAccount, second, second, waiting, terminal)
	find(t, s, smsAccount, second, network, second, waiting, terminal)
	bind(t, s, smsAccount, second, second, waiting, terminal)

	find(t, s, smsAccount, third, network, "") // between the receipts
	bind(t, s, smsAccount, third, third, network)
	find(t, s, smsAccount, third, terminal, third, network)

	bind(t, s, smsAccount, third, first, network) // an operator's id names one message
	find(t, s, smsAccount, third, terminal, third, network)
	bind(t, s, "orange-sms/a2", first, third) // it is an id of its account
	find(t, s, "orange-sms/a2", first, network, third)
	find(t, s, smsAccount, first, network, first)
	find(t, s, "orange-sms/a", "2"+first, network, "")
}

// messageRace checks that no status is lost while the message is bound.
func messageRace(t *testing.T, s *harness) {
	reference := s.key(ledger.SMS).ID
	statuses := []ledger.Status{ledger.MessageWaiting, ledger.DeliveredToNetwork, ledger.DeliveredToTerminal}
	var mutex sync.Mutex
	var applied []ledger.Status
	var group sync.WaitGroup
	apply := func(found []ledger.Status, err error) {
		mutex.Lock()
		defer mutex.Unlock()
		applied = append(applied, found...)
		if err != nil {
			t.Error(err)
		}
	}
	group.Go(func() { apply(s.BindMessage(context.Background(), smsAccount, reference, "id", time.Time{})) })
	for _, status := range statuses {
		group.Go(func() {
			one := []ledger.Status{status}
			id, early, err := s.FindMessage(context.Background(), smsAccount, reference, one, time.Time{})
			if id == "id" {
				early = append(early, status)
			} else {
				early = nil // BindMessage returns it
			}
			apply(early, err)
		})
	}
	group.Wait()
	for _, status := range statuses {
		if !slices.Contains(applied, status) {
			t.Errorf("%s was lost, applied were %v", status, applied)
		}
	}
}

// The item of an operator's id has no part of it in its key, and expires when its writer says.
func TestMessageItem(t *testing.T) {
	const reference = "tel:+2250700000000"
	ctx := context.Background()
	store, table := newStore(t)
	network, further := []ledger.Status{ledger.DeliveredToNetwork}, []ledger.Status{ledger.DeliveredToTerminal}
	received := func(until time.Time) error {
		_, _, err := store.FindMessage(ctx, smsAccount, reference, network, until)
		return err
	}
	soon, late := ledgertest.Now().Add(time.Hour), ledgertest.Now().Add(90*24*time.Hour)
	for _, step := range []struct {
		name     string
		write    func() error
		writes   int
		expireAt time.Time // zero for never
	}{
		{"a receipt", func() error { return received(soon) }, 1, soon},
		{"the same receipt", func() error { return received(late) }, 1, soon},
		{"a further receipt", func() error {
			_, _, err := store.FindMessage(ctx, smsAccount, reference, further, late)
			return err
		}, 2, late},
		{"the response", func() error {
			_, err := store.BindMessage(ctx, smsAccount, reference, "id", time.Time{})
			return err
		}, 2, time.Time{}},
		{"a receipt of a bound message", func() error { return received(soon) }, 1, time.Time{}},
	} {
		if err := step.write(); err != nil {
			t.Fatal(err)
		}
		assertRequests(t, table, map[string]int{"PutItem": step.writes})
		page, err := table.Client.Scan(ctx, &dynamodb.ScanInput{TableName: &table.Name})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("%s: %d items, %v; want 1", step.name, len(page.Items), err)
		}
		table.Transport.TakeCounts()
		key := dynamoitem.ReadText(page.Items[0], dynamoitem.KeyAttribute)
		if !strings.HasPrefix(key, "message#") || strings.Contains(key, "225") {
			t.Errorf("%s: key %s", step.name, key)
		}
		seconds, err := dynamoitem.ReadNumber(page.Items[0], dynamo.TimeToLive)
		want := max(0, step.expireAt.Unix())
		if seconds != want || err != nil {
			t.Errorf("%s: expires at %d, %v; want %s", step.name, seconds, err, step.expireAt)
		}
	}
}

// A lost response is sent again: the statuses are kept, and the message stays bound.
func TestMessageWithLostResponses(t *testing.T) {
	store, table := newStore(t)
	for name, run := range map[string]func(reference string){
		"of a binding": func(reference string) {
			table.Transport.Losses = 1
			bind(t, store, smsAccount, reference, "id")
			find(t, store, smsAccount, reference, ledger.DeliveredToNetwork, "id")
		},
		"of a binding after a receipt": func(reference string) {
			find(t, store, smsAccount, reference, ledger.DeliveredToNetwork, "")
			table.Transport.Losses = 2
			bind(t, store, smsAccount, reference, "id", ledger.DeliveredToNetwork)
		},
		"of a receipt after the binding": func(reference string) {
			bind(t, store, smsAccount, reference, "id")
			table.Transport.Losses = 1
			find(t, store, smsAccount, reference, ledger.DeliveredToNetwork, "id")
		},
		"of a receipt": func(reference string) { // it may be kept twice, and is applied once
			table.Transport.Losses = 1
			one := []ledger.Status{ledger.DeliveredToNetwork}
			id, _, err := store.FindMessage(context.Background(), smsAccount, reference, one, time.Time{})
			if err != nil || id != "" {
				t.Fatalf("%q, %v", id, err)
			}
			early, err := store.BindMessage(context.Background(), smsAccount, reference, "id", time.Time{})
			if err != nil || len(slices.Compact(early)) != 1 || early[0] != ledger.DeliveredToNetwork {
				t.Fatalf("early %v, %v", early, err)
			}
		},
	} {
		t.Run(name, func(*testing.T) { run(name) })
	}
}

// The faults of the model: a write that failed keeps nothing, and one whose response was lost is there.
func TestMessageFaults(t *testing.T) {
	one := []ledger.Status{ledger.DeliveredToNetwork}
	for name, c := range map[string]struct {
		fault storetest.Fault
		early []ledger.Status // that a binding finds after a receipt with the fault
	}{
		"failed": {storetest.FailedBeforeApply, nil}, "lost": {storetest.LostResponse, one},
	} {
		l := storetest.NewLedger(t)
		l.FailNext(storetest.FindMessage, c.fault)
		id, early, err := l.FindMessage(context.Background(), smsAccount, "r", one, time.Time{})
		if id != "" || early != nil || !errors.Is(err, storetest.ErrInjected) {
			t.Errorf("%s: %q, %v, %v; want only the error", name, id, early, err)
		}
		bind(t, l, smsAccount, "r", "id", c.early...)
		l.FailNext(storetest.BindMessage, c.fault)
		if _, err := l.BindMessage(context.Background(), smsAccount, "s", "id", time.Time{}); err == nil {
			t.Errorf("%s: a binding with a fault has no error", name)
		}
		wantID := map[bool]string{true: "id"}[c.fault == storetest.LostResponse]
		find(t, l, smsAccount, "s", ledger.DeliveredToNetwork, wantID)
	}
}
