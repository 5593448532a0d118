package webhook

import (
	"context"
	"net"
	"net/url"
	"strings"
	"time"
)

const (
	// maxConsecutiveFailures is how many failures in a row close a server's fast path.
	maxConsecutiveFailures = 5
	// slowThreshold is how long an attempt may last before its server counts as slow: the fast path waits for each answer,
	// and a slow server would hold up what comes behind it.
	slowThreshold = 3 * time.Second
	// HealthRetention is how long failures are remembered after the last one that was stored: longer than any delivery's
	// schedule. What was disabled is remembered for ever.
	HealthRetention = 7 * 24 * time.Hour
)

// Endpoint names where a merchant is told: the merchant and the exact URL.
type Endpoint struct {
	MerchantID string
	URL        string
}

// Server names the merchant's server behind an endpoint.
type Server struct {
	MerchantID string
	// Origin is scheme://host:port, in lower case and with its port.
	Origin string
}

// Server is the server behind the endpoint. A URL that is none, which no notification has, is an origin of its own.
func (e Endpoint) Server() Server {
	address, err := url.Parse(e.URL)
	if err != nil || address.Host == "" {
		return Server{MerchantID: e.MerchantID, Origin: e.URL}
	}
	scheme, port := strings.ToLower(address.Scheme), address.Port()
	switch {
	case port == "" && scheme == "http":
		port = "80"
	case port == "":
		port = "443"
	}
	host := strings.ToLower(address.Hostname())
	return Server{MerchantID: e.MerchantID, Origin: scheme + "://" + net.JoinHostPort(host, port)}
}

// Health is what is remembered of an endpoint: how its server has taken notifications, whatever their URL, and whether
// this very URL is disabled. The zero value, and an endpoint of which nothing is stored, is a healthy one.
type Health struct {
	Endpoint
	// Version counts stored changes of the server's health from 1, DisabledVersion those of the URL being disabled; 0 where
	// nothing is stored.
	Version         int64
	DisabledVersion int64
	// Failures is the number of the server's failed attempts in a row.
	Failures int
	// LastReason and LastStatus are those of the last failed attempt; of a disabled URL, of the one that disabled it.
	LastReason string
	LastStatus int
	ChangedAt  time.Time
	// Slow is true where the server's last attempt took longer than slowThreshold, however it ended.
	Slow bool
	// DisabledAt is when the URL was disabled, by a 410 or by a person; zero while it is enabled.
	DisabledAt time.Time
}

// AllowsFastPath tells whether a notification may be posted at once, rather than by the sweep alone.
func (h Health) AllowsFastPath() bool {
	return h.Failures < maxConsecutiveFailures && !h.Slow && h.Enabled()
}

// Enabled tells whether notifications may be posted at all. Those of a disabled endpoint are parked.
func (h Health) Enabled() bool { return h.DisabledAt.IsZero() }

// AfterAttempt is the health after an attempt that did not end in Gone; changed is false where there is nothing to store: a
// success of a healthy server, or one more failure of one whose fast path is closed already. So health costs no write
// while all goes well, and few while it does not.
func (h Health) AfterAttempt(result Result, now time.Time) (next Health, changed bool) {
	next = h
	next.ChangedAt, next.Slow = now, result.Duration > slowThreshold
	if result.Outcome == Delivered {
		next.Failures, next.LastReason, next.LastStatus = 0, "", 0
		return next, h.Failures > 0 || next.Slow != h.Slow
	}
	next.Failures, next.LastReason, next.LastStatus = h.Failures+1, result.Reason, result.Status
	return next, h.Failures < maxConsecutiveFailures || next.Slow != h.Slow
}

// AfterDisable is the health after a 410, which is about the URL alone: a server that says so is well. changed is false where
// it is disabled already.
func (h Health) AfterDisable(result Result, now time.Time) (next Health, changed bool) {
	if !h.Enabled() {
		return h, false
	}
	next = h
	next.LastReason, next.LastStatus, next.ChangedAt, next.DisabledAt = result.Reason, result.Status, now, now
	return next, true
}

// AfterEnable is the health after a person enabled the URL again. Its server is as it was.
func (h Health) AfterEnable(now time.Time) Health {
	h.LastReason, h.LastStatus, h.ChangedAt, h.DisabledAt = "", 0, now, time.Time{}
	return h
}

// HealthStore keeps Health: an item a server, and one a URL that was disabled.
type HealthStore interface {
	// Health reads what is known of an endpoint; a healthy zero value where nothing is.
	Health(ctx context.Context, endpoint Endpoint) (Health, error)
	// SaveHealth stores the server's health where the stored one still has h.Version, as h.Version+1. saved is false when
	// another hand was faster.
	SaveHealth(ctx context.Context, h Health) (saved bool, err error)
	// SaveDisabled stores whether the URL is disabled, where the stored one still has h.DisabledVersion, as
	// h.DisabledVersion+1. saved is false when another hand was faster.
	SaveDisabled(ctx context.Context, h Health) (saved bool, err error)
}
