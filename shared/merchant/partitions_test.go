package merchant_test

import (
	"strconv"
	"testing"

	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// decision "day-shards": new transactions go to the number that is set, and the greatest number ever is read.
func TestDayShards(t *testing.T) {
	p := &merchant.Profile{}
	for i, c := range []struct{ set, written, read int }{
		{1, 1, 1}, {4, 4, 4}, {2, 2, 4}, {1, 1, 4}, {8, 8, 8}, {3, 3, 8},
	} {
		p.SetDayShards(c.set)
		used := map[int]bool{}
		for n := range 200 {
			shard := p.DayShard(ledger.Key{Kind: ledger.Payment, ID: "Shop_" + strconv.Itoa(n)})
			used[shard] = true
			if shard < 0 || shard >= p.ReadDayShards() {
				t.Fatalf("step %d: partition %d is not read", i, shard)
			}
		}
		if len(used) != c.written || p.ReadDayShards() != c.read {
			t.Errorf("step %d: %d written and %d read, want %+v", i, len(used), p.ReadDayShards(), c)
		}
		if i == 0 && p.Partitions != (merchant.Partitions{}) {
			t.Errorf("one partition is stored as %+v", p.Partitions)
		}
	}
	old := merchant.Partitions{DayShards: 5} // a profile that names no greatest number
	old.SetDayShards(2)
	if old.ReadDayShards() != 5 {
		t.Errorf("%d read, want 5", old.ReadDayShards())
	}
}

func TestDayShardsAreBounded(t *testing.T) {
	const most = merchant.MaxDayShards
	for shards, valid := range map[int]bool{-1: false, 0: true, 1: true, most: true, most + 1: false} {
		p := merchanttest.NewProfile(t, "DemoShop", 1)
		p.DayShards = shards
		if err := p.Validate(false); (err == nil) != valid {
			t.Errorf("%d: %v", shards, err)
		}
	}
}
