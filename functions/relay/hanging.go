package relay

import (
	"sync"
	"time"

	"mobilegateway/shared/webhook"
)

const (
	// maxHanging is how many servers of a merchant may be cut off within hangingPeriod before the merchant's posts are
	// left to the sweep. A merchant can use a new server, without known health, for each order, and each of them would
	// delay a batch.
	maxHanging = 8
	// hangingPeriod is how long servers that were cut off are remembered.
	hangingPeriod = time.Minute
)

// hangingServers are the servers that this process has cut off in the present period. The zero value has none.
type hangingServers struct {
	mutex      sync.Mutex
	since      time.Time
	byMerchant map[string]map[webhook.Server]bool
}

// add remembers a server that was cut off.
func (h *hangingServers) add(server webhook.Server, now time.Time) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.forget(now)
	if h.byMerchant[server.MerchantID] == nil {
		h.byMerchant[server.MerchantID] = map[webhook.Server]bool{}
	}
	h.byMerchant[server.MerchantID][server] = true
}

// tooMany reports whether so many servers of a merchant were cut off that none of them is posted to.
func (h *hangingServers) tooMany(merchantID string, now time.Time) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.forget(now)
	return len(h.byMerchant[merchantID]) >= maxHanging
}

// forget begins a new period once the present one is over, also if the clock was set back.
func (h *hangingServers) forget(now time.Time) {
	if age := now.Sub(h.since); h.byMerchant == nil || age < 0 || age >= hangingPeriod {
		h.since, h.byMerchant = now, map[string]map[webhook.Server]bool{}
	}
}
