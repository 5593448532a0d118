package e2e

import (
	"bytes"
	"encoding/json"
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

	"mobilegateway/internal/localtest"
	"mobilegateway/shared/ledger"
)

// killTarget is a run whose functions reach their tables and their operator through proxies.
type killTarget struct {
	*target
	table    *proxy
	operator *proxy
}

// TestKillBetweenCalls kills the function between any two of its outside calls, then lets the merchant retry: one
// effect, and an answer (decision "leases").
func TestKillBetweenCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("a killed function's lease takes 25 seconds")
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

// startKillTarget starts the run and puts the proxies in its way, before the functions have started.
func startKillTarget(t *testing.T) *killTarget {
	k := &killTarget{table: newProxy(t), operator: newProxy(t)}
	run := localtest.Start(t, localtest.Options{Speed: speed, EnvOverrides: map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": k.table.URL}})
	k.target = mustReadTarget(t, filepath.Join(run.Dir, "run.json"))
	environment := run.Environment()
	k.operator.forwardTo(t, k.SandboxURL)
	redirectOperator(t, environment["AWS_ENDPOINT_URL_SECRETS_MANAGER"], environment["OPERATOR_CREDENTIALS_SECRET"], k.SandboxURL, k.operator.URL)
	k.table.forwardTo(t, environment["AWS_ENDPOINT_URL_DYNAMODB"])
	return k
}

// redirectOperator writes another address into the operators' credentials.
func redirectOperator(t *testing.T, endpoint, name, from, to string) {
	t.Helper()
	ask := func(action string, body, into any) {
		content, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequest(http.MethodPost, endpoint, bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Amz-Target", "secretsmanager."+action)
		request.Header.Set("Content-Type", "application/x-amz-json-1.1")
		response, err := exchange(newClient(), request)
		if err != nil || response.status != http.StatusOK {
			t.Fatal(response.errorf("%s: %v", action, err))
		}
		if err := json.Unmarshal(response.body, into); err != nil {
			t.Fatal(err)
		}
	}
	var stored struct{ SecretString string }
	ask("GetSecretValue", map[string]string{"SecretId": name}, &stored)
	moved := strings.ReplaceAll(stored.SecretString, from, to)
	ask("PutSecretValue", map[string]string{
		"SecretId": name, "SecretString": moved, "ClientRequestToken": "e2e-" + strings.Repeat("0", 32),
	}, &struct{}{})
}

// killPoint is a place between two outside calls.
type killPoint struct {
	name string
	// intercept lays the trap for a request under a key.
	intercept func(k *killTarget, key string) *interception
}

// killPoints are the places of an operation, in the order of its calls.
func killPoints(operation string) []killPoint {
	put := func(key string, nth int) func(http.Header, []byte) bool {
		seen := 0
		return func(header http.Header, body []byte) bool {
			if !strings.HasSuffix(header.Get("X-Amz-Target"), ".PutItem") || !bytes.Contains(body, []byte(key)) {
				return false
			}
			seen++
			return seen == nth
		}
	}
	operatorRequest := func(key string) func(http.Header, []byte) bool {
		return func(_ http.Header, body []byte) bool { return bytes.Contains(body, []byte(key)) }
	}
	reference := func(k *killTarget, key string) func(http.Header, []byte) bool {
		return put("reference#"+ledger.ReferenceID(k.ClientID, "REF-"+key), 1)
	}
	all := []killPoint{
		{"before the reservation", func(k *killTarget, key string) *interception { return k.table.intercept(true, put(key, 1)) }},
		{"after the reservation", func(k *killTarget, key string) *interception { return k.table.intercept(false, put(key, 1)) }},
		{"before the operator has it", func(k *killTarget, key string) *interception { return k.operator.intercept(true, operatorRequest(key)) }},
		{"after the operator has it", func(k *killTarget, key string) *interception {
			return k.operator.intercept(false, operatorRequest(key))
		}},
		{"before the outcome is stored", func(k *killTarget, key string) *interception { return k.table.intercept(true, put(key, 2)) }},
		{"after the outcome is stored", func(k *killTarget, key string) *interception { return k.table.intercept(false, put(key, 2)) }},
	}
	if operation == "charge" {
		all = append(all,
			killPoint{"before the reference", func(k *killTarget, key string) *interception { return k.table.intercept(true, reference(k, key)) }},
			killPoint{"after the reference", func(k *killTarget, key string) *interception { return k.table.intercept(false, reference(k, key)) }},
		)
	}
	return all
}

// killAtEachPoint brings one request to each of an operation's points, kills the operation's processes at that moment, and lets the
// merchants retry.
func (k *killTarget) killAtEachPoint(t *testing.T, f floodOperation) {
	places := killPoints(f.name)
	keys := make([]string, len(places))
	for i, place := range places {
		keys[i] = f.key(k.target)
		stored := place.intercept(k, keys[i])
		responded := make(chan observation, 1)
		go func() { responded <- k.sendOnce(t, f, keys[i]) }()
		select {
		case <-stored.caught:
			k.kill(t, f.name)
			<-responded // that of a killed function
		case early := <-responded:
			t.Error(early.errorf("%s: answered before it came there", place.name))
		}
	}
	var group sync.WaitGroup
	for i, place := range places {
		group.Go(func() {
			t.Run(place.name, func(t *testing.T) { k.retryUntilKnown(t, f, keys[i]) })
		})
	}
	group.Wait()
}

// kill kills all processes of a function, and sees that run.json no longer tells them.
func (k *killTarget) kill(t *testing.T, function string) {
	t.Helper()
	killed := k.functionPIDs(t)[function]
	if len(killed) == 0 {
		t.Errorf("run.json tells no process of %s", function)
	}
	for _, pid := range killed {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
	eventually(t, 5*time.Second, func() (struct{}, error) {
		for _, pid := range k.functionPIDs(t)[function] {
			if slices.Contains(killed, pid) {
				return struct{}{}, fmt.Errorf("run.json still tells process %d", pid)
			}
		}
		return struct{}{}, nil
	})
}

// sendOnce sends the request once.
func (k *killTarget) sendOnce(t *testing.T, f floodOperation, key string) observation {
	request, err := f.newRequest(k.target, key, false).build(k.BaseURL)
	if err != nil {
		t.Error(err)
		return observation{}
	}
	return mustExchange(t, newClient(), request)
}

// retryUntilKnown is the merchant who asks again until it knows.
func (k *killTarget) retryUntilKnown(t *testing.T, f floodOperation, key string) {
	response := eventually(t, 50*time.Second, func() (observation, error) {
		response := k.sendOnce(t, f, key)
		waits := response.header.Get("Retry-After") != ""
		switch {
		case response.status == http.StatusCreated || f.appliedBefore(k.target, key, response):
			return response, nil
		case waits && (response.status == http.StatusConflict || response.status == http.StatusGatewayTimeout):
			time.Sleep(4 * pollEvery)
			return response, response.errorf("no answer yet")
		}
		t.Fatal(response.errorf("neither an answer nor a promise of one"))
		return response, nil
	})
	f.checkEffect(t, k.target, key, response)
	if f.name == "pay" {
		checkNotifiedOnce(t, k.target, key, "successful")
	}
}

// appliedBefore is true where a 409 says that a killed function's request was done all the same: an SMS with the Location of the
// first (decision "sms-duplicate"), a payment that became final meanwhile (decision "pay-repeat").
func (f floodOperation) appliedBefore(g *target, key string, response observation) bool {
	if response.status != http.StatusConflict || response.header.Get("Retry-After") != "" {
		return false
	}
	if f.name == "sms" {
		return response.header.Get("Location") != ""
	}
	a := newRequestBuilder(g.merchantCredentials, http.MethodGet, "/mobilemoney/v1/getStatus/"+key)
	a.body = nil
	request, err := a.build(g.BaseURL)
	if err != nil {
		return false
	}
	found, err := exchange(newClient(), request)
	if err != nil {
		return false
	}
	status, _ := found.textValue("status")
	return f.name == "pay" && status == "successful"
}

// checkNotifiedOnce waits for the notification of a status: whatever else happened, the merchant is told with one webhook-id.
func checkNotifiedOnce(t *testing.T, g *target, order, status string) {
	t.Helper()
	eventually(t, notificationTimeout, func() (struct{}, error) {
		found, err := g.inboxMessages(order)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("the merchant was not told of %s", order)
		}
		return struct{}{}, err
	})
	found, err := g.inboxMessages(order)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		if got, _ := m.observation().textValue("status"); got != status || m.Headers["webhook-id"] != found[0].Headers["webhook-id"] {
			t.Errorf("%s was told as %s with %s, and %s", order, got, m.Headers["webhook-id"], found[0].Headers["webhook-id"])
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
