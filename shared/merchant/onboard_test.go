package merchant_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobilegateway/shared/merchant"
	"mobilegateway/shared/merchant/merchanttest"
)

func TestNames(t *testing.T) {
	cases := map[string]bool{
		"A": true, "DemoShop": true, "shop24": true, "24": true, strings.Repeat("x", 20): true,
		"": false, strings.Repeat("x", 21): false, "Demo_Shop": false, "Demo Shop": false, "Démo": false, "demo-shop": false,
		"shop.": false, "shop\n": false, "ｓｈｏｐ": false, "магазин": false,
	}
	for name, want := range cases {
		if merchant.ValidName(name) != want {
			t.Errorf("ValidName(%q) = %v", name, !want)
		}
		if _, err := merchant.New(name, merchanttest.SeededReader(1), start); (err == nil) != want {
			t.Errorf("New(%q): %v", name, err)
		}
	}
}

func TestNew(t *testing.T) {
	p, err := merchant.New("DemoShop", merchanttest.SeededReader(1), start.Add(123456))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.ID) != 16 || strings.ContainsAny(p.ID, "_/+=ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t.Errorf("id %q", p.ID)
	}
	if !p.Active() || p.Version != 1 || p.TokenGeneration != 1 || !p.CreatedAt.Equal(start) {
		t.Errorf("profile %+v", p)
	}
	if p.Allows(merchant.OperationPay, "", "") || len(p.Tokens) != 0 {
		t.Error("a new merchant is entitled to something")
	}
	if _, err := merchant.New("DemoShop", strings.NewReader("few"), start); err == nil {
		t.Error("an id was made of too few random bytes")
	}
}

// credentials are the two kinds of issued secrets, which follow the same rules.
var credentials = []struct {
	name    string
	prefix  string
	issue   func(*merchant.Profile, int64) (string, error)
	replace func(*merchant.Profile, int64) (string, error)
	revoke  func(p *merchant.Profile, number int, at time.Time) error
	list    func(*merchant.Profile) []merchant.Credential
}{
	{
		"tokens", "gwl_",
		func(p *merchant.Profile, seed int64) (string, error) {
			return merchant.IssueToken(p, merchanttest.SeededReader(seed), start)
		},
		func(p *merchant.Profile, seed int64) (string, error) {
			return merchant.ReplaceToken(p, merchanttest.SeededReader(seed), start)
		},
		func(p *merchant.Profile, number int, at time.Time) error {
			return merchant.RevokeToken(p, number, at, start)
		},
		func(p *merchant.Profile) []merchant.Credential { return p.Tokens },
	},
	{
		"client secrets", "gwc_",
		func(p *merchant.Profile, seed int64) (string, error) {
			return merchant.IssueClientSecret(p, merchanttest.SeededReader(seed), start)
		},
		func(p *merchant.Profile, seed int64) (string, error) {
			return merchant.ReplaceClientSecret(p, merchanttest.SeededReader(seed), start)
		},
		func(p *merchant.Profile, number int, at time.Time) error {
			return merchant.RevokeClientSecret(p, number, at, start)
		},
		func(p *merchant.Profile) []merchant.Credential { return p.ClientSecrets },
	},
}

func TestRotation(t *testing.T) {
	for _, kind := range credentials {
		t.Run(kind.name, func(t *testing.T) {
			p := merchanttest.NewProfile(t, "DemoShop", 1)
			for seed := range int64(merchant.MaxActive) {
				text, err := kind.issue(p, seed)
				if err != nil || !strings.HasPrefix(text, kind.prefix+p.ID+"_") || len(text) != 73 {
					t.Fatalf("issue: %d characters, %v", len(text), err)
				}
			}
			if _, err := kind.issue(p, 3); !errors.Is(err, merchant.ErrTooManyActive) {
				t.Fatalf("a third: %v", err)
			}
			if _, err := kind.replace(p, 3); err != nil {
				t.Fatalf("replace: %v", err)
			}
			checkNumbers(t, kind.list(p), 2, 3)
			if err := kind.revoke(p, 2, start); err != nil {
				t.Fatalf("revoke: %v", err)
			}
			if _, err := kind.issue(p, 4); err != nil {
				t.Fatalf("an expired one does not make room: %v", err)
			}
			checkNumbers(t, kind.list(p), 3, 4)
			if err := kind.revoke(p, 1, start); !errors.Is(err, merchant.ErrCredentialNotFound) {
				t.Errorf("revoking one that is gone: %v", err)
			}
			if _, err := kind.replace(merchanttest.NewProfile(t, "Other", 2), 1); err != nil {
				t.Errorf("replace on a new profile: %v", err)
			}
		})
	}
}

func checkNumbers(t *testing.T, list []merchant.Credential, want ...int) {
	t.Helper()
	var got []int
	for _, c := range list {
		got = append(got, c.Number)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("numbers %v, want %v", got, want)
	}
}

func TestRevokingDoesNotProlong(t *testing.T) {
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	if _, err := merchant.IssueToken(p, merchanttest.SeededReader(1), start); err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{start.Add(time.Hour), start.Add(2 * time.Hour)} {
		if err := merchant.RevokeToken(p, 1, at, start); err != nil {
			t.Fatal(err)
		}
	}
	if !p.Tokens[0].ExpiresAt.Equal(start.Add(time.Hour)) {
		t.Errorf("expires %v", p.Tokens[0].ExpiresAt)
	}
}

func TestOnlyHashesAreStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := merchant.New("DemoShop", merchanttest.SeededReader(rapid.Int64().Draw(t, "id")), start)
		if err != nil {
			t.Fatal(err)
		}
		token, err := merchant.IssueToken(p, merchanttest.SeededReader(rapid.Int64().Draw(t, "token")), start)
		if err != nil {
			t.Fatal(err)
		}
		document, err := merchant.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(document), token[21:64]) {
			t.Fatal("the token stands in the profile")
		}
	})
}

func TestWebhookSecrets(t *testing.T) {
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	for _, key := range []int{1, 2} {
		if _, err := merchant.IssueWebhookSecret(p, key, false, start); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := merchant.IssueWebhookSecret(p, 2, false, start); !errors.Is(err, merchant.ErrTooManyActive) {
		t.Fatalf("a third: %v", err)
	}
	issued, err := merchant.IssueWebhookSecret(p, 2, true, start)
	if err != nil || issued.Version != 3 || issued.KeyNumber != 2 {
		t.Fatalf("replacing: %+v, %v", issued, err)
	}
	if len(p.WebhookSecrets) != 2 || p.WebhookSecrets[0] != issued || p.WebhookSecrets[1].Version != 2 {
		t.Fatalf("live: %+v", p.WebhookSecrets)
	}
	if err := merchant.RevokeWebhookSecret(p, 3, start); err != nil || len(p.WebhookSecrets) != 1 {
		t.Fatalf("revoke: %v", err)
	}
	if err := merchant.RevokeWebhookSecret(p, 3, start); !errors.Is(err, merchant.ErrCredentialNotFound) {
		t.Errorf("revoke again: %v", err)
	}
}

func TestSuspendAndResume(t *testing.T) {
	p := merchanttest.NewProfile(t, "DemoShop", 1)
	merchant.Suspend(p, start)
	if p.Active() || p.Allows(merchant.OperationPay, "CI", "sandbox") {
		t.Error("a suspended merchant may do something")
	}
	merchant.Resume(p, start)
	if !p.Active() || p.TokenGeneration != 2 {
		t.Errorf("after resuming: %s, generation %d", p.Status, p.TokenGeneration)
	}
}
