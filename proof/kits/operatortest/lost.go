package operatortest

import (
	"slices"
	"strings"
	"testing"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/secret"
)

// lostResponse: the gateway never repeats a payment to a platform without a ResendWindow. A lookup finds it, if it has
// all that it needs. The platform knows the key of a repeat, so there is at most one effect.
func (s Suite) lostResponse(t *testing.T) {
	row := rowOf(s.Platform)
	if row.ResendWindow > 0 || s.Lookup == nil {
		t.Skip("the gateway repeats the call, or the platform has no lookup")
	}
	for i, op := range s.operations("", false) {
		stub := s.Stub(t, CloseConnection())
		driverData, result := s.attempt(t.Context(), t, stub, op)
		if result.Outcome != operator.Unknown || len(stub.Requests()) != 1 {
			t.Fatalf("%s: outcome %d after %d requests", op.Name, result.Outcome, len(stub.Requests()))
		}
		call := s.statusCall()
		if call.DriverData = driverData; !row.Prepares {
			call.DriverData = "" // the response would have had it
		}
		stub.SetResponses(s.lookupResponse(s.Lookup.successWord()))
		found, canFind := s.LookUp(t, stub, call), row.Prepares || !row.LookupNeedsDriverData
		if (found.Status == ledger.Successful) != canFind || !canFind && found.Status != "" {
			t.Errorf("%s: the lookup found %q: %v", op.Name, found.Status, found.Cause)
		}
		if sent := businessCalls(stub); len(sent) != 1 {
			t.Errorf("%s: the lookup made %d business calls", op.Name, len(sent)-1)
		}
		if s.DuplicateResponse == nil {
			continue
		}
		stub.SetResponses(s.DuplicateResponse)
		result = s.runCall(t, s.Driver(t, stub.URL), operations(s.Platform, "", driverData, true)[i])
		sent := businessCalls(stub)
		if result.Outcome != operator.Unknown || !result.DuplicateKey || len(sent) != 2 {
			t.Fatalf("%s: repeat with outcome %d, %d business calls", op.Name, result.Outcome, len(sent))
		}
		const reference = "X-Reference-Id"
		if sent[0].Body != sent[1].Body || sent[0].Header.Get(reference) != sent[1].Header.Get(reference) {
			t.Errorf("%s: the repeat differs: it could have a second effect", op.Name)
		}
	}
}

// businessCalls are the requests like the first one: a lookup has another method or path.
func businessCalls(stub *StubOperator) []Request {
	all := stub.Requests()
	return slices.DeleteFunc(slices.Clone(all), func(r Request) bool {
		return r.Method != all[0].Method || r.Path != all[0].Path
	})
}

// rotatedSignature: a callback is valid by each key of the account, and by no other.
func (s Suite) rotatedSignature(t *testing.T) {
	if s.Signature == nil {
		t.Skip("the driver verifies no signatures")
	}
	const before, after, body = "key-very-private-1", "key-very-private-2", `{"type":"test"}`
	for _, c := range []struct {
		keys       []string
		old, renew bool // whether a callback by each key is valid
	}{
		{[]string{before}, true, false}, {[]string{before, after}, true, true}, {[]string{after}, false, true},
	} {
		own := s.With(s.Signature.Fields(c.keys))
		verifier, _ := own.Driver(t, localAddress).(operator.StaticCallbackVerifier)
		for key, want := range map[string]bool{before: c.old, after: c.renew} {
			secret, _ := s.Account["callback_secret"].(string)
			header := s.Signature.Sign(key, s.clock()(), body)
			got, err := verifier.VerifyStaticCallback(t.Context(), operator.StaticCallback{
				Platform: s.Platform, AccountID: "a1", PathSecret: secret, Body: []byte(body),
				Header: func(name string) string { return map[string]string{s.Signature.Header: header}[name] },
			})
			if got != want || err != nil {
				t.Errorf("keys %q, signed by %s: %v, %v; want %v", c.keys, key, got, err, want)
			}
		}
	}
}

// staticCallback: the secret in the path authenticates a callback of the account, also one that only a refresh of the
// credentials finds. Credentials that cannot be read are an error, so that the platform tries again.
func (s Suite) staticCallback(t *testing.T) {
	if !rowOf(s.Platform).StaticCallbacks {
		t.Skip("the platform has no static callbacks")
	}
	configured, _ := s.Account["callback_secret"].(string)
	other := strings.ToUpper(configured)
	with := func(callbackSecret string) secret.Static {
		return s.With(map[string]any{"callback_secret": callbackSecret}).secret(localAddress)
	}
	for name, c := range map[string]struct {
		accounts      secret.Reader
		account, path string
		want, isError bool
	}{
		"configured":             {with(configured), "a1", configured, true, false},
		"another secret":         {with(configured), "a1", other, false, false},
		"a longer secret":        {with(configured), "a1", configured + "x", false, false},
		"no secret":              {with(configured), "a1", "", false, false},
		"none in the account":    {with(""), "a1", "", false, false},
		"an unusable secret":     {with("short"), "a1", "short", false, false},
		"another account":        {with(configured), "a2", configured, false, false},
		"renewed":                {&changingSecret{with(configured), with(other)}, "a1", other, true, false},
		"unreadable credentials": {&changingSecret{}, "a1", configured, false, true},
	} {
		verifier, _ := s.driver(t, c.accounts, nil).(operator.StaticCallbackVerifier)
		valid, err := verifier.VerifyStaticCallback(t.Context(), operator.StaticCallback{
			Platform: s.Platform, AccountID: c.account, PathSecret: c.path, Body: []byte("{}"),
			Header: func(string) string { return "" },
		})
		if valid != c.want || (err != nil) != c.isError {
			t.Errorf("%s: valid %v, %v", name, valid, err)
		}
	}
}
