package webhook

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"strings"
	"time"
)

const (
	// maxConsecutiveFailures is how many failures in a row close a server's fast path.
	maxConsecutiveFailures = 5
	// slowThreshold is how long an attempt may last before its server counts as slow. The fast path waits for each
	// response, so a slow server would delay the notifications behind it.
	slowThreshold = 3 * time.Second
	// QuickThreshold is how long an attempt may last that shows that a slow server is well again. It is the shortest
	// time that the fast path gives a server. So one that is always slower is cut off once, and not again.
	QuickThreshold = time.Second
	// HealthRetention is how long failures are kept after the last one that was stored: longer than any delivery
	// schedule. A disabled URL is kept without limit.
	HealthRetention = 7 * 24 * time.Hour
)

// Endpoint is the address of a merchant's notifications: the merchant and the exact URL.
type Endpoint struct {
	MerchantID string
	URL        string
}

// Server is the merchant's server behind an endpoint.
type Server struct {
	MerchantID string
	// Origin is scheme://host:port, in lower case and with its port.
	Origin string
}

// Server returns the server behind the endpoint. An invalid URL, which no notification has, is its own origin.
func (e Endpoint) Server() Server {
	address, err := url.Parse(e.URL)
	if err != nil || address.Host == "" {
		return Server{MerchantID: e.MerchantID, Origin: e.URL}
	}
	scheme, port := strings.ToLower(address.Scheme), address.Port()
	if port == "" && scheme == "http" {
		port = "80"
	}
	host := strings.ToLower(address.Hostname())
	return Server{MerchantID: e.MerchantID, Origin: scheme + "://" + net.JoinHostPort(host, cmp.Or(port, "443"))}
}

// Health is the delivery history of an endpoint: the failures of its server, over all URLs, and whether this URL is
// disabled. The zero value is healthy; so is an endpoint without stored items.
type Health struct {
	Endpoint
	// Version counts the stored changes of the server's health from 1, DisabledVersion those of the disabled URL; 0
	// means that nothing is stored.
	Version         int64
	DisabledVersion int64
	// Failures is the number of the server's failed attempts in a row.
	Failures int
	// LastReason and LastStatus describe the last failed attempt, or the one that disabled the URL.
	LastReason string
	LastStatus int
	ChangedAt  time.Time
	// Slow is true after an attempt, failed or not, that was cut off or took longer than slowThreshold, until one takes
	// at most QuickThreshold.
	Slow bool
	// DisabledAt is when a 410 or a person disabled the URL; zero while it is enabled.
	DisabledAt time.Time
}

// AllowsFastPath reports whether the relay may post a notification at once. If not, only the sweep posts it.
func (h Health) AllowsFastPath() bool {
	return h.Failures < maxConsecutiveFailures && !h.Slow && h.Enabled()
}

// Enabled reports whether notifications may be posted. Those of a disabled endpoint are parked.
func (h Health) Enabled() bool { return h.DisabledAt.IsZero() }

// AfterAttempt returns the health after an attempt that did not end in Gone. changed is false if there is nothing to
// store: a success of a healthy server, or another failure of a server whose fast path is closed already. So a healthy
// server costs no write, and a failing one costs few. A failure that began before the server's recovery does not count:
// a request that hung during the outage must not close the fast path again. An attempt that was cut off is not a
// failure, it only makes the server slow.
func (h Health) AfterAttempt(result Result, now time.Time) (next Health, changed bool) {
	next = h
	recovered := h.Version > 0 && h.Failures == 0 && !h.Slow
	if recovered && result.Outcome != Delivered && now.Add(-result.Duration).Before(h.ChangedAt) {
		return h, false
	}
	next.ChangedAt = now
	isSlow := result.Outcome == CutOff || result.Duration > slowThreshold
	if isSlow || result.Duration <= QuickThreshold {
		next.Slow = isSlow
	}
	switch result.Outcome {
	case CutOff:
		return next, !h.Slow
	case Delivered:
		next.Failures, next.LastReason, next.LastStatus = 0, "", 0
		return next, h.Failures > 0 || next.Slow != h.Slow
	}
	next.Failures, next.LastReason, next.LastStatus = h.Failures+1, result.Reason, result.Status
	return next, h.Failures < maxConsecutiveFailures || next.Slow != h.Slow
}

// AfterReopen returns the health after a person said that the server is well again. changed is false if its fast path
// is open.
func (h Health) AfterReopen(now time.Time) (next Health, changed bool) {
	if h.Failures < maxConsecutiveFailures && !h.Slow {
		return h, false
	}
	h.Failures, h.Slow, h.LastReason, h.LastStatus, h.ChangedAt = 0, false, "", 0, now
	return h, true
}

// AfterDisable returns the health after a 410, or after a person disabled the URL. It concerns only the URL: the server
// itself is healthy. changed is false if the URL is disabled already.
func (h Health) AfterDisable(result Result, now time.Time) (next Health, changed bool) {
	if !h.Enabled() {
		return h, false
	}
	next = h
	next.LastReason, next.LastStatus, next.ChangedAt, next.DisabledAt = result.Reason, result.Status, now, now
	return next, true
}

// AfterEnable returns the health after a person enabled the URL again. The server's part does not change.
func (h Health) AfterEnable(now time.Time) Health {
	h.LastReason, h.LastStatus, h.ChangedAt, h.DisabledAt = "", 0, now, time.Time{}
	return h
}

// HealthStore stores Health: one item for each server that failed, and one for each URL that was disabled.
type HealthStore interface {
	// Health reads the health of an endpoint; it is healthy if nothing is stored.
	Health(ctx context.Context, endpoint Endpoint) (Health, error)
	// SaveHealth stores the server's part as h.Version+1, if the stored version is still h.Version. saved is false if
	// another write came first.
	SaveHealth(ctx context.Context, h Health) (saved bool, err error)
	// SaveDisabled stores the URL's part as h.DisabledVersion+1, if the stored version is still h.DisabledVersion.
	// saved is false if another write came first.
	SaveDisabled(ctx context.Context, h Health) (saved bool, err error)
}
