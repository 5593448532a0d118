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

// Random is a seeded source of bytes for tests.
func Random(seed int64) io.Reader {
	return rand.New(rand.NewSource(seed)) //nolint:gosec // reproducible on purpose
}

// NewProfile makes a profile that may do everything in Ivory Coast and Senegal with the sandbox.
func NewProfile(t testing.TB, name string, seed int64) *merchant.Profile {
	t.Helper()
	p, err := merchant.New(name, Random(seed), now)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	p.Operations = []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS}
	p.Countries, p.Operators = []string{"CI", "SN"}, []string{"sandbox"}
	p.OnBehalfOf = []string{"Shop"}
	return p
}

// Run runs the suite. Each case gets an empty registry from open.
func Run(t *testing.T, open func(t *testing.T) merchant.Registry) {
	cases := []struct {
		name string
		run  func(t *testing.T, r merchant.Registry)
	}{
		{"what is created is read back whole", readBack},
		{"an unknown id gives nil", unknown},
		{"a name is taken without regard to case, and for ever", nameTaken},
		{"of parallel creations of a name one wins", parallelNames},
		{"an id is not given twice", idTaken},
		{"creating the same profile again succeeds", createAgain},
		{"an update is fenced by the version", fenced},
		{"an update repeated after a lost answer succeeds", updateAgain},
		{"a profile that does not exist cannot be updated", gone},
		{"a name never changes", renamed},
		{"ids are listed and found by name", listed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func create(t *testing.T, r merchant.Registry, p *merchant.Profile) {
	t.Helper()
	if err := r.Create(context.Background(), p); err != nil {
		t.Fatalf("Create: %v", err)
	}
}

func read(t *testing.T, r merchant.Registry, id string) *merchant.Profile {
	t.Helper()
	p, err := r.Profile(context.Background(), id)
	if err != nil {
		t.Fatalf("Profile: %v", err)
	}
	return p
}

func encoded(t *testing.T, p *merchant.Profile) string {
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

func readBack(t *testing.T, r merchant.Registry) {
	p := NewProfile(t, "DemoShop", 1)
	p.HomeCountry, p.SenderNames, p.NotificationHosts = "SN", []string{"Démo"}, []string{"shop.example:8443"}
	p.NotifURL = "https://shop.example:8443/told?a=1&b=2"
	if _, err := merchant.IssueToken(p, Random(2), now); err != nil {
		t.Fatal(err)
	}
	if _, err := merchant.IssueClientSecret(p, Random(3), now); err != nil {
		t.Fatal(err)
	}
	if _, err := merchant.IssueWebhookSecret(p, 7, false, now); err != nil {
		t.Fatal(err)
	}
	create(t, r, p)
	if got, want := encoded(t, read(t, r, p.ID)), encoded(t, p); got != want {
		t.Errorf("read %s\nwant %s", got, want)
	}
}

func unknown(t *testing.T, r merchant.Registry) {
	if p := read(t, r, NewProfile(t, "Nobody", 9).ID); p != nil {
		t.Errorf("got %v, want nil", p)
	}
}

func nameTaken(t *testing.T, r merchant.Registry) {
	first := NewProfile(t, "DemoShop", 1)
	create(t, r, first)
	merchant.Suspend(first, now)
	if err := r.Update(context.Background(), first); err != nil {
		t.Fatal(err)
	}
	other := NewProfile(t, "demoSHOP", 2)
	wantError(t, r.Create(context.Background(), other), merchant.ErrNameTaken)
	if p := read(t, r, other.ID); p != nil {
		t.Error("the refused profile was stored")
	}
}

func parallelNames(t *testing.T, r merchant.Registry) {
	const rivals = 8
	results := make([]error, rivals)
	var group sync.WaitGroup
	for i := range rivals {
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
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if !errors.Is(err, merchant.ErrNameTaken) {
			t.Errorf("unexpected error %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d rivals got the name, want 1", won)
	}
}

func idTaken(t *testing.T, r merchant.Registry) {
	first := NewProfile(t, "First", 1)
	create(t, r, first)
	second := NewProfile(t, "Second", 1)
	wantError(t, r.Create(context.Background(), second), merchant.ErrIDTaken)
	if id, err := r.IDOf(context.Background(), "Second"); id != "" || err != nil {
		t.Errorf("the name of a refused profile is reserved: %q, %v", id, err)
	}
}

func createAgain(t *testing.T, r merchant.Registry) {
	p := NewProfile(t, "DemoShop", 1)
	create(t, r, p)
	create(t, r, p)
}

func fenced(t *testing.T, r merchant.Registry) {
	p := NewProfile(t, "DemoShop", 1)
	create(t, r, p)
	mine, theirs := read(t, r, p.ID), read(t, r, p.ID)
	mine.Countries = []string{"TN"}
	if err := r.Update(context.Background(), mine); err != nil {
		t.Fatalf("Update: %v", err)
	}
	if mine.Version != 2 {
		t.Errorf("version after the update = %d, want 2", mine.Version)
	}
	theirs.Countries = []string{"BF"}
	wantError(t, r.Update(context.Background(), theirs), merchant.ErrChanged)
	if theirs.Version != 1 {
		t.Errorf("a refused update raised the version to %d", theirs.Version)
	}
	if got := read(t, r, p.ID).Countries; !slices.Equal(got, []string{"TN"}) {
		t.Errorf("stored countries = %v", got)
	}
}

func updateAgain(t *testing.T, r merchant.Registry) {
	p := NewProfile(t, "DemoShop", 1)
	create(t, r, p)
	merchant.Suspend(p, now)
	again := p.Clone()
	for _, attempt := range []*merchant.Profile{p, again} {
		if err := r.Update(context.Background(), attempt); err != nil || attempt.Version != 2 {
			t.Fatalf("Update: %v, version %d", err, attempt.Version)
		}
	}
}

func gone(t *testing.T, r merchant.Registry) {
	wantError(t, r.Update(context.Background(), NewProfile(t, "Nobody", 1)), merchant.ErrGone)
}

func renamed(t *testing.T, r merchant.Registry) {
	p := NewProfile(t, "DemoShop", 1)
	create(t, r, p)
	p.Name = "OtherShop"
	wantError(t, r.Update(context.Background(), p), merchant.ErrChanged)
}

func listed(t *testing.T, r merchant.Registry) {
	var want []string
	for i, name := range []string{"One", "Two", "Three"} {
		p := NewProfile(t, name, int64(i))
		create(t, r, p)
		want = append(want, p.ID)
		for _, spelled := range []string{name, strings.ToUpper(name)} {
			if id, err := r.IDOf(context.Background(), spelled); id != p.ID || err != nil {
				t.Errorf("IDOf(%s) = %q, %v", spelled, id, err)
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
	if id, err := r.IDOf(context.Background(), "Four"); id != "" || err != nil {
		t.Errorf("IDOf of an unknown name = %q, %v", id, err)
	}
}
