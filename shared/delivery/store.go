package delivery

import (
	"context"
	"time"

	"mobilegateway/shared/ledger"
)

// StoreTimeout bounds the write of Store.
const StoreTimeout = 2 * time.Second

// Store applies a pure change to an entry and stores it. It returns the entry and the transition as stored. The write
// has its own time limit, since the step before it may have used up the invocation's.
func Store(
	ctx context.Context, book *ledger.Book, e *ledger.Entry, change func(*ledger.Entry) ledger.Transition,
) (stored *ledger.Entry, made ledger.Transition, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StoreTimeout)
	defer cancel()
	return book.ChangeKnown(ctx, e, func(e *ledger.Entry) (ledger.Transition, error) { return change(e), nil })
}
