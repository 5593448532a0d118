package simulate

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/mirror"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/dynamoitem"
)

// The load of a run with one of four platforms that hangs, and its deployment.
const (
	requestEvery  = 5 * time.Millisecond // 200 a second, in turn to each platform
	concurrency   = 100                  // of the account
	mostWaiting   = 40                   // of it by the hanging platform: the template's OperatorShare in percent
	leastResponse = 100 * time.Millisecond
	mostResponse  = 200 * time.Millisecond
	healthyTime   = 20 * time.Second // before the platform hangs
	backTime      = 40 * time.Second // after it is back
	retryAfter    = 5 * time.Second  // of a merchant whose request failed
)

// The bounds of a run.
const (
	mostOfHealthy   = 1.5 // times its p99
	longestReaction = 5 * time.Second
	longestReturn   = 30 * time.Second // from the end of the failure to the first payment
	longestRefusal  = 50 * time.Millisecond
	lostOfAnHour    = 3600 * 150 / 1000 // requests of the others: 99.9 % succeed
)

// countries have a platform each. That of the first one hangs.
var countries = []string{"CI", "SN", "CM", "BF"}

const platformName = "sandbox"

var (
	hangTime   = flag.Duration("hang", time.Minute, "how long the platform of TestOnePlatformHangs hangs")
	recordHang = flag.Bool("record-hang", false, "TestOnePlatformHangs writes its table into docs/scale.md")
)

// payment is one request of a run, and its response.
type payment struct {
	platform int
	at, took time.Duration // at: since the platform hangs; negative before
	waiting  int           // processes that waited for the platform that hangs
	response outside.Response
	// hasCome is false of a request that found no free process, or whose process timed out. isRetried is true if its
	// retry succeeded.
	hasCome, isRetried bool
}

func (p *payment) isGood() bool { return p.response.Status == http.StatusCreated }

// hangRun is a run in which the first platform hangs for a time.
type hangRun struct {
	*deployment.Deployment
	shop     *fixture.Shop
	hangs    outside.Window
	payments []payment
	served   int
	waiting  int // processes that wait for the platform that hangs
}

// newHangRun makes a deployment, with or without circuits.
func newHangRun(hang time.Duration, hasCircuits bool) *hangRun {
	b, h := fixture.Load(), history.New(tape.FromSeed(1))
	h.Kernel.MaxSteps = 0
	h.Begin(healthyTime + hang + backTime + time.Hour)
	h.Rates.Processes = concurrency
	secrets := &outside.Secrets{Faults: h.Faults, Trace: func(string) {}}
	for name, value := range b.Secrets {
		secrets.Set(history.Start.Add(-time.Hour), name, value)
	}
	secrets.Set(history.Start.Add(-time.Hour), fixture.OperatorSecret, accounts())
	d := deployment.New(&deployment.Outside{
		Tables: deployment.NewTables(&deployment.Gate{History: h}, b.Database.Clone()), Secrets: secrets,
	})
	if hasCircuits {
		d.AccountConcurrency = concurrency
	}
	from := time.Now().Add(healthyTime)
	r := &hangRun{Deployment: d, shop: b.Shops[0], hangs: outside.Window{From: from, To: from.Add(hang)}}
	d.Observer, d.Operators = unobserved{}, r.serve
	return r
}

// accounts are the accounts of the four platforms, in one country each. All have the gateway's own protocol.
func accounts() []byte {
	all, routes := map[string]any{}, []map[string]string{}
	for _, country := range countries {
		all[country] = map[string]any{
			"base_url": "https://" + hostOf(country), "access_token": fixture.OperatorToken, "service_id": "SERVICE-1",
		}
		routes = append(routes, map[string]string{
			"country": country, "operation": "pay", "to": platformName + "/" + country,
		})
	}
	return fixture.Must(json.Marshal(map[string]any{
		platformName: map[string]any{"current": countries[0], "accounts": all},
		"routes":     map[string]any{platformName: routes},
	}))
}

func hostOf(country string) string { return strings.ToLower(country) + ".operator.example.net" }

// serve serves a request of a platform, which accepts each payment.
func (r *hangRun) serve(request *http.Request, body []byte) outside.Exchange {
	if request.URL.Host == hostOf(countries[0]) && r.hangs.Contains(time.Now()) {
		return outside.Exchange{Failure: outside.NoResponse}
	}
	var order struct {
		ID string `json:"order_id"`
	}
	if err := json.Unmarshal(body, &order); err != nil {
		r.Fail("the body of a payment: %s", err)
	}
	text := fmt.Sprintf(`{"status":"pending","order-id":%q}`, order.ID)
	response := outside.Exchange{Status: http.StatusCreated, Body: []byte(text)}
	const prime, parts = 7919, 1000
	r.served++
	response.Delay = leastResponse + (mostResponse-leastResponse)*time.Duration(r.served*prime%parts)/parts
	return response
}

// run sends the requests, and waits for their responses.
func (r *hangRun) run(t *testing.T) {
	t.Helper()
	r.payments = make([]payment, time.Until(r.hangs.To.Add(backTime))/requestEvery)
	sent := 0
	var next func()
	next = func() {
		r.send(sent)
		if sent++; sent < len(r.payments) {
			r.Kernel.At(time.Now().Add(requestEvery), "request", next)
		}
	}
	r.Kernel.At(time.Now(), "request", next)
	if err := r.Kernel.Run(); err != nil {
		t.Fatal(err)
	}
}

// send sends a payment, and once more after a failure. A successful one is deleted, because a run makes many.
func (r *hangRun) send(number int) {
	p := &r.payments[number]
	p.platform, p.at = number%len(countries), time.Since(r.hangs.From)
	s := r.shop.Shop
	s.Countries, s.Operators = countries[p.platform:p.platform+1], []string{platformName}
	const payers = 100_000                 // of all payments, because a country's numbers are short
	wanted := s.Pay(3*(number%payers) + 2) // on the channel ussd
	wanted.Key = fmt.Sprintf("%s_%d", s.Name, 3*number+2)
	event := wanted.Event(r.shop.Token)
	if p.platform == 0 {
		r.waiting++
	}
	began := time.Now()
	r.Invoke(deployment.Pay, event, func(result deployment.Result) {
		if p.platform == 0 {
			r.waiting--
		}
		p.took = time.Since(began)
		p.response, p.hasCome = r.ResponseOf(deployment.Pay, result)
		if p.isGood() {
			r.forget(wanted.Key)
		} else if p.platform != 0 {
			r.Kernel.At(time.Now().Add(retryAfter), "retry", func() { r.retry(p, event) })
		}
	})
	p.waiting = r.waiting
}

// retry sends a payment again.
func (r *hangRun) retry(p *payment, event []byte) {
	r.Invoke(deployment.Pay, event, func(result deployment.Result) {
		response, _ := r.ResponseOf(deployment.Pay, result)
		p.isRetried = response.Status == http.StatusCreated
	})
}

// forget deletes a payment, and the changes of the table.
func (r *hangRun) forget(id string) {
	_, err := r.Database.DeleteItem(&dynamodb.DeleteItemInput{
		TableName: aws.String(fixture.LedgerTable), Key: dynamoitem.Key("pay#" + id),
	})
	if err != nil {
		r.Fail("delete %s: %s", id, err)
	}
	r.Database.Trim(math.MaxInt64)
}

// hangPhase is a part of a run, and what it showed of the others and of the platform that hangs.
type hangPhase struct {
	name            string
	from, to        time.Duration // since it hangs
	count, lost     int           // of the others
	retried         int           // of the lost ones
	p99             time.Duration // of the others that succeeded
	waiting         int           // at most, by the platform that hangs
	refused         int           // by its circuit
	slowestRefusal  time.Duration
	hangingOne      int // its requests
	firstOfHanging  time.Duration
	successesOfHang int
}

func (r *hangRun) phase(name string, from, to time.Duration) *hangPhase {
	f := &hangPhase{name: name, from: from, to: to}
	var took []time.Duration
	for i := range r.payments {
		p := &r.payments[i]
		if p.at < from || p.at >= to {
			continue
		}
		f.waiting = max(f.waiting, p.waiting)
		if p.platform == 0 {
			f.addHanging(p)
			continue
		}
		f.count++
		if p.isGood() {
			took = append(took, p.took)
			continue
		}
		f.lost++
		if p.isRetried {
			f.retried++
		}
	}
	if slices.Sort(took); len(took) > 0 {
		f.p99 = took[len(took)*99/100]
	}
	return f
}

// addHanging adds a request of the platform that hangs.
func (f *hangPhase) addHanging(p *payment) {
	f.hangingOne++
	switch {
	case p.response.Reason == "circuit-open":
		f.refused++
		f.slowestRefusal = max(f.slowestRefusal, p.took)
	case p.isGood():
		if f.successesOfHang == 0 {
			f.firstOfHanging = p.at + p.took
		}
		f.successesOfHang++
	}
}

// success is the share of the others' requests that succeeded, in percent.
func (f *hangPhase) success() float64 { return 100 * float64(f.count-f.lost) / float64(f.count) }

// phases are those of the table.
func (r *hangRun) phases() []*hangPhase {
	hang := r.hangs.To.Sub(r.hangs.From)
	all := []*hangPhase{
		r.phase("before", -healthyTime, 0),
		r.phase("0 to 5 s", 0, 5*time.Second),
		r.phase("5 to 10 s", 5*time.Second, 10*time.Second),
		r.phase("10 s to a minute", 10*time.Second, time.Minute),
	}
	if hang > time.Minute {
		all = append(all, r.phase("all of "+strings.TrimSuffix(hang.String(), "0s"), 0, hang))
	}
	return append(all, r.phase("after it is back", hang, hang+backTime))
}

// TestOnePlatformHangs sends 200 payments a second to four platforms, in a deployment of 100 processes. One platform
// hangs. The others lose some requests before their processes know that, and a retry succeeds.
func TestOnePlatformHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("sends 35,000 payments")
	}
	var with, without []*hangPhase
	synctest.Test(t, func(t *testing.T) {
		r := newHangRun(*hangTime, true)
		r.run(t)
		with = r.phases()
		r.check(t, with)
	})
	synctest.Test(t, func(t *testing.T) {
		r := newHangRun(time.Minute, false)
		r.run(t)
		without = r.phases()
	})
	if worst := without[3]; worst.success() > 50 || worst.waiting < 9*concurrency/10 {
		t.Errorf("without circuits %.1f %% succeed, and %d processes wait for it: the load is too low", worst.success(),
			worst.waiting)
	}
	compareTable(t, hangRows(with, without))
}

// check checks a run with circuits.
func (r *hangRun) check(t *testing.T, phases []*hangPhase) {
	t.Helper()
	healthy, hang := phases[0], r.hangs.To.Sub(r.hangs.From)
	for _, f := range phases {
		if float64(f.p99) > mostOfHealthy*float64(healthy.p99) {
			t.Errorf("%s: p99 of the others %s, want at most 1.5 times %s", f.name, f.p99, healthy.p99)
		}
		if f.slowestRefusal >= longestRefusal {
			t.Errorf("%s: a refusal took %s", f.name, f.slowestRefusal)
		}
	}
	first := r.phase("reaction", 0, longestReaction)
	if first.lost > lostOfAnHour || first.retried != first.lost {
		t.Errorf("%d requests of the others are lost, %d of them not in a retry; want at most %d, 0", first.lost,
			first.lost-first.retried, lostOfAnHour)
	}
	later := r.phase("later", longestReaction, hang)
	if later.success() < 99.9 {
		t.Errorf("%.3f %% of the others succeed after 5 s", later.success())
	}
	f := r.phase("after 10 s", 10*time.Second, hang)
	if f.waiting > mostWaiting || f.refused < f.hangingOne*95/100 {
		t.Errorf("after 10 s %d processes wait for the hanging platform; %d of %d requests are refused", f.waiting,
			f.refused, f.hangingOne)
	}
	back := phases[len(phases)-1]
	if wait := back.firstOfHanging - hang; back.successesOfHang == 0 || wait > longestReturn {
		t.Errorf("the platform is served again after %s, %d times", wait, back.successesOfHang)
	}
	served := r.phase("served", hang+longestReturn+time.Second, hang+backTime)
	if served.successesOfHang != served.hangingOne {
		t.Errorf("%d of %d requests succeed 31 s after the platform is back", served.successesOfHang, served.hangingOne)
	}
}

// hangRows are the rows of the table in docs/scale.md.
func hangRows(with, without []*hangPhase) (rows []string) {
	for _, f := range with {
		others := "- | -"
		if i := slices.IndexFunc(without, func(other *hangPhase) bool { return other.name == f.name }); i >= 0 {
			others = fmt.Sprintf("%.1f %% | %d", without[i].success(), without[i].waiting)
		}
		rows = append(rows, fmt.Sprintf("| %s | %.2f %% | %d ms | %d | %d of %d | %s |", f.name, f.success(),
			f.p99.Milliseconds(), f.waiting, f.refused, f.hangingOne, others))
	}
	return rows
}

// compareTable compares the table of docs/scale.md with its rows, or writes it.
func compareTable(t *testing.T, rows []string) {
	t.Helper()
	const begin, end = "<!-- hanging: begin -->\n", "<!-- hanging: end -->"
	file := filepath.FromSlash("../../docs/scale.md")
	page, err := os.ReadFile(file)
	before, rest, hasBegin := strings.Cut(string(page), begin)
	table, after, hasEnd := strings.Cut(rest, end)
	if !hasBegin || !hasEnd {
		t.Fatal("docs/scale.md has no table of the hanging platform", err)
	}
	if *recordHang {
		head, _, _ := strings.Cut(table, "|---|")
		line := strings.Repeat("|---", strings.Count(rows[0], "|")-1) + "|\n"
		table = head + line + strings.Join(rows, "\n") + "\n\n"
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range rows {
		if !strings.Contains(table, row+"\n") {
			t.Errorf("docs/scale.md has no row %s", row)
		}
	}
}

// unobserved observes nothing.
type unobserved struct{}

func (unobserved) Requested(string, *http.Request, []byte)          {}
func (unobserved) Exchanged(*deployment.Instance, outside.Exchange) {}
func (unobserved) EndedEarly(*deployment.Instance, time.Duration)   {}
func (unobserved) LearnedCircuits(*deployment.Instance, string, map[string]string, time.Time, bool) {
}
func (unobserved) Logged(string, []byte)                       {}
func (unobserved) Interrupted(string)                          {}
func (unobserved) Outlived(*deployment.Instance, string)       {}
func (unobserved) Failed(string)                               {}
func (unobserved) Changed(mirror.Change, *deployment.Instance) {}
func (unobserved) Followed(bool)                               {}
