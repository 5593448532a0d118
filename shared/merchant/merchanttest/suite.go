// Package merchanttest is the suite that every merchant.Registry must pass. It ships with nothing.
package merchanttest

import (
	"context"
	"errors"
	"io"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mobilegateway/shared/merchant"
)

// now is the time of the suite; nothing in a registry depends on it.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// SeededReader is a seeded source of bytes for tests.
func SeededReader(seed int64) io.Reader {
	return rand.New(rand.NewSource(seed)) //nolint:gosec // reproducible on purpose
}

// NewProfile makes a profile that may do everything in Ivory Coast and Senegal with the sandbox.
func NewProfile(t testing.TB, name string, seed int64) *merchant.Profile {
	t.Helper()
	p, err := merchant.New(name, SeededReader(seed), now)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	p.Operations = []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS}
	p.Countries, p.Operators = []string{"CI", "SN"}, []string{"sandbox"}
	p.OnBehalfOf = []string{"Shop"}
	return p
}

// Run runs the suite. Each case gets an empty registry from open.
func Run(t *testing.T, newRegistry func(t *testing.T) merchant.Registry) {
	cases := []struct {
		name string
		run  func(t *testing.T, r merchant.Registry)
	}{
		{"what is created is read back whole", createAndRead},
		{"an unknown id gives nil", readUnknown},
		{"a name is taken without regard to case, and for ever", nameTaken},
		{"of parallel creations of a name one wins", concurrentCreate},
		{"an id is not given twice", idTaken},
		{"creating the same profile again succeeds", repeatCreate},
		{"an update is fenced by the version", staleUpdateRefused},
		{"an update repeated after a lost answer succeeds", repeatUpdate},
		{"a profile that does not exist cannot be updated", updateMissing},
		{"a name never changes", nameIsImmutable},
		{"ids are listed and found by name", listAndFind},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, newRegistry(t)) })
	}
}

func createProfile(t *testing.T, r merchant.Registry, p *merchant.Profile) {
	t.Helper()
	if err := r.Create(context.Background(), p); err != nil {
		t.Fatalf("Create: %v", err)
	}
}

func readProfile(t *testing.T, r merchant.Registry, id string) *merchant.Profile {
	t.Helper()
	p, err := r.Profile(context.Background(), id)
	if err != nil {
		t.Fatalf("Profile: %v", err)
	}
	return p
}

func encodeProfile(t *testing.T, p *merchant.Profile) string {
	t.Helper()
	document, err := merchant.Encode(p)
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	return string(document)
}

func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("error = %v, want %v", got, want)
	}
}

func createAndRead(t *testing.T, r merchant.Registry) {
	p := NewProfile(t, "DemoShop", 1)
	p.HomeCountry, p.SenderNames, p.NotificationHosts = "SN", []string{"Démo"}, []string{"shop.example:8443"}
	p.NotifURL = "https://shop.example:8443/told?a=1&b=2"
	if _, err := merchant.IssueToken(p, SeededReader(2), now); err != nil {
		t.Fatal(err)
	}
	if _, err := merchant.IssueClientSecret(p, SeededReader(3), now); err != nil {
		t.Fatal(err)
	}
	if _, err := merchant.IssueWebhookSecret(p, 7, false, now); err != nil {
		t.Fatal(err)
	}
	createProfile(t, r, p)
	if got, want := encodeProfile(t, readProfile(t, r, p.ID)), encodeProfile(t, p); got != want {
		t.Errorf("read %s\nwant %s", got, want)
	}
}

func readUnknown(t *testing.T, r merchant.Registry) {
	if p := readProfile(t, r, NewProfile(t, "Nobody", 9).ID); p != nil {
		t.Errorf("got %v, want nil", p)
	}
}

func nameTaken(t *testing.T, r merchant.Registry) {
	first := NewProfile(t, "DemoShop", 1)
	createProfile(t, r, first)
	merchant.Suspend(first, now)
	if err := r.Update(context.Background(), first); err != nil {
		t.Fatal(err)
	}
	other := NewProfile(t, "demoSHOP", 2)
	wantError(t, r.Create(context.Background(), other), merchant.ErrNameTaken)
	if p := readProfile(t, r, other.ID); p != nil {
		t.Error("the refused profile was stored")
	}
}

func concurrentCreate(t *testing.T, r merchant.Registry) {
	const writers = 8
	results := make([]error, writers)
	var group sync.WaitGroup
	for i := range writers {
		p := NewProfile(t, "DemoShop", int64(i))
		group.Add(1)
		go func() {
			defer group.Done()
			for range 20 { // a store may answer that a rival's transaction is under way
				results[i] = r.Create(context.Background(), p)
				if results[i] == nil || errors.Is(results[i], merchant.ErrNameTaken) {
					return
				}
			}
		}()
	}
	group.Wait()
	created := 0
	for _, err := range results {
		if err == nil {
			created++
		} else if !errors.Is(err, merchant.ErrNameTaken) {
			t.Errorf("unexpected error %v", err)
		}
	}
	if created != 1 {
		t.Errorf("%d rivals got the name, want 1", created)
	}
}

func idTaken(t *testing.T, r merchant.Registry) {
	first := NewProfile(t, "First", 1)
	createProfile(t, r, first)
	second := NewProfile(t, "Second", 1)
	wantError(t, r.Create(context.Background(), second), merchant.ErrIDTaken)
	if id, err := r.IDByName(context.Background(), "Second"); id != "" || err != nil {
		t.Errorf("the name of a refused profile is reserved: %q, %v", id, err)
	}
}

func repeatCreate(t *testing.T, r merchant.Registry) {
	p := NewProfile(t, "DemoShop", 1)
	createProfile(t, r, p)
	createProfile(t, r, p)
}

func staleUpdateRefused(t *testing.T, r merchant.Registry) {
	p := NewProfile(t, "DemoShop", 1)
	createProfile(t, r, p)
	mine, theirs := readProfile(t, r, p.ID), readProfile(t, r, p.ID)
	mine.Countries = []string{"TN"}
	if err := r.Update(context.Background(), mine); err != nil {
		t.Fatalf("Update: %v", err)
	}
	if mine.Version != 2 {
		t.Errorf("version after the update = %d, want 2", mine.Version)
	}
	theirs.Countries = []string{"BF"}
	wantError(t, r.Update(context.Background(), theirs), merchant.ErrVersionConflict)
	if theirs.Version != 1 {
		t.Errorf("a refused update raised the version to %d", theirs.Version)
	}
	if got := readProfile(t, r, p.ID).Countries; !slices.Equal(got, []string{"TN"}) {
		t.Errorf("stored countries = %v", got)
	}
}

func repeatUpdate(t *testing.T, r merchant.Registry) {
	p := NewProfile(t, "DemoShop", 1)
	createProfile(t, r, p)
	merchant.Suspend(p, now)
	again := p.Clone()
	for _, attempt := range []*merchant.Profile{p, again} {
		if err := r.Update(context.Background(), attempt); err != nil || attempt.Version != 2 {
			t.Fatalf("Update: %v, version %d", err, attempt.Version)
		}
	}
}

func updateMissing(t *testing.T, r merchant.Registry) {
	wantError(t, r.Update(context.Background(), NewProfile(t, "Nobody", 1)), merchant.ErrNotFound)
}

func nameIsImmutable(t *testing.T, r merchant.Registry) {
	p := NewProfile(t, "DemoShop", 1)
	createProfile(t, r, p)
	p.Name = "OtherShop"
	wantError(t, r.Update(context.Background(), p), merchant.ErrVersionConflict)
}

func listAndFind(t *testing.T, r merchant.Registry) {
	var want []string
	for i, name := range []string{"One", "Two", "Three"} {
		p := NewProfile(t, name, int64(i))
		createProfile(t, r, p)
		want = append(want, p.ID)
		for _, spelling := range []string{name, strings.ToUpper(name)} {
			if id, err := r.IDByName(context.Background(), spelling); id != p.ID || err != nil {
				t.Errorf("IDOf(%s) = %q, %v", spelling, id, err)
			}
		}
	}
	got, err := r.IDs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("IDs = %v, want %v", got, want)
	}
	if id, err := r.IDByName(context.Background(), "Four"); id != "" || err != nil {
		t.Errorf("IDOf of an unknown name = %q, %v", id, err)
	}
}
