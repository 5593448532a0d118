//go:build linux

package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/repository"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/world/operators/sandbox"
)

const (
	// speed divides the gateway's lifetimes and schedules: a day takes 72 seconds. Leases and timeouts stay.
	speed = 1200
	// paymentLifetime is when an unconfirmed payment expires.
	paymentLifetime = 24 * time.Hour / speed
	// deadLetterAfter is when the attempts of a notification are used up: the sum of the delivery schedule.
	deadLetterAfter = 76 * time.Hour / speed
	// overdueSlack is for the sweep that expires it.
	overdueSlack = 30 * time.Second
	// drainTimeout bounds the time after the faults until nothing waits. A claimed attempt whose outcome was lost again
	// and again waits for up to 30 minutes, at every speed.
	drainTimeout = 36 * time.Minute
	// drainInterval is the pause between two reads of the orders that wait.
	drainInterval = 2 * time.Second
	// sampleInterval is the time between two progress lines and samples of the processes.
	sampleInterval = 10 * time.Second
	// limitedDailyXOF is the daily amount of the merchant with limits.
	limitedDailyXOF = 1_000_000
	// maxReported bounds the printed problems.
	maxReported = 40
)

// run is one chaos run.
type run struct {
	*testing.T
	gateway  *gateway
	load     *load
	injector *injector
	store    *dynamo.Store
	began    time.Time
}

// TestChaos runs the load and the faults for CHAOS_MINUTES minutes, waits until nothing is left to do, and counts.
func TestChaos(t *testing.T) {
	minutes, err := strconv.ParseFloat(os.Getenv("CHAOS_MINUTES"), 64)
	if err != nil || minutes <= 0 {
		t.Skip("make chaos sets CHAOS_MINUTES")
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("CHAOS_SEED: %v", err)
		}
	}
	root, err := repository.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, ".local", "chaos")
	fmt.Printf("seed %d: make chaos CHAOS_MINUTES=%g CHAOS_SEED=%d; logs are in %s\n", seed, minutes, seed, dir)
	g := startGateway(t, dir, sandbox.FaultSettings{
		Seed: seed, Delay: 0.05, MaxDelayMS: 2000, Duplicate: 0.05, Reorder: 0.05, LostResponse: 0.02,
		Unavailable: 0.05,
	})
	faultLog, err := os.Create(filepath.Join(dir, "faults.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer faultLog.Close()
	r := &run{
		T: t, gateway: g, load: newLoad(g), injector: newInjector(seed, faultLog), began: time.Now(),
		store: dynamo.New(g.aws.DynamoDB(), g.environment["LEDGER_TABLE"]),
	}
	r.checkWorks()
	retries, stop := context.WithCancel(t.Context())
	defer stop()
	duration := time.Duration(minutes * float64(time.Minute))
	table := r.injectAndSample(retries, seed, duration)
	r.stopSandboxFaults()
	r.drain(stop)
	r.count()
	r.reconcile()
	total, _ := r.injector.total()
	r.printf("%d faults:\n%s", total, r.injector)
	r.printf("memory and descriptors:\n%s", table)
	if duration < minGrowthTime {
		r.printf("growth is not checked in less than %s", minGrowthTime)
	} else {
		for _, growth := range table.findGrowth() {
			t.Error(growth)
		}
	}
	if t.Failed() {
		t.Errorf("run it again: make chaos CHAOS_MINUTES=%g CHAOS_SEED=%d", minutes, seed)
	}
}

// checkWorks checks that an order succeeds before the faults.
func (r *run) checkWorks() {
	o := r.gateway.drawOrder(newRandom(0, ""), 0, 0)
	o.kind, o.id, o.digits = ledger.Charge, "chaos-works", "2000"
	ctx, stop := context.WithTimeout(r.Context(), time.Minute)
	defer stop()
	r.load.place(ctx, o)
	if o.response.status != http.StatusCreated {
		r.Fatalf("the gateway does not work without faults: %s", o)
	}
	o.finished = true
	r.load.orders = append(r.load.orders, o)
}

// printf prints a line with the time since the start.
func (r *run) printf(format string, arguments ...any) {
	fmt.Printf("[%4.0fs] %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, arguments...))
}

// injectAndSample sends the load and injects faults. It prints the progress and returns the samples.
func (r *run) injectAndSample(retries context.Context, seed uint64, duration time.Duration) usageTable {
	table, done := usageTable{}, make(chan struct{})
	faults, stop := context.WithTimeout(retries, duration)
	defer stop()
	go func() {
		defer close(done)
		r.load.run(retries, seed, duration)
	}()
	faultsDone := make(chan struct{})
	go func() {
		defer close(faultsDone)
		r.injector.run(faults, r.T, r.gateway)
	}()
	for tick := time.NewTicker(sampleInterval); ; {
		select {
		case <-done:
			<-faultsDone
			return table
		case <-tick.C:
			if err := table.sample(r.gateway); err != nil {
				r.Error(err)
			}
			r.checkRunning()
			orders, open, statuses := r.load.counts()
			count, active := r.injector.total()
			r.printf("%d orders, %d open, responses %s, %d faults, now: %s", orders, open, statuses, count,
				strings.Join(active, "; "))
		}
	}
}

// checkRunning fails the test if the gateway has ended.
func (r *run) checkRunning() {
	select {
	case <-r.gateway.exited:
		r.Fatalf("the gateway ended: see %s", filepath.Join(filepath.Dir(r.gateway.dir), "run.log"))
	default:
	}
}

// stopSandboxFaults ends the operator's own faults.
func (r *run) stopSandboxFaults() {
	address := r.gateway.SandboxURL + "/sandbox/v1/steering"
	if _, _, err := harness.Call(r.Context(), http.MethodPut, address, "{}", nil); err != nil {
		r.Fatal(err)
	}
}

// drain waits until no order waits for anything. A merchant may retry an order that a person must decide, so stop then
// ends all retries. After that it waits again, because a last request or callback may have changed an entry.
func (r *run) drain(stop func()) {
	r.waitForOrders()
	stop()
	r.load.group.Wait()
	r.waitForCallbacks()
	r.waitForOrders()
	r.printf("nothing waits")
}

// waitForCallbacks waits until the operator has delivered each callback or given it up.
func (r *run) waitForCallbacks() {
	for deadline := time.Now().Add(drainTimeout); ; time.Sleep(drainInterval) {
		var transactions []operatorTransaction
		r.readSandbox("transactions", &transactions)
		waiting := countCallbacks(transactions)["waiting"]
		if waiting == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.Errorf("the operator has %d callbacks that the gateway has not accepted", waiting)
			return
		}
	}
}

// waitForOrders waits until no order waits for anything.
func (r *run) waitForOrders() {
	waiting, printed := r.load.orders, time.Now()
	for deadline := time.Now().Add(drainTimeout); ; time.Sleep(drainInterval) {
		r.checkRunning()
		reason := ""
		waiting = slices.DeleteFunc(slices.Clone(waiting), func(o *order) bool {
			work := r.openWork(o)
			reason = cmp.Or(reason, work)
			return work == ""
		})
		if len(waiting) == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.Errorf("%d orders still wait %s after the faults", len(waiting), drainTimeout)
			return
		}
		if time.Since(printed) >= sampleInterval {
			printed = time.Now()
			r.printf("%d orders wait, first %s %s: %s", len(waiting), waiting[0].kind, waiting[0].id, reason)
		}
	}
}

// openWork returns what an order still waits for, or "".
func (r *run) openWork(o *order) string {
	e, err := r.store.Get(r.Context(), o.ledgerKey())
	if err != nil {
		return err.Error()
	}
	if work := openWork(e, time.Now()); work != "" {
		return work
	}
	r.load.mu.Lock()
	defer r.load.mu.Unlock()
	if !o.finished && (e == nil || !listed(e, time.Now())) {
		return fmt.Sprintf("the merchant is not finished: %d requests, last response %d", o.requests, o.response.status)
	}
	return ""
}

// count compares orders, ledger, effects and notifications, and prints the sums.
func (r *run) count() {
	var effects []sandbox.Effect
	var transactions []operatorTransaction
	r.readSandbox("effects", &effects)
	r.readSandbox("transactions", &transactions)
	accepted := map[string]ledger.Status{}
	for _, transaction := range transactions {
		accepted[transaction.Key] = cmp.Or(transaction.acceptedReceipt(), accepted[transaction.Key])
	}
	inbox, err := readInbox(r.gateway.dir)
	if err != nil {
		r.Fatal(err)
	}
	r.load.mu.Lock()
	defer r.load.mu.Unlock()
	counts, sums, problems, known := countEffects(effects), map[string]int{}, 0, map[string]bool{}
	for _, o := range r.load.orders {
		e, err := r.store.Get(r.Context(), o.ledgerKey())
		if err != nil {
			r.Fatal(err)
		}
		known[o.operatorKey()] = true
		sums[describeEntry(o, e, time.Now())]++
		found := findProblems(o, e, counts, inbox[o.id], time.Now())
		if status := accepted[o.operatorKey()]; status != "" && (e == nil || !e.StatusFinal()) {
			found = append(found, fmt.Sprintf("the operator's receipt %s was accepted and lost", status))
		}
		for _, problem := range found {
			problems++
			if problems <= maxReported {
				r.Errorf("%s: %s", o, problem)
			}
		}
	}
	for key := range counts {
		if !known[key.key] {
			r.Errorf("the operator has an effect that no order caused: %+v", key)
		}
	}
	if sum := sumXOF(effects, r.gateway.LimitedMerchant.Merchant); sum > limitedDailyXOF {
		r.Errorf("the daily amount of %d XOF was exceeded: %d", limitedDailyXOF, sum)
	}
	r.printf("%d orders, %d problems, %d effects, %d notifications for %d orders, callbacks %v", len(r.load.orders),
		problems, len(effects), countMessages(inbox), len(inbox), countCallbacks(transactions))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Printf("  %6d %s\n", sums[name], name)
	}
}

func countMessages(inbox map[string][]message) (count int) {
	for _, messages := range inbox {
		count += len(messages)
	}
	return count
}

// describeEntry is the row of the printed sums that an order belongs to.
func describeEntry(o *order, e *ledger.Entry, now time.Time) string {
	if e == nil {
		return string(o.kind) + " never stored"
	}
	text := fmt.Sprintf("%s %s %s", e.Kind, e.State, e.Status)
	if listed(e, now) {
		text += ", listed for a person"
	}
	if len(e.Outbox.Waiting) > 0 {
		text += ", dead letter"
	}
	if e.UserSMS.State != "" {
		text += ", payer's SMS " + string(e.UserSMS.State)
	}
	return text
}

// readSandbox reads a list of the sandbox's control port.
func (r *run) readSandbox(list string, into any) {
	address := r.gateway.SandboxURL + "/sandbox/v1/" + list
	text, _, err := harness.Call(r.Context(), http.MethodGet, address, "", nil)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		r.Fatal(err)
	}
}
