package gatewayctl

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"mobilegateway/shared/ledger"
)

type deliveriesCommands struct {
	List   deliveriesList   `cmd:"" help:"List what a merchant was told in a time range, and what it is still to be told."`
	Show   deliveriesShow   `cmd:"" help:"Show where one transaction's notifications stand, and each attempt."`
	Replay deliveriesReplay `cmd:"" help:"Send notifications again: those of one transaction, or of a merchant's time range."`
}

// replayLookback is how long before its status a transaction may have been created: what a time range finds.
const replayLookback = 4 * day

// progressEvery is how many deliveries lie between two lines of progress.
const progressEvery = 100

type deliveriesReplay struct {
	ID       string `name:"id" placeholder:"ID" help:"An order_id, or the request id of an SMS."`
	Merchant string `placeholder:"NAME" help:"The merchant's name or id."`
	From     string `placeholder:"TIME" help:"With --merchant: statuses that came at or after this (a UTC day, or RFC 3339)."`
	To       string `placeholder:"TIME" help:"With --merchant: statuses that came before this; a day is included."`
	Dead     bool   `help:"Only what was given up; not what was delivered."`
}

// replayResult is what became of a replay.
type replayResult struct {
	Queued int      `json:"queued"`
	Failed []string `json:"failed"`
}

// Run queues the notifications again, each under its own webhook-id. What is under way is left alone.
func (c *deliveriesReplay) Run(s *session) error {
	if (c.ID == "") == (c.Merchant == "") || (c.Merchant == "") != (c.From == "" && c.To == "") {
		return usageError("say --id, or --merchant with --from and --to")
	}
	keys, from, to, err := c.findKeys(s)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return errors.New("there is nothing to be sent again")
	}
	result := replayResult{Failed: []string{}}
	err = s.changes.execute(Action{"replay deliveries", firstNonEmpty(c.ID, c.Merchant)}, func() (string, error) {
		for i, key := range keys {
			if err := c.replayEntry(s, key, from, to); err != nil {
				result.Failed = append(result.Failed, key.String()+": "+err.Error())
			} else {
				result.Queued++
			}
			if (i+1)%progressEvery == 0 {
				fmt.Fprintf(s.Stderr, "%d of %d\n", i+1, len(keys))
			}
			if s.interruption() != nil {
				break
			}
		}
		done := fmt.Sprintf("%d of %s queued", result.Queued, plural(len(keys), "transaction"))
		if c.Merchant != "" {
			done = fmt.Sprintf("%s to %s: %s", formatTime(from), formatTime(to), done)
		}
		return done, s.replayError(result)
	})
	shown := s.show(result, table{{"queued", fmt.Sprint(result.Queued)}, {"failed", fmt.Sprint(len(result.Failed))}})
	return errors.Join(err, shown)
}

// interruption is the context's error: an interrupt ends a long act between two steps.
func (s *session) interruption() error { return s.Err() }

func (s *session) replayError(r replayResult) error {
	if err := s.interruption(); err != nil {
		return fmt.Errorf("interrupted after %s, which the same command would send once more: %w", plural(r.Queued, "transaction"), err)
	}
	if len(r.Failed) > 0 {
		return fmt.Errorf("%s could not be queued; the first: %s", plural(len(r.Failed), "transaction"), r.Failed[0])
	}
	return nil
}

// findKeys lists the transactions that have something to be sent again.
func (c *deliveriesReplay) findKeys(s *session) (keys []ledger.Key, from, to time.Time, err error) {
	if c.ID != "" {
		keys, err = c.byID(s)
		return keys, from, to, err
	}
	if from, to, err = parseRange(c.From, c.To); err != nil {
		return nil, from, to, err
	}
	p, err := s.findMerchant(c.Merchant)
	if err != nil {
		return nil, from, to, err
	}
	for e, err := range s.entriesBetween(p.ID, from.Add(-replayLookback), to) {
		if err != nil {
			return nil, from, to, err
		}
		if c.firstReplayable(e, from, to) != "" {
			keys = append(keys, e.Key)
		}
	}
	return keys, from, to, nil
}

// byID finds the payment or the SMS with an id, where it has something to be sent again.
func (c *deliveriesReplay) byID(s *session) ([]ledger.Key, error) {
	e, err := findNotifiedEntry(s, c.ID)
	if err != nil || c.firstReplayable(e, time.Time{}, time.Time{}) == "" {
		return nil, err
	}
	return []ledger.Key{e.Key}, nil
}

// firstReplayable is the earliest notification of a range, which may be open, that is delivered, dead or parked; "" for none. All after it go again
// with it.
func (c *deliveriesReplay) firstReplayable(e *ledger.Entry, from, to time.Time) string {
	within := func(n ledger.Notification) bool { return !n.At.Before(from) && (to.IsZero() || n.At.Before(to)) }
	if i := slices.IndexFunc(e.Delivered, within); i >= 0 && !c.Dead {
		return e.Delivered[i].ID
	}
	for _, n := range e.Outbox {
		if within(n) && (n.DeadReason != "" || n.Parked) {
			return n.ID
		}
	}
	return ""
}

// replayEntry replays one transaction.
func (c *deliveriesReplay) replayEntry(s *session, key ledger.Key, from, to time.Time) error {
	_, err := s.changes.changeEntry(key, func(e *ledger.Entry) error {
		if id := c.firstReplayable(e, from, to); id != "" && e.ReplayNotification(id, ledger.Timestamp(s.Now())) {
			return nil
		}
		return ledger.ErrUnchanged
	})
	return err
}
