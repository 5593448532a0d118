package merchant_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mobilegateway/proof/kits/merchanttest"
	"mobilegateway/shared/merchant"
)

// storeAndRead writes a profile as a store does, and reads it back.
func storeAndRead(t interface{ Fatal(...any) }, p *merchant.Profile) *merchant.Profile {
	next := p.Clone()
	next.Version++
	document, err := merchant.Encode(next)
	if err != nil {
		t.Fatal(err)
	}
	read, err := merchant.Decode(document)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// storeWithOlderProgram writes a profile as an older program, which does not know the mark of the last version and
// leaves it unchanged.
func storeWithOlderProgram(
	t interface{ Fatal(...any) }, p *merchant.Profile, change func([]merchant.WebhookSecret) []merchant.WebhookSecret,
) *merchant.Profile {
	text, err := merchant.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	document["version"], document["webhook_secrets"] = p.Version+1, change(slices.Clone(p.WebhookSecrets))
	if text, err = json.Marshal(document); err != nil {
		t.Fatal(err)
	}
	read, err := merchant.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// issueByOlderProgram numbers a secret from the highest active version.
func issueByOlderProgram(active []merchant.WebhookSecret) []merchant.WebhookSecret {
	issued := merchant.WebhookSecret{Version: 1, KeyNumber: 1}
	for _, s := range active {
		issued.Version = max(issued.Version, s.Version+1)
	}
	return append([]merchant.WebhookSecret{issued}, active[:min(1, len(active))]...)
}

func revokeByOlderProgram([]merchant.WebhookSecret) []merchant.WebhookSecret { return nil }

// A secret is derived from its version, so a reused version would restore a revoked secret.
func TestWebhookSecretVersionIsNeverReused(t *testing.T) {
	p := storeAndRead(t, merchanttest.NewProfile(t, "DemoShop", 1))
	for want := 1; want <= 4; want++ {
		issued, err := merchant.IssueWebhookSecret(p, 1, false, start)
		if err != nil || issued.Version != want {
			t.Fatalf("issued version %d (%v), want %d", issued.Version, err, want)
		}
		p = storeAndRead(t, p)
		if err := merchant.RevokeWebhookSecret(p, want, start); err != nil {
			t.Fatal(err)
		}
		p = storeAndRead(t, p)
	}
}

// In a profile without the mark, no revoked version is issued again.
func TestWebhookSecretVersionOfOlderProfile(t *testing.T) {
	for name, secrets := range map[string]string{
		"two active": `[{"version":2,"key_number":1,"created":"2026-03-01T00:00:00Z"},` +
			`{"version":1,"key_number":1,"created":"2026-03-01T00:00:00Z"}]`,
		"the second revoked":  `[{"version":1,"key_number":1,"created":"2026-03-01T00:00:00Z"}]`,
		"all of them revoked": `[]`,
	} {
		p, err := merchant.Decode([]byte(`{"id":"abcdefgh23456723","name":"DemoShop","status":"active",` +
			`"webhook_secrets":` + secrets + `,"version":5,"generation":1}`))
		if err != nil {
			t.Fatal(err)
		}
		issued, err := merchant.IssueWebhookSecret(p, 1, true, start)
		if err != nil || issued.Version != 6 { // five changes were stored, and each may have issued one
			t.Errorf("%s: issued version %d (%v), want 6", name, issued.Version, err)
		}
		document, err := merchant.Encode(p)
		if err != nil || !strings.Contains(string(document), `"last_webhook_secret":{"version":6,"stored":5}`) {
			t.Errorf("%s: %s, %v", name, document, err)
		}
	}
}

// TestWebhookSecretVersionsWithMixedPrograms lets this program and an older one change the same profile in turns. This
// program must never issue a version that either issued before.
func TestWebhookSecretVersionsWithMixedPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := merchant.New("DemoShop", merchanttest.SeededReader(1), start)
		if err != nil {
			t.Fatal(err)
		}
		p = storeAndRead(t, p)
		given := map[int]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			changes := []string{"issue", "revoke", "older issues", "older revokes", "other"}
			switch rapid.SampledFrom(changes).Draw(t, "change") {
			case "issue":
				issued, err := merchant.IssueWebhookSecret(p, 1, true, start)
				if err != nil || given[issued.Version] {
					t.Fatalf("version %d was issued before (%v)", issued.Version, err)
				}
				given[issued.Version], p = true, storeAndRead(t, p)
			case "revoke":
				for _, s := range p.WebhookSecrets {
					_ = merchant.RevokeWebhookSecret(p, s.Version, start)
				}
				p = storeAndRead(t, p)
			case "older issues":
				p = storeWithOlderProgram(t, p, issueByOlderProgram)
				given[p.WebhookSecrets[0].Version] = true
			case "older revokes":
				p = storeWithOlderProgram(t, p, revokeByOlderProgram)
			default:
				p = storeAndRead(t, p)
			}
		}
	})
}
