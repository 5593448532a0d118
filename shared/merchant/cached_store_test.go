package merchant_test

import (
	"errors"
	"testing"

	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/shared/merchant"
)

func TestCachedStore(t *testing.T) {
	ctx, d := t.Context(), newAuthFixture(t)
	cached := merchant.NewCachedStore(d.store, cacheLife, d.now)
	unknownMerchant := merchanttest.NewProfile(t, "Ghost", 50).ID
	for range 3 {
		if p, err := cached.Profile(ctx, d.profile.ID); err != nil || p == nil || p.Name != "DemoShop" {
			t.Fatalf("Profile = %v, %v", p, err)
		}
		if p, err := cached.Profile(ctx, unknownMerchant); err != nil || p != nil {
			t.Fatalf("Profile of an unknown id = %v, %v", p, err)
		}
	}
	d.wantReads(2)
	d.currentTime = d.currentTime.Add(cacheLife)
	gone := errors.New("gone")
	d.store.Err = gone
	if _, err := cached.Profile(ctx, d.profile.ID); !errors.Is(err, gone) {
		t.Errorf("error of the store = %v", err)
	}
	d.store.Err = nil
	if p, err := cached.Profile(ctx, d.profile.ID); err != nil || p == nil {
		t.Errorf("after a failure: %v, %v", p, err)
	}
	d.wantReads(4)
}
