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

// killable is a run whose functions reach their tables and their operator through proxies.
type killable struct {
	*target
	table    *proxy
	operator *proxy
}

// TestKilledBetweenCalls kills the function between any two of its outside calls, then lets the merchant retry: one
// effect, and an answer (decision "leases").
func TestKilledBetweenCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("a killed function's lease takes 25 seconds")
	}
	needsLocal(t)
	t.Parallel()
	k := startKillable(t)
	for _, operation := range floodedOperations() {
		t.Run(operation.name, func(t *testing.T) {
			t.Parallel()
			k.killAll(t, operation)
		})
	}
}

// startKillable starts the run and puts the proxies in its way, before the functions have started.
func startKillable(t *testing.T) *killable {
	k := &killable{table: newProxy(t), operator: newProxy(t)}
	run := localtest.Start(t, localtest.Options{Speed: speed, Env: map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": k.table.URL}})
	k.target = mustRead(t, filepath.Join(run.Dir, "run.json"))
	environment := run.Environment()
	k.operator.forward(t, k.SandboxURL)
	moveOperator(t, environment["AWS_ENDPOINT_URL_SECRETS_MANAGER"], environment["OPERATOR_SECRET"], k.SandboxURL, k.operator.URL)
	k.table.forward(t, environment["AWS_ENDPOINT_URL_DYNAMODB"])
	return k
}

// moveOperator writes another address into the operators' credentials.
func moveOperator(t *testing.T, endpoint, name, from, to string) {
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
		answer, err := exchange(newClient(), request)
		if err != nil || answer.status != http.StatusOK {
			t.Fatal(answer.wrong("%s: %v", action, err))
		}
		if err := json.Unmarshal(answer.body, into); err != nil {
			t.Fatal(err)
		}
	}
	var held struct{ SecretString string }
	ask("GetSecretValue", map[string]string{"SecretId": name}, &held)
	moved := strings.ReplaceAll(held.SecretString, from, to)
	ask("PutSecretValue", map[string]string{
		"SecretId": name, "SecretString": moved, "ClientRequestToken": "e2e-" + strings.Repeat("0", 32),
	}, &struct{}{})
}

// point is a place between two outside calls.
type point struct {
	name string
	// set lays the trap for a request under a key.
	set func(k *killable, key string) *trap
}

// points are the places of an operation, in the order of its calls.
func points(operation string) []point {
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
	posted := func(key string) func(http.Header, []byte) bool {
		return func(_ http.Header, body []byte) bool { return bytes.Contains(body, []byte(key)) }
	}
	reference := func(k *killable, key string) func(http.Header, []byte) bool {
		return put("reference#"+ledger.ReferenceID(k.ClientID, "REF-"+key), 1)
	}
	all := []point{
		{"before the reservation", func(k *killable, key string) *trap { return k.table.set(true, put(key, 1)) }},
		{"after the reservation", func(k *killable, key string) *trap { return k.table.set(false, put(key, 1)) }},
		{"before the operator has it", func(k *killable, key string) *trap { return k.operator.set(true, posted(key)) }},
		{"after the operator has it", func(k *killable, key string) *trap { return k.operator.set(false, posted(key)) }},
		{"before the outcome is stored", func(k *killable, key string) *trap { return k.table.set(true, put(key, 2)) }},
		{"after the outcome is stored", func(k *killable, key string) *trap { return k.table.set(false, put(key, 2)) }},
	}
	if operation == "charge" {
		all = append(all,
			point{"before the reference", func(k *killable, key string) *trap { return k.table.set(true, reference(k, key)) }},
			point{"after the reference", func(k *killable, key string) *trap { return k.table.set(false, reference(k, key)) }},
		)
	}
	return all
}

// killAll brings one request to each of an operation's points, kills the operation's processes at that moment, and lets the
// merchants retry.
func (k *killable) killAll(t *testing.T, f flooded) {
	places := points(f.name)
	keys := make([]string, len(places))
	for i, place := range places {
		keys[i] = f.key(k.target)
		held := place.set(k, keys[i])
		answered := make(chan reply, 1)
		go func() { answered <- k.ask(t, f, keys[i]) }()
		select {
		case <-held.held:
			k.kill(t, f.name)
			<-answered // that of a killed function
		case early := <-answered:
			t.Error(early.wrong("%s: answered before it came there", place.name))
		}
	}
	var group sync.WaitGroup
	for i, place := range places {
		group.Go(func() {
			t.Run(place.name, func(t *testing.T) { k.retry(t, f, keys[i]) })
		})
	}
	group.Wait()
}

// kill kills all processes of a function, and sees that run.json no longer tells them.
func (k *killable) kill(t *testing.T, function string) {
	t.Helper()
	killed := k.functions(t)[function]
	if len(killed) == 0 {
		t.Errorf("run.json tells no process of %s", function)
	}
	for _, pid := range killed {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
	eventually(t, 5*time.Second, func() (struct{}, error) {
		for _, pid := range k.functions(t)[function] {
			if slices.Contains(killed, pid) {
				return struct{}{}, fmt.Errorf("run.json still tells process %d", pid)
			}
		}
		return struct{}{}, nil
	})
}

// ask sends the request once.
func (k *killable) ask(t *testing.T, f flooded, key string) reply {
	request, err := f.ask(k.target, key, false).request(k.BaseURL)
	if err != nil {
		t.Error(err)
		return reply{}
	}
	return sure(t, newClient(), request)
}

// retry is the merchant who asks again until it knows.
func (k *killable) retry(t *testing.T, f flooded, key string) {
	answer := eventually(t, 50*time.Second, func() (reply, error) {
		answer := k.ask(t, f, key)
		waits := answer.header.Get("Retry-After") != ""
		switch {
		case answer.status == http.StatusCreated || f.done(k.target, key, answer):
			return answer, nil
		case waits && (answer.status == http.StatusConflict || answer.status == http.StatusGatewayTimeout):
			time.Sleep(4 * pollEvery)
			return answer, answer.wrong("no answer yet")
		}
		t.Fatal(answer.wrong("neither an answer nor a promise of one"))
		return answer, nil
	})
	f.judgeEffect(t, k.target, key, answer)
	if f.name == "pay" {
		tellOnce(t, k.target, key, "successful")
	}
}

// done is true where a 409 says that a killed function's request was done all the same: an SMS with the Location of the
// first (decision "sms-duplicate"), a payment that became final meanwhile (decision "pay-repeat").
func (f flooded) done(g *target, key string, answer reply) bool {
	if answer.status != http.StatusConflict || answer.header.Get("Retry-After") != "" {
		return false
	}
	if f.name == "sms" {
		return answer.header.Get("Location") != ""
	}
	a := newAsk(g.shop, http.MethodGet, "/mobilemoney/v1/getStatus/"+key)
	a.body = nil
	request, err := a.request(g.BaseURL)
	if err != nil {
		return false
	}
	found, err := exchange(newClient(), request)
	if err != nil {
		return false
	}
	status, _ := found.text("status")
	return f.name == "pay" && status == "successful"
}

// tellOnce waits for the notification of a status: whatever else happened, the merchant is told with one webhook-id.
func tellOnce(t *testing.T, g *target, order, status string) {
	t.Helper()
	eventually(t, toldWithin, func() (struct{}, error) {
		found, err := g.inbox(order)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("the merchant was not told of %s", order)
		}
		return struct{}{}, err
	})
	found, err := g.inbox(order)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		if got, _ := m.reply().text("status"); got != status || m.Headers["webhook-id"] != found[0].Headers["webhook-id"] {
			t.Errorf("%s was told as %s with %s, and %s", order, got, m.Headers["webhook-id"], found[0].Headers["webhook-id"])
		}
	}
}

// mustRead reads a run.json.
func mustRead(t *testing.T, path string) *target {
	t.Helper()
	found, err := readTarget(path)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
