package entries

import (
	"time"

	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/dayindex"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// dayReader reads the keys of a merchant's day page by page.
type dayReader struct{ *dayindex.Reader }

// newDayReader returns a reader that begins at a cursor of that day.
func newDayReader(s *session.Session, p *merchant.Profile, day time.Time, cursor string) (dayReader, error) {
	of := dayindex.Day{MerchantID: p.ID, Day: day, Shards: p.ReadDayShards(), PageSize: PageSize}
	r, err := dayindex.NewReader(s.Stores.Ledger, of, cursor)
	return dayReader{r}, err
}

// page reads the next page. next is the cursor of the following one, "" at the end of the day.
func (r dayReader) page(s *session.Session) (keys []ledger.Key, next string, err error) {
	for len(keys) < PageSize {
		key, found, err := r.Next(s)
		if err != nil || !found {
			return keys, "", err
		}
		keys = append(keys, key.Key)
	}
	if r.Ended() {
		return keys, "", nil
	}
	return keys, r.Cursor(), nil
}
