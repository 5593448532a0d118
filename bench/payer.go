package main

import (
	"sync"
	"time"

	"mobilegateway/world/operators/kit"
)

// payer approves the sandbox's payments on request, and keeps the callbacks. It is safe for concurrent use.
type payer struct {
	mu        sync.Mutex
	later     []func() // what the sandbox does after a time
	callbacks map[string]kit.Outgoing
}

// config returns the sandbox's clock and its way of sending callbacks.
func (p *payer) config() kit.Config {
	return kit.Config{
		After: func(_ time.Duration, f func()) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.later = append(p.later, f)
		},
		Post: func(c kit.Outgoing, done func(int, error)) {
			p.mu.Lock()
			p.callbacks[c.Key] = c
			p.mu.Unlock()
			go done(200, nil) // under the sandbox's lock, which done needs
		},
	}
}

// approve approves all payments, and returns the callback of one: false if there is none.
func (p *payer) approve(order string) (kit.Outgoing, bool) {
	for {
		p.mu.Lock()
		later := p.later
		p.later = nil
		found, sent := p.callbacks[order]
		p.mu.Unlock()
		if sent || len(later) == 0 {
			return found, sent
		}
		for _, f := range later {
			f()
		}
	}
}
