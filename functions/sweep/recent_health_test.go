package sweep

import (
	"errors"
	"testing"
	"time"

	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/webhook"
)

func TestRecentHealth(t *testing.T) {
	endpoint := webhook.Endpoint{MerchantID: "shop", URL: "https://shop.example.com/a"}
	other := webhook.Endpoint{MerchantID: "shop", URL: "https://shop.example.com/b"}
	failing := webhook.Health{Endpoint: endpoint, Version: 1, Failures: 3}
	disabled := webhook.Health{Endpoint: endpoint, DisabledAt: time.Unix(1_800_000_000, 0)}
	errDown := errors.New("down")
	cases := []struct {
		name string
		// meanwhile happens after the health was read as healthy.
		meanwhile func(r *recentHealth, stored *storetest.EndpointHealth, now *time.Time)
		failures  int
		enabled   bool
		err       error
	}{
		{"another function stores failures", func(_ *recentHealth, stored *storetest.EndpointHealth, _ *time.Time) {
			stored.StoreHealth(failing)
		}, 0, true, nil},
		{"a moment later", func(_ *recentHealth, stored *storetest.EndpointHealth, now *time.Time) {
			stored.StoreHealth(failing)
			*now = now.Add(healthAge)
		}, 3, true, nil},
		{"the clock is set back", func(_ *recentHealth, stored *storetest.EndpointHealth, now *time.Time) {
			stored.StoreHealth(failing)
			*now = now.Add(-time.Nanosecond)
		}, 3, true, nil},
		{"the pass stores failures", func(r *recentHealth, _ *storetest.EndpointHealth, _ *time.Time) {
			_, _ = r.SaveHealth(t.Context(), webhook.Health{Endpoint: endpoint, Failures: 1, ChangedAt: r.now()})
		}, 1, true, nil},
		{"the pass disables it", func(r *recentHealth, _ *storetest.EndpointHealth, _ *time.Time) {
			_, _ = r.SaveDisabled(t.Context(), disabled)
		}, 0, false, nil},
		{"the table fails while it is kept", func(_ *recentHealth, stored *storetest.EndpointHealth, _ *time.Time) {
			stored.Err = errDown
		}, 0, true, nil},
		{"the table fails later", func(_ *recentHealth, stored *storetest.EndpointHealth, now *time.Time) {
			stored.Err = errDown
			*now = now.Add(healthAge)
		}, 0, true, errDown},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			now := time.Unix(1_800_000_000, 0)
			stored := storetest.NewEndpointHealth(func() time.Time { return now })
			r := &recentHealth{HealthStore: stored, now: func() time.Time { return now }}
			if health, err := r.Health(t.Context(), endpoint); err != nil || health.Failures != 0 {
				t.Fatalf("at first %+v, %v", health, err)
			}
			c.meanwhile(r, stored, &now)
			health, err := r.Health(t.Context(), endpoint)
			if !errors.Is(err, c.err) {
				t.Fatalf("the error is %v, want %v", err, c.err)
			}
			if err == nil && (health.Failures != c.failures || health.Enabled() != c.enabled) {
				t.Errorf("%d failures, enabled %t; want %d and %t",
					health.Failures, health.Enabled(), c.failures, c.enabled)
			}
		})
	}
	t.Run("endpoints are kept apart, and not without limit", func(t *testing.T) {
		stored := storetest.NewEndpointHealth(time.Now)
		r := &recentHealth{HealthStore: stored, now: time.Now}
		stored.StoreHealth(webhook.Health{Endpoint: other, DisabledAt: time.Unix(1, 0)})
		first, _ := r.Health(t.Context(), endpoint)
		second, _ := r.Health(t.Context(), other)
		if !first.Enabled() || second.Enabled() {
			t.Errorf("enabled: %t and %t, want only the first", first.Enabled(), second.Enabled())
		}
		for number := range maxRecentHealths {
			r.read[webhook.Endpoint{MerchantID: string(rune(number))}] = readHealth{}
		}
		_, _ = r.Health(t.Context(), webhook.Endpoint{MerchantID: "one more"})
		if len(r.read) > maxRecentHealths {
			t.Errorf("%d endpoints are kept, want at most %d", len(r.read), maxRecentHealths)
		}
	})
}
