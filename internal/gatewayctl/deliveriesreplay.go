package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"mobilegateway/shared/ledger"
)

// progressEvery is the number of transactions between two lines of progress.
const progressEvery = 100

type deliveriesReplay struct {
	ID       string `arg:"" optional:"" help:"An order_id, or the request id of an SMS."`
	Merchant string `placeholder:"NAME" help:"Instead of the id: the merchant's name or id, with --from and --to."`
	timeRange
	DeadLetters bool `help:"Only dead letters, not what was delivered."`
}

type replayResult struct {
	Queued int      `json:"queued"`
	Failed []string `json:"failed"`
}

// err returns the error of a replay that did not queue everything.
func (r replayResult) err(interrupted error) error {
	switch {
	case interrupted != nil:
		return fmt.Errorf("interrupted after %s, which the same command would send once more: %w",
			plural(r.Queued, "transaction"), interrupted)
	case len(r.Failed) > 0:
		return fmt.Errorf("%s could not be queued, run the command again for them; the first: %s",
			plural(len(r.Failed), "transaction"), r.Failed[0])
	}
	return nil
}

// Run queues the notifications again, each with its own webhook-id. It skips those that wait for an attempt.
func (c *deliveriesReplay) Run(s *session) error {
	if (c.ID == "") == (c.Merchant == "") || c.ID != "" && (!c.From.IsZero() || !c.To.IsZero()) {
		return usageError(`expected "<id>", or --merchant with --from and --to`)
	}
	keys, err := c.findKeys(s)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return errors.New("there is nothing to send again: deliveries show lists a transaction's notifications")
	}
	result := replayResult{Failed: []string{}}
	err = s.execute("replay deliveries", cmp.Or(c.ID, c.Merchant), func() (string, error) {
		replay := changeIf(func(e *ledger.Entry) bool {
			id := c.firstReplayable(e)
			return id != "" && e.ReplayNotification(id, ledger.Timestamp(s.Now()))
		})
		for i, key := range keys {
			if _, err := s.changeEntry(key, replay); err != nil {
				result.Failed = append(result.Failed, key.String()+": "+err.Error())
			} else {
				result.Queued++
			}
			if (i+1)%progressEvery == 0 {
				fmt.Fprintf(s.Stderr, "%d of %d\n", i+1, len(keys))
			}
			if s.Err() != nil {
				break
			}
		}
		done := fmt.Sprintf("%d of %s queued", result.Queued, plural(len(keys), "transaction"))
		if c.Merchant != "" {
			done = fmt.Sprintf("%s to %s: %s", formatTime(c.From.Time), formatTime(c.end()), done)
		}
		return done, result.err(s.Err())
	})
	rows := table{{"queued", strconv.Itoa(result.Queued)}, {"failed", strconv.Itoa(len(result.Failed))}}
	return errors.Join(err, s.show(result, rows))
}

// findKeys lists the transactions with a notification to send again.
func (c *deliveriesReplay) findKeys(s *session) (keys []ledger.Key, err error) {
	if c.ID != "" {
		e, err := s.findEntry(c.ID, ledger.Payment, ledger.SMS)
		if err == nil && c.firstReplayable(e) != "" {
			keys = []ledger.Key{e.Key}
		}
		return keys, err
	}
	for e, err := range s.entriesInRange(c.Merchant, c.timeRange, firstDay) {
		if err != nil {
			return nil, err
		}
		if c.firstReplayable(e) != "" {
			keys = append(keys, e.Key)
		}
	}
	return keys, nil
}

// firstReplayable returns the id of the range's earliest notification that is delivered, dead or parked, "" for none. A
// replay sends it and all after it. The range is open for a single id.
func (c *deliveriesReplay) firstReplayable(e *ledger.Entry) string {
	within := func(n ledger.Notification) bool { return c.contains(n.At) }
	if i := slices.IndexFunc(e.Delivered, within); i >= 0 && !c.DeadLetters {
		return e.Delivered[i].ID
	}
	for _, n := range e.Outbox {
		if within(n) && (n.DeadReason != "" || n.Parked) {
			return n.ID
		}
	}
	return ""
}
