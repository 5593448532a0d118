package sweep_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/proof/kits/operationtest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
)

// The cost of a sweep depends on the due entries, not on the size of the table: 16 queries, and one read and two writes
// for each due entry. The embedded engine's writes are slower in a larger table, so TestNothingDue has 100,000 payments
// in memory.
func TestRequestsOnTheTable(t *testing.T) {
	table := dynamotest.NewTable(t)
	store := dynamo.New(table.Client, table.Name)
	s := newFixture(t)
	s.Operator.SetStatus("Failed")
	s.Book = &ledger.Book{Store: store, Reader: store, Now: s.Clock.Now, Rand: &operationtest.UniqueReader{}}
	s.sweep.Queue, s.sweep.Book = store, s.Book
	insert := func(e *ledger.Entry) {
		if _, err := store.Insert(t.Context(), e, ledger.Reserve); err != nil {
			t.Fatal(err)
		}
	}
	assertRequests := func(what string, want map[string]int) {
		t.Helper()
		table.Transport.TakeCounts()
		s.runSweep(t)
		if diff := cmp.Diff(want, table.Transport.TakeCounts()); diff != "" {
			t.Errorf("requests with %s (-want +got):\n%s", what, diff)
		}
	}
	oneEntry := map[string]int{"Query": 16, "GetItem": 1, "PutItem": 2}
	for _, final := range []int{0, 100} {
		for i := range final {
			e := s.NewReservedPayment(fmt.Sprint("DemoShop_", i))
			e.State, e.Status, e.FinalAt = ledger.Done, ledger.Successful, e.CreatedAt
			e.Reschedule()
			insert(e)
		}
		among := fmt.Sprint(" among ", final, " final payments")
		assertRequests("nothing due"+among, map[string]int{"Query": 16})
		insert(s.StoreDueNotification(fmt.Sprint("DemoShop_notified-", final)))
		assertRequests("a notification"+among, oneEntry)
		pollDue := func(e *ledger.Entry) { e.Poll.At = e.CreatedAt }
		insert(s.StorePendingPayment(fmt.Sprint("DemoShop_pending-", final), pollDue))
		assertRequests("a lookup"+among, oneEntry)
	}
}
