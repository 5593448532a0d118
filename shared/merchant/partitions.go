package merchant

import "mobilegateway/shared/ledger"

// MaxDayShards bounds the partitions of a merchant's day. One takes about 1,000 writes a second. A list or an export
// costs one query for each partition and day.
const MaxDayShards = 32

// SetDayShards sets the number of partitions that new transactions are written to. All that were ever used stay read.
func (p *Partitions) SetDayShards(shards int) {
	p.MostDayShards = max(p.MostDayShards, p.DayShards, shards)
	p.DayShards = shards
	if p.MostDayShards <= 1 {
		*p = Partitions{} // as a profile that never had more than one
	}
}

// DayShard returns the partition that a new transaction is written to.
func (p *Partitions) DayShard(key ledger.Key) int { return ledger.DayShardAmong(key, p.DayShards) }

// ReadDayShards returns how many partitions of each day are read, from 1.
func (p *Partitions) ReadDayShards() int { return max(1, p.DayShards, p.MostDayShards) }

func (p *Partitions) validate(errs *errorList) {
	if p.DayShards < 0 || p.DayShards > MaxDayShards {
		errs.add("the partitions of a day must be from 1 to %d", MaxDayShards)
	}
}
