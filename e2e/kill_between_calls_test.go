package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mobilegateway/local"
	"mobilegateway/proof/kits/localtest"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/ledger"
)

// killTarget is a run whose functions reach their tables and their operator through proxies.
type killTarget struct {
	*target
	table    *proxy
	operator *proxy
}

// TestKillBetweenCalls kills a function between any two of its outside calls, then lets the merchant retry. There is
// one effect, and the merchant gets a response (decision "leases").
func TestKillBetweenCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("the lease of a killed function lasts 25 seconds")
	}
	requireLocalRun(t)
	t.Parallel()
	k := startKillTarget(t)
	for _, operation := range floodOperations() {
		t.Run(operation.name, func(t *testing.T) {
			t.Parallel()
			k.killAtEachPoint(t, operation)
		})
	}
}

// startKillTarget starts a run with the proxies before its functions start.
func startKillTarget(t *testing.T) *killTarget {
	k := &killTarget{table: newProxy(t), operator: newProxy(t)}
	run := localtest.Start(t, localtest.Options{Speed: speed,
		EnvOverrides: map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": k.table.URL}})
	k.target = mustReadTarget(t, filepath.Join(run.Dir, "run.json"))
	environment := run.Environment()
	k.operator.forwardTo(t, k.SandboxURL)
	replaceInCredentials(t, environment, k.SandboxURL, k.operator.URL)
	k.table.forwardTo(t, environment["AWS_ENDPOINT_URL_DYNAMODB"])
	return k
}

// newAWSClient returns a client of a run's tables and secrets.
func newAWSClient(t *testing.T, environment map[string]string) *awsclient.Client {
	t.Helper()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// replaceInCredentials replaces a text in the operators' credentials of a run.
func replaceInCredentials(t *testing.T, environment map[string]string, from, to string) {
	t.Helper()
	secrets, name := local.Deployment{Client: newAWSClient(t, environment)}, environment["OPERATOR_CREDENTIALS_SECRET"]
	stored, err := secrets.SecretValue(t.Context(), name)
	if err == nil {
		err = secrets.UpdateSecret(t.Context(), name, stored, bytes.ReplaceAll(stored, []byte(from), []byte(to)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// requestMatcher reports whether a request is the one to intercept.
type requestMatcher func(header http.Header, body []byte) bool

// killPoint is a point before or after an outside call, which passes through a proxy.
type killPoint struct {
	name    string
	through *proxy
	before  bool
	matches func(key string) requestMatcher
}

// killPoints returns the points of an operation, in the order of its calls.
func (k *killTarget) killPoints(operation string) []killPoint {
	put := func(text string, nth int) requestMatcher {
		seen := 0
		return func(header http.Header, body []byte) bool {
			if !strings.HasSuffix(header.Get("X-Amz-Target"), ".PutItem") || !bytes.Contains(body, []byte(text)) {
				return false
			}
			seen++
			return seen == nth
		}
	}
	reservation := func(key string) requestMatcher { return put(key, 1) }
	outcome := func(key string) requestMatcher { return put(key, 2) }
	call := func(key string) requestMatcher {
		return func(_ http.Header, body []byte) bool { return bytes.Contains(body, []byte(key)) }
	}
	reference := func(key string) requestMatcher {
		return put("reference#"+ledger.ReferenceID(k.ClientID, "REF-"+key), 1)
	}
	all := []killPoint{
		{"before the reservation", k.table, true, reservation},
		{"after the reservation", k.table, false, reservation},
		{"before the operator has it", k.operator, true, call},
		{"after the operator has it", k.operator, false, call},
		{"before the outcome is stored", k.table, true, outcome},
		{"after the outcome is stored", k.table, false, outcome},
	}
	if operation == "charge" {
		all = append(all,
			killPoint{"before the reference", k.table, true, reference},
			killPoint{"after the reference", k.table, false, reference})
	}
	return all
}

// killAtEachPoint brings one request to each point, kills the function's processes there, and lets the merchant retry.
func (k *killTarget) killAtEachPoint(t *testing.T, f floodOperation) {
	points := k.killPoints(f.name)
	keys := make([]string, len(points))
	for i, point := range points {
		keys[i] = f.newKey(k.target)
		intercepted := point.through.intercept(point.before, point.matches(keys[i]))
		responded := make(chan observation, 1)
		go func() { responded <- k.sendOnce(t, f, keys[i]) }()
		select {
		case <-intercepted.caught:
			k.kill(t, f.name)
			<-responded // the error response for the killed function
		case early := <-responded:
			t.Error(early.errorf("%s: the response came before this point", point.name))
		}
	}
	var group sync.WaitGroup
	for i, point := range points {
		group.Go(func() {
			t.Run(point.name, func(t *testing.T) { k.retryUntilKnown(t, f, keys[i]) })
		})
	}
	group.Wait()
}

// kill kills all processes of a function, and checks that run.json drops them.
func (k *killTarget) kill(t *testing.T, function string) {
	t.Helper()
	killed := k.functionPIDs(t)[function]
	if len(killed) == 0 {
		t.Errorf("run.json has no process of %s", function)
	}
	for _, pid := range killed {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
	eventuallyNoError(t, 5*time.Second, func() error {
		for _, pid := range k.functionPIDs(t)[function] {
			if slices.Contains(killed, pid) {
				return fmt.Errorf("run.json still has the process %d", pid)
			}
		}
		return nil
	})
}

// sendOnce sends the request once.
func (k *killTarget) sendOnce(t *testing.T, f floodOperation, key string) observation {
	return k.mustSend(t, f.newRequest(k.target, key, false))
}

// retryUntilKnown retries until the merchant knows the result, and checks the effect.
func (k *killTarget) retryUntilKnown(t *testing.T, f floodOperation, key string) {
	response := eventually(t, 50*time.Second, func() (observation, error) {
		response := k.sendOnce(t, f, key)
		waits := response.header.Get("Retry-After") != ""
		switch {
		case response.status == http.StatusCreated || f.appliedBefore(k.target, key, response):
			return response, nil
		case waits && (response.status == http.StatusConflict || response.status == http.StatusGatewayTimeout):
			time.Sleep(4 * pollInterval)
			return response, response.errorf("no result yet")
		}
		t.Fatal(response.errorf("neither a result nor a Retry-After"))
		return response, nil
	})
	f.checkEffect(t, k.target, key, response)
	if f.name == "pay" {
		checkNotifiedOnce(t, k.target, key, "successful")
	}
}

// appliedBefore reports whether a 409 proves that the killed function's request was applied. For an SMS that is the
// Location of the first (decision "sms-duplicate"), for a payment a final status (decision "pay-repeat").
func (f floodOperation) appliedBefore(g *target, key string, response observation) bool {
	if response.status != http.StatusConflict || response.header.Get("Retry-After") != "" {
		return false
	}
	if f.name == "sms" {
		return response.header.Get("Location") != ""
	}
	return f.name == "pay" && g.checkStatus(key, "successful") == nil
}

// checkNotifiedOnce waits for the notification of a status and checks that all attempts have one webhook-id.
func checkNotifiedOnce(t *testing.T, g *target, order, status string) {
	t.Helper()
	eventuallyNoError(t, notificationTimeout, func() error {
		found, err := g.inboxMessages(order)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("no notification for %s arrived", order)
		}
		return err
	})
	found, err := g.inboxMessages(order)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		if got, _ := m.observation().textValue("status"); got != status ||
			m.Headers["webhook-id"] != found[0].Headers["webhook-id"] {
			t.Errorf("%s was notified as %s with the webhook-id %s, and with %s", order, got, m.Headers["webhook-id"],
				found[0].Headers["webhook-id"])
		}
	}
}

// mustReadTarget reads a run.json.
func mustReadTarget(t *testing.T, path string) *target {
	t.Helper()
	found, err := readTarget(path)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
