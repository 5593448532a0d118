package dynamo_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/merchant"
)

// now is the time of all changes in the suite.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestRegistry runs the conformance suite on a DynamoDB.
func TestRegistry(t *testing.T) {
	checkConformance(t, func(t *testing.T) merchant.Registry {
		registry, _ := newRegistry(t)
		return registry
	})
}

// TestRegistryOfModel runs the suite on the model of the tables, as the tests of other packages use it.
func TestRegistryOfModel(t *testing.T) {
	checkConformance(t, func(*testing.T) merchant.Registry { return storetest.NewMerchants() })
}

// checkConformance runs the suite. Each case gets an empty registry from open.
func checkConformance(t *testing.T, open func(t *testing.T) merchant.Registry) {
	cases := []struct {
		name string
		run  func(f fixture)
	}{
		{"a created profile is read back unchanged", createAndRead},
		{"an unknown id returns nil", readUnknown},
		{"a name is reserved permanently, without regard to case", nameTaken},
		{"one of several concurrent creations of a name succeeds", concurrentCreate},
		{"an id is never reused", idTaken},
		{"a repeated creation of the same profile succeeds", repeatCreate},
		{"an update is fenced by the version", staleUpdateRefused},
		{"an update repeated after a lost response succeeds", repeatUpdate},
		{"a profile that does not exist cannot be updated", updateMissing},
		{"a name never changes", nameIsImmutable},
		{"ids are listed and found by name", listAndFind},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(fixture{T: t, registry: open(t)}) })
	}
}

// fixture is an empty registry, with calls that end the test on an unexpected error.
type fixture struct {
	*testing.T
	registry merchant.Registry
}

func (f fixture) create(name string, seed int64) *merchant.Profile {
	f.Helper()
	p := merchanttest.NewProfile(f, name, seed)
	f.wantError(f.registry.Create(f.Context(), p), nil)
	return p
}

func (f fixture) update(p *merchant.Profile) {
	f.Helper()
	f.wantError(f.registry.Update(f.Context(), p), nil)
}

func (f fixture) read(id string) *merchant.Profile {
	f.Helper()
	p, err := f.registry.Profile(f.Context(), id)
	f.wantError(err, nil)
	return p
}

func (f fixture) wantError(got, want error) {
	f.Helper()
	if !errors.Is(got, want) {
		f.Fatalf("error = %v, want %v", got, want)
	}
}

// wantID requires the id that a name is reserved for, "" for none.
func (f fixture) wantID(name, want string) {
	f.Helper()
	if id, err := f.registry.IDByName(f.Context(), name); id != want || err != nil {
		f.Errorf("IDByName(%s) = %q, %v; want %q", name, id, err, want)
	}
}

func createAndRead(f fixture) {
	p := merchanttest.NewProfile(f, "DemoShop", 1)
	p.HomeCountry, p.SenderNames, p.NotificationHosts = "SN", []string{"Démo"}, []string{"shop.example:8443"}
	p.NotifURL = "https://shop.example:8443/notify?a=1&b=2"
	_, tokenErr := merchant.LongLivedToken.Issue(p, merchanttest.SeededReader(2), now)
	_, clientErr := merchant.ClientSecret.Issue(p, merchanttest.SeededReader(3), now)
	_, webhookErr := merchant.IssueWebhookSecret(p, 7, false, now)
	f.wantError(errors.Join(tokenErr, clientErr, webhookErr, f.registry.Create(f.Context(), p)), nil)
	got, gotErr := merchant.Encode(f.read(p.ID))
	want, wantErr := merchant.Encode(p)
	f.wantError(errors.Join(gotErr, wantErr), nil)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		f.Errorf("the stored profile differs (-created +read):\n%s", diff)
	}
}

func readUnknown(f fixture) {
	if p := f.read(merchanttest.NewProfile(f, "Unknown", 9).ID); p != nil {
		f.Errorf("got %v, want nil", p)
	}
}

func nameTaken(f fixture) {
	first := f.create("DemoShop", 1)
	merchant.Suspend(first, now)
	f.update(first)
	other := merchanttest.NewProfile(f, "demoSHOP", 2)
	f.wantError(f.registry.Create(f.Context(), other), merchant.ErrNameTaken)
	if p := f.read(other.ID); p != nil {
		f.Error("the refused profile was stored")
	}
}

func concurrentCreate(f fixture) {
	const writers = 8
	results := make([]error, writers)
	var group sync.WaitGroup
	for i := range writers {
		p := merchanttest.NewProfile(f, "DemoShop", int64(i))
		group.Go(func() {
			for range 20 { // a store may refuse while another transaction is in progress
				results[i] = f.registry.Create(f.Context(), p)
				if results[i] == nil || errors.Is(results[i], merchant.ErrNameTaken) {
					return
				}
			}
		})
	}
	group.Wait()
	created := 0
	for _, err := range results {
		if err == nil {
			created++
		} else if !errors.Is(err, merchant.ErrNameTaken) {
			f.Errorf("unexpected error %v", err)
		}
	}
	if created != 1 {
		f.Errorf("%d creations got the name, want 1", created)
	}
}

func idTaken(f fixture) {
	f.create("First", 1)
	f.wantError(f.registry.Create(f.Context(), merchanttest.NewProfile(f, "Second", 1)), merchant.ErrIDTaken)
	f.wantID("Second", "")
}

func repeatCreate(f fixture) {
	f.create("DemoShop", 1)
	f.create("DemoShop", 1)
}

func staleUpdateRefused(f fixture) {
	p := f.create("DemoShop", 1)
	first, stale := f.read(p.ID), f.read(p.ID)
	first.Countries = []string{"TN"}
	f.update(first)
	stale.Countries = []string{"BF"}
	f.wantError(f.registry.Update(f.Context(), stale), merchant.ErrVersionConflict)
	if first.Version != 2 || stale.Version != 1 {
		f.Errorf("version %d after an update, %d after a refused one; want 2 and 1", first.Version, stale.Version)
	}
	if got := f.read(p.ID).Countries; !slices.Equal(got, []string{"TN"}) {
		f.Errorf("stored countries = %v", got)
	}
}

func repeatUpdate(f fixture) {
	p := f.create("DemoShop", 1)
	merchant.Suspend(p, now)
	for _, attempt := range []*merchant.Profile{p.Clone(), p} {
		f.update(attempt)
		if attempt.Version != 2 {
			f.Fatalf("version %d, want 2", attempt.Version)
		}
	}
}

func updateMissing(f fixture) {
	f.wantError(f.registry.Update(f.Context(), merchanttest.NewProfile(f, "Unknown", 1)), merchant.ErrNotFound)
}

func nameIsImmutable(f fixture) {
	p := f.create("DemoShop", 1)
	p.Name = "OtherShop"
	f.wantError(f.registry.Update(f.Context(), p), merchant.ErrVersionConflict)
}

func listAndFind(f fixture) {
	var want []string
	for i, name := range []string{"One", "Two", "Three"} {
		p := f.create(name, int64(i))
		want = append(want, p.ID)
		f.wantID(name, p.ID)
		f.wantID(strings.ToUpper(name), p.ID)
	}
	f.wantID("Four", "")
	got, err := f.registry.IDs(f.Context())
	f.wantError(err, nil)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("IDs (-want +got):\n%s", diff)
	}
}
