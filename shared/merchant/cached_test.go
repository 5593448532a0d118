package merchant_test

import (
	"context"
	"errors"
	"testing"

	"mobilegateway/shared/merchant"
	"mobilegateway/shared/merchant/merchanttest"
)

func TestCachedStore(t *testing.T) {
	ctx, d := context.Background(), newDesk(t)
	cached := merchant.NewCached(d.store, cacheLife, d.now)
	ghost := merchanttest.NewProfile(t, "Ghost", 50).ID
	for range 3 {
		if p, err := cached.Profile(ctx, d.profile.ID); err != nil || p == nil || p.Name != "DemoShop" {
			t.Fatalf("Profile = %v, %v", p, err)
		}
		if p, err := cached.Profile(ctx, ghost); err != nil || p != nil {
			t.Fatalf("of nobody: %v, %v", p, err)
		}
	}
	d.wantReads(2)
	d.at = d.at.Add(cacheLife)
	gone := errors.New("gone")
	d.store.Fail(gone)
	if _, err := cached.Profile(ctx, d.profile.ID); !errors.Is(err, gone) {
		t.Errorf("error = %v", err)
	}
	d.store.Fail(nil)
	if p, err := cached.Profile(ctx, d.profile.ID); err != nil || p == nil {
		t.Errorf("after a failure: %v, %v", p, err)
	}
	d.wantReads(4)
}
