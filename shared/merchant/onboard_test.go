package merchant_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/shared/merchant"
)

func TestNames(t *testing.T) {
	cases := map[string]bool{
		"A": true, "DemoShop": true, "shop24": true, "24": true, strings.Repeat("x", 20): true,
		"": false, strings.Repeat("x", 21): false, "Demo_Shop": false, "Demo Shop": false, "Démo": false,
		"demo-shop": false, "shop.": false, "shop\n": false, "ｓｈｏｐ": false, "магазин": false,
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
		t.Errorf("id %q is not 16 characters of base32 in lower case", p.ID)
	}
	want := &merchant.Profile{
		ID: p.ID, Name: "DemoShop", Status: merchant.StatusActive, Version: 1, TokenGeneration: 1,
		CreatedAt: start, UpdatedAt: start,
	}
	if diff := cmp.Diff(want, p, cmpopts.IgnoreUnexported(merchant.Profile{})); diff != "" {
		t.Errorf("a new profile is active without any entitlement (-want +got):\n%s", diff)
	}
	if p.Allows(merchant.OperationPay, "", "") {
		t.Error("a new merchant may pay")
	}
	if _, err := merchant.New("DemoShop", strings.NewReader("few"), start); err == nil {
		t.Error("an id was made of too few random bytes")
	}
}

func TestRotation(t *testing.T) {
	for prefix, kind := range map[string]merchant.CredentialKind{
		"gwl_": merchant.LongLivedToken, "gwc_": merchant.ClientSecret,
	} {
		t.Run(kind.Name, func(t *testing.T) {
			p, random := merchanttest.NewProfile(t, "DemoShop", 1), merchanttest.SeededReader(2)
			for range merchant.MaxActive {
				text, err := kind.Issue(p, random, start)
				if err != nil || !strings.HasPrefix(text, prefix+p.ID+"_") || len(text) != 73 {
					t.Fatalf("issue: %d characters, %v", len(text), err)
				}
			}
			if _, err := kind.Issue(p, random, start); !errors.Is(err, merchant.ErrTooManyActive) {
				t.Fatalf("a third: %v", err)
			}
			if _, err := kind.Replace(p, random, start); err != nil {
				t.Fatalf("replace: %v", err)
			}
			checkNumbers(t, kind.List(p), 2, 3)
			if err := kind.Revoke(p, 2, start, start); err != nil {
				t.Fatalf("revoke: %v", err)
			}
			if _, err := kind.Issue(p, random, start); err != nil {
				t.Fatalf("issue after a revocation: %v", err)
			}
			checkNumbers(t, kind.List(p), 3, 4)
			if err := kind.Revoke(p, 1, start, start); !errors.Is(err, merchant.ErrCredentialNotFound) {
				t.Errorf("revoke of a dropped credential: %v", err)
			}
			if _, err := kind.Replace(merchanttest.NewProfile(t, "Other", 2), random, start); err != nil {
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
	issueToken(t, p, 1)
	for _, at := range []time.Time{start.Add(time.Hour), start.Add(2 * time.Hour)} {
		if err := merchant.LongLivedToken.Revoke(p, 1, at, start); err != nil {
			t.Fatal(err)
		}
	}
	if !p.Tokens[0].ExpiresAt.Equal(start.Add(time.Hour)) {
		t.Errorf("a later revocation moved the expiry to %v", p.Tokens[0].ExpiresAt)
	}
}

func TestOnlyHashesAreStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := merchant.New("DemoShop", merchanttest.SeededReader(rapid.Int64().Draw(t, "id")), start)
		if err != nil {
			t.Fatal(err)
		}
		token, err := merchant.LongLivedToken.Issue(p, merchanttest.SeededReader(rapid.Int64().Draw(t, "token")), start)
		if err != nil {
			t.Fatal(err)
		}
		document, err := merchant.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(document), token[21:64]) {
			t.Fatal("the profile contains the token")
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
	if _, err := merchant.IssueWebhookSecret(p, 2, true, start); err != nil {
		t.Fatal(err)
	}
	want := []merchant.WebhookSecret{
		{Version: 3, KeyNumber: 2, CreatedAt: start}, {Version: 2, KeyNumber: 2, CreatedAt: start},
	}
	if diff := cmp.Diff(want, p.WebhookSecrets); diff != "" {
		t.Fatalf("a third secret replaces the oldest (-want +got):\n%s", diff)
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
		t.Error("a suspended merchant may still pay")
	}
	merchant.Resume(p, start)
	if !p.Active() || p.TokenGeneration != 2 {
		t.Errorf("after Resume: status %s, generation %d, want active and 2", p.Status, p.TokenGeneration)
	}
}
