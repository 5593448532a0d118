package ledger_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"mobilegateway/shared/ledger"
)

var uuid8 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// TestIDsNeverChange pins the derivations: after a change, every old charge could be charged again.
func TestIDsNeverChange(t *testing.T) {
	ids := map[string]string{
		ledger.ChargeID("m", "c", "r"):        "f6b93188-ab10-8de5-a298-56a20be8a72d",
		ledger.ChargeID("m", "", "r"):         "bc9f80dd-5ddf-82a1-8145-a0a17c5842b3",
		ledger.SMSID("m", "c"):                "e8273364-0c11-8bb2-a5b9-922575b5c4eb",
		ledger.ReferenceID("m", "r"):          "8af558d0-f55d-88f1-82f5-4c210e9575ce",
		ledger.PaymentTransactionID("Shop_1"): "4da5dfa1-8513-820e-b028-fa22047a8afd",
		ledger.NotificationID(ledger.Key{Kind: ledger.Payment, ID: "Shop_1"},
			ledger.Failed): "43db68fc-5574-8045-93a3-7fc87c594a85",
	}
	for got, want := range ids {
		if !uuid8.MatchString(got) {
			t.Errorf("%s is not a UUID of version 8", got)
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := ledger.UpstreamKey("Shop", strings.Repeat("c", 60),
		""); got != "Shop!fae8d78f02546735108a6060cc526d0081412ecf" {
		t.Errorf("upstream key %s", got)
	}
}

func TestChargeIDs(t *testing.T) {
	if ledger.ChargeID("m", "c", "r1") != ledger.ChargeID("m", "c", "r2") {
		t.Error("with a correlator the reference must not count")
	}
	assertDistinct(t, ledger.ChargeID("m", "x", ""), ledger.ChargeID("m", "", "x"), ledger.ChargeID("n", "x", ""),
		ledger.ChargeID("mx", "", ""),
		ledger.SMSID("m", "x"), ledger.ReferenceID("m", "x"), ledger.PaymentTransactionID("x"))
}

func assertDistinct(t *testing.T, texts ...string) {
	t.Helper()
	slices.Sort(texts)
	if distinct := slices.Compact(slices.Clone(texts)); len(distinct) != len(texts) {
		t.Errorf("not all differ: %q", texts)
	}
}

func TestUpstreamKey(t *testing.T) {
	cases := []struct{ name, merchant, correlator, reference, want string }{
		{"correlator", "Shop", "c-1", "r-1", "Shop.c-1"},
		{"reference", "Shop", "", "r-1", "Shop~r-1"},
		{"64 characters fit", "Shop", strings.Repeat("é", 59), "", "Shop." + strings.Repeat("é", 59)},
	}
	for _, c := range cases {
		if got := ledger.UpstreamKey(c.merchant, c.correlator, c.reference); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func TestUpstreamKeysNeverCollide(t *testing.T) {
	name := rapid.StringMatching(`[A-Za-z0-9]{1,20}`)
	text := rapid.OneOf(rapid.StringMatching(`[.~!A-Za-z0-9]{0,6}`), rapid.StringN(0, 120, -1))
	seen := map[string][3]string{}
	rapid.Check(t, func(t *rapid.T) {
		from := [3]string{name.Draw(t, "name"), text.Draw(t, "correlator"), text.Draw(t, "reference")}
		if from[1] != "" {
			from[2] = "" // does not count
		}
		key := ledger.UpstreamKey(from[0], from[1], from[2])
		if utf8.RuneCountInString(key) > ledger.MaxUpstreamKey {
			t.Fatalf("%d characters", utf8.RuneCountInString(key))
		}
		if before, found := seen[key]; found && before != from {
			t.Fatalf("%q and %q both give %q", before, from, key)
		}
		seen[key] = from
	})
}

// TestFingerprintOfAnOldRequestIsStable pins what the operations pass. An optional value that is always appended, even
// empty, changes every stored fingerprint: each repeat of an older request would get 409.
func TestFingerprintOfAnOldRequestIsStable(t *testing.T) {
	body := []byte(`{"amount":"500"}`)
	golden := map[string]string{
		ledger.Fingerprint(body, "alias", "CI"):          "Ozltjc-zGzJKogCms6RJRP6x2P2UzQBerRd45fH-Uqc",
		ledger.Fingerprint(body, "CI", "sandbox", "web"): "TwGsp_0cKuAoJ2V9CXDZlszcpuNLii-tvwpFYq_Wh90",
		ledger.Fingerprint(body, "alias", "", "CI"):      "xGNBv8as8PKMP1JzQTMywmpcSr8e_nR-F1bArK_PvoY",
		ledger.Fingerprint(body, "alias", "CI", ""):      "zT5aucoxFiBcPVPjEJ2T5OkIgAJeCrXxVzA6hKJbBDo",
	}
	for got, want := range golden {
		if got != want {
			t.Errorf("fingerprint %s, want %s as stored", got, want)
		}
	}
	if len(golden) != 4 {
		t.Error("an appended empty value does not change the fingerprint")
	}
}

func TestFingerprint(t *testing.T) {
	assertDistinct(t, ledger.Fingerprint(nil), ledger.Fingerprint(nil, ""), ledger.Fingerprint([]byte("ab")),
		ledger.Fingerprint([]byte("a"), "b"),
		ledger.Fingerprint(nil, "ab"), ledger.Fingerprint(nil, "a", "b"), ledger.Fingerprint(nil, "b", "a"))
}
