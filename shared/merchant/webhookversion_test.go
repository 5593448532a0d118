package merchant_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mobilegateway/shared/merchant"
	"mobilegateway/shared/merchant/merchanttest"
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

// storeWithOlderProgram writes a profile as the program did that knew nothing of the last version: what it does not know stays as it
// was, and it numbers from the highest that is there.
func storeWithOlderProgram(t interface{ Fatal(...any) }, p *merchant.Profile, change func(issuedSecrets []merchant.WebhookSecret) []merchant.WebhookSecret) *merchant.Profile {
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

func olderProgramChange(issue bool) func([]merchant.WebhookSecret) []merchant.WebhookSecret {
	return func(issuedSecrets []merchant.WebhookSecret) []merchant.WebhookSecret {
		if !issue {
			return nil
		}
		version := 1
		for _, s := range issuedSecrets {
			version = max(version, s.Version+1)
		}
		return append([]merchant.WebhookSecret{{Version: version, KeyNumber: 1}}, issuedSecrets[:min(1, len(issuedSecrets))]...)
	}
}

// A secret derives from its version: a version that is given twice is a revoked secret that is live again.
func TestWebhookSecretVersionIsNeverReused(t *testing.T) {
	p := storeAndRead(t, merchanttest.NewProfile(t, "DemoShop", 1))
	for want := 1; want <= 4; want++ {
		issued, err := merchant.IssueWebhookSecret(p, 1, false, start)
		if err != nil || issued.Version != want {
			t.Fatalf("issued %+v, %v; want version %d", issued, err, want)
		}
		p = storeAndRead(t, p)
		if err := merchant.RevokeWebhookSecret(p, want, start); err != nil {
			t.Fatal(err)
		}
		p = storeAndRead(t, p)
	}
}

// Profiles that stood before the last version was kept: whatever was revoked of them is not issued again.
func TestWebhookSecretVersionOfOlderProfile(t *testing.T) {
	for name, field := range map[string]string{
		"two live":            `"webhook_secrets":[{"version":2,"key_number":1,"created":"2026-03-01T00:00:00Z"},{"version":1,"key_number":1,"created":"2026-03-01T00:00:00Z"}],`,
		"the second revoked":  `"webhook_secrets":[{"version":1,"key_number":1,"created":"2026-03-01T00:00:00Z"}],`,
		"all of them revoked": ``,
	} {
		p, err := merchant.Decode([]byte(`{"id":"abcdefgh23456723","name":"DemoShop","status":"active",` + field + `"version":5,"generation":1}`))
		if err != nil {
			t.Fatal(err)
		}
		issued, err := merchant.IssueWebhookSecret(p, 1, true, start)
		if err != nil || issued.Version != 6 { // five changes were stored, and each may have issued one
			t.Errorf("%s: issued %+v, %v", name, issued, err)
		}
		document, err := merchant.Encode(p)
		if err != nil || !strings.Contains(string(document), `"last_webhook_secret":{"version":6,"stored":5}`) {
			t.Errorf("%s: %s, %v", name, document, err)
		}
	}
}

// TestWebhookSecretVersionsWithMixedPrograms lets this program and the one before write the same profile in turns: this one never gives
// a version that either gave before.
func TestWebhookSecretVersionsWithMixedPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := merchant.New("DemoShop", merchanttest.SeededReader(1), start)
		if err != nil {
			t.Fatal(err)
		}
		p = storeAndRead(t, p)
		given := map[int]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			switch rapid.SampledFrom([]string{"issue", "revoke", "older issues", "older revokes", "other"}).Draw(t, "change") {
			case "issue":
				issued, err := merchant.IssueWebhookSecret(p, 1, true, start)
				if err != nil || given[issued.Version] {
					t.Fatalf("%+v, %v: given before", issued, err)
				}
				given[issued.Version], p = true, storeAndRead(t, p)
			case "revoke":
				for _, s := range p.WebhookSecrets {
					_ = merchant.RevokeWebhookSecret(p, s.Version, start)
				}
				p = storeAndRead(t, p)
			case "older issues":
				p = storeWithOlderProgram(t, p, olderProgramChange(true))
				given[p.WebhookSecrets[0].Version] = true
			case "older revokes":
				p = storeWithOlderProgram(t, p, olderProgramChange(false))
			default:
				p = storeAndRead(t, p)
			}
		}
	})
}
