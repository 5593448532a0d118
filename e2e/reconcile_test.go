package e2e

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mobilegateway/e2e/harness"
)

// stubPlatformNames are the platforms by the prefixes of their stubs, but that of messages.
var stubPlatformNames = map[string]string{
	"mtn": "mtn-momo", "pawapay": "pawapay", "wave": "wave-checkout", "orangewebpay": "orange-webpay",
	"orangecm": "orange-cm", "flouci": "flouci-checkout",
}

// reconcileTimeout bounds the wait for what is still on its way.
const reconcileTimeout = 20 * time.Second

// expectedDifferences are the classes of the transactions whose journal and ledger differ on purpose.
type expectedDifferences struct {
	mutex   sync.Mutex
	classes map[string]string
}

// booksDiffer lists a difference that the story makes: books-differ ORDER CLASS. Any other fails the test at its end.
func (s *story) booksDiffer(arguments []string) error {
	s.target.differences.mutex.Lock()
	defer s.target.differences.mutex.Unlock()
	if s.target.differences.classes == nil {
		s.target.differences.classes = map[string]string{}
	}
	s.target.differences.classes[arguments[0]] = arguments[1]
	return nil
}

// reconcile compares the journal of a platform with the ledger, to the minor unit. Only what is open may differ, and
// what is expected by id.
func (g *target) reconcile(
	t *testing.T, books harness.Books, expected map[string]string,
) (found harness.Reconciliation) {
	t.Helper()
	books.LocalDir = filepath.Dir(g.path)
	ctx := context.WithoutCancel(t.Context()) // it also runs at the end of a test
	if err := harness.Poll(ctx, reconcileTimeout, func() (err error) {
		if found, err = books.Reconcile(ctx, t.TempDir()); err != nil {
			return err
		}
		return found.Explain(expected)
	}); err != nil {
		t.Error(err)
	}
	t.Logf("%s: %v %v", books.Platform, found.Counts, found.Totals)
	return found
}

// reconcileSandbox compares the sandbox's journal with the ledger, for each platform that the stories pay at.
func (g *target) reconcileSandbox(t *testing.T, program string, day time.Time) {
	for platform, expected := range map[string]map[string]string{"sandbox": g.differences.classes, "mtn": nil} {
		g.reconcile(t, harness.Books{
			Program: program, Platform: platform, Day: day,
			StatementURL: g.SandboxURL + "/sandbox/v1/statement?operator=" + platform,
		}, expected)
	}
}

// reconcileStubs compares the journal of each stub with the ledger.
func (e *ctlSession) reconcileStubs(day time.Time) {
	for prefix, platform := range stubPlatformNames {
		e.t.Run(platform, func(t *testing.T) {
			found := e.target.reconcile(t, harness.Books{
				Program: e.program, Platform: platform, Day: day,
				StatementURL: e.target.StubsURL + "/" + prefix + "/stub/v1/statement",
			}, nil)
			if found.Equal() == 0 {
				t.Errorf("nothing is equal: %v", found.Counts)
			}
		})
	}
}
