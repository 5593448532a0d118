package delivery

import (
	"context"
	"time"

	"mobilegateway/shared/ledger"
)

// StoreTimeout bounds the write of Store.
const StoreTimeout = 2 * time.Second

// Store applies a pure change to an entry and stores it, unless the change returns the zero value: then it changed
// nothing. It returns the entry as stored, and what the change returned when it was applied last. The write has its own
// time limit, since the step before it may have used up the invocation's.
func Store[R comparable](
	ctx context.Context, book *ledger.Book, e *ledger.Entry, change func(*ledger.Entry) R,
) (stored *ledger.Entry, result R, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StoreTimeout)
	defer cancel()
	var unchanged R
	stored, err = book.ApplyChange(ctx, e, func(e *ledger.Entry) bool {
		result = change(e)
		return result != unchanged
	})
	return stored, result, err
}
