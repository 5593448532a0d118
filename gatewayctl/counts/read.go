package counts

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"mobilegateway/gatewayctl/counts/daycount"
	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
)

// counter counts the transactions of one day.
type counter struct {
	*session.Session
	day      time.Time
	profiles []*merchant.Profile
}

// count counts all merchants.
func (c *counter) count() ([]MerchantCount, error) {
	counts := []MerchantCount{}
	for _, p := range c.profiles {
		found, err := c.countMerchant(p)
		if err != nil {
			return nil, err
		}
		counts = append(counts, newMerchantCount(p, found))
	}
	return counts, nil
}

// store counts all merchants, and stores each count that differs from the stored one. A stored count stays if a later
// one fails.
func (c *counter) store() (counts []MerchantCount, done string, err error) {
	keys := output.MapAll(c.profiles, func(p *merchant.Profile) daycount.Key { return daycount.KeyOf(p.ID, c.day) })
	before, err := load(c.Session, keys)
	if err != nil {
		return nil, "", err
	}
	counts, changes, transactions := []MerchantCount{}, map[string]int{}, 0
	summary := func() string {
		return fmt.Sprintf("%s of %s: %d new, %d changed, %d same, %d kept",
			output.Plural(transactions, "transaction"), output.Plural(len(counts), "merchant"),
			changes[changeNew], changes[changeChanged], changes[changeSame], changes[changeKept])
	}
	for i, p := range c.profiles {
		found, err := c.countMerchant(p)
		change := ""
		if err == nil {
			found, change, err = c.save(keys[i], before, found)
		}
		if err != nil {
			return counts, summary(), fmt.Errorf("%s: %w", p.Name, err)
		}
		one := newMerchantCount(p, found)
		one.Change = change
		counts = append(counts, one)
		changes[one.Change]++
		transactions += one.Total.Number
	}
	return counts, summary(), nil
}

// save stores a count unless it is the stored one, and returns the count that is then stored and what changed. A stored
// count stays if it has transactions that the ledger does not have any more (decision "retention").
func (c *counter) save(
	key daycount.Key, before map[daycount.Key]string, found daycount.Count,
) (stored daycount.Count, change string, err error) {
	form, isCounted := before[key]
	if !isCounted {
		return found, changeNew, c.Stores.Counts.Save(c, key, found.Encode())
	}
	stored, err = daycount.Decode(form)
	switch {
	case errors.Is(err, daycount.ErrVersion):
		return found, "", err
	case form == found.Encode():
		return found, changeSame, nil
	case !found.HasAll(stored): // a damaged count has no rows
		return stored, changeKept, nil
	}
	return found, changeChanged, c.Stores.Counts.Save(c, key, found.Encode())
}

// countMerchant counts a merchant's transactions of the day, in all partitions.
func (c *counter) countMerchant(p *merchant.Profile) (found daycount.Count, err error) {
	for shard := range p.ReadDayShards() {
		query := ledger.DayQuery{MerchantID: p.ID, Day: c.day, Shard: shard, Limit: ledgerdynamo.MaxPage}
		for more := true; more; more = query.Cursor != "" {
			var keys []ledger.DayKey
			if keys, query.Cursor, err = c.Stores.Ledger.Day(c, query); err != nil {
				return found, err
			}
			if err := c.addEntries(&found, keys); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// addEntries counts the entries of keys.
func (c *counter) addEntries(to *daycount.Count, keys []ledger.DayKey) error {
	found, err := entries.ReadBatches(c.Session, output.MapAll(keys, func(k ledger.DayKey) ledger.Key { return k.Key }))
	for _, e := range found {
		if e.Kind != ledger.Reference {
			to.Add(e)
		}
	}
	return err
}

// load loads stored counts, batch by batch.
func load(s *session.Session, keys []daycount.Key) (map[daycount.Key]string, error) {
	loaded := map[daycount.Key]string{}
	for batch := range slices.Chunk(keys, dynamoitem.MaxBatch) {
		left := batch
		err := entries.Retry(s, func() (int, error) {
			forms, unread, err := s.Stores.Counts.Load(s, left)
			for key, form := range forms {
				loaded[key] = form
			}
			left = unread
			return len(left), err
		})
		if err != nil {
			return nil, err
		}
	}
	return loaded, nil
}
