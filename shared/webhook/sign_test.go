package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	official "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"

	"mobilegateway/shared/keyring"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// testKey returns a key of the webhook ring whose bytes count up from its number.
func testKey(number int) keyring.Key {
	value := make([]byte, keyring.KeySize)
	for i := range value {
		value[i] = byte(number + i)
	}
	return keyring.Key{Number: number, Value: value, AddedAt: start}
}

// twoSecrets are a merchant's secrets while the first one is replaced.
func twoSecrets() []Secret {
	return []Secret{
		DeriveSecret(testKey(2), "aaaabbbbccccdddd", 2), DeriveSecret(testKey(1), "aaaabbbbccccdddd", 1),
	}
}

// TestStandardWebhooksLibraryVerifies verifies as most merchants do, with the official library.
func TestStandardWebhooksLibraryVerifies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[A-Za-z0-9_-]{1,40}`).Draw(t, "id")
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		nanoseconds := rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")
		at := time.Unix(rapid.Int64Range(1, 1<<40).Draw(t, "at"), nanoseconds)
		secrets := twoSecrets()
		headers := http.Header{}
		headers.Set(HeaderID, id)
		headers.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
		headers.Set(HeaderSignature, Sign(secrets, id, at, body))
		for i, secret := range secrets {
			verifier, err := official.NewWebhook(secret.Text())
			if err != nil {
				t.Fatalf("secret %d: %v", i, err)
			}
			if err := verifier.VerifyIgnoringTimestamp(body, headers); err != nil {
				t.Fatalf("secret %d does not verify: %v", i, err)
			}
			if verifier.VerifyIgnoringTimestamp(append(body, 'x'), headers) == nil {
				t.Fatal("a changed body verifies")
			}
		}
		otherMerchant, err := official.NewWebhook(DeriveSecret(testKey(1), "aaaabbbbccccdddd", 3).Text())
		if err != nil || otherMerchant.VerifyIgnoringTimestamp(body, headers) == nil {
			t.Fatalf("another secret verifies (%v)", err)
		}
	})
}

// TestSignatureExample pins the scheme and the derivation: a change would break every merchant's verification. The
// signature was made with the official Python library from the same secret.
func TestSignatureExample(t *testing.T) {
	secret := DeriveSecret(testKey(1), "aaaabbbbccccdddd", 1)
	if got := secret.Text(); got != exampleSecret {
		t.Errorf("secret %s, want %s", got, exampleSecret)
	}
	got := Sign([]Secret{secret}, "msg_1", time.Unix(1767225600, 999), []byte(`{"status":"successful","state":"é&<"}`))
	if got != exampleSignature {
		t.Errorf("signature %s, want %s", got, exampleSignature)
	}
}

func TestDerivedSecretsDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, c := range []struct {
		name     string
		key      int
		merchant string
		version  int
	}{
		{"the first", 1, "aaaabbbbccccdddd", 1},
		{"another version", 1, "aaaabbbbccccdddd", 2},
		{"another merchant", 1, "aaaabbbbcccceeee", 1},
		{"another key", 2, "aaaabbbbccccdddd", 1},
		{"a digit in the merchant id", 1, "aaaabbbbccccdddd1", 1},
		{"version eleven", 1, "aaaabbbbccccdddd", 11},
	} {
		text := DeriveSecret(testKey(c.key), c.merchant, c.version).Text()
		if other, twice := seen[text]; twice {
			t.Errorf("%s has the secret of %s", c.name, other)
		}
		seen[text] = c.name
		if !strings.HasPrefix(text, "whsec_") || text != DeriveSecret(testKey(c.key), c.merchant, c.version).Text() {
			t.Errorf("%s: %q has no whsec_ prefix, or differs when derived again", c.name, text)
		}
	}
}

const (
	exampleSecret    = "whsec_5xXGiF7dftGIkBDMD52jgYAJfVplMFRKvhataIxA9+E="
	exampleSignature = "v1,QvUgsKe/IgodCUsy435Jpsesf1A37EgUJsODuM9vFWk="
)
