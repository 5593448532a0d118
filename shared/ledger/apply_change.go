package ledger

import "context"

// ApplyChange is ChangeKnown for a change that cannot fail. change reports whether it changed the entry; if not,
// nothing is stored.
func (b *Book) ApplyChange(ctx context.Context, known *Entry, change func(*Entry) bool) (*Entry, error) {
	return b.ChangeKnown(ctx, known, func(e *Entry) error {
		if !change(e) {
			return ErrUnchanged
		}
		return nil
	})
}
