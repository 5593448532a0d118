package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/console"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/local"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/world/template"
)

// A page of the console, and one of find, may make so many calls of DynamoDB and take so long (the median).
const (
	maxPageCalls = 20
	maxPageTime  = 300 * time.Millisecond
	pageLoads    = 20
	// maxBackground bounds the wait for the commands that a page runs in the background.
	maxBackground = 10 * time.Minute
)

// pageCost is what a page, or a command line, costs.
type pageCost struct {
	name  string
	calls int           // the median
	time  time.Duration // the median
	// background is the time until the commands in the background had a result, and reads are all calls until then.
	background time.Duration
	reads      int
}

// consoleFixture is a deployment with many transactions of today, over a local database.
type consoleFixture struct {
	*fixture
	environment  map[string]string
	profiles     []*merchant.Profile
	transactions int
	began        time.Time // of today's transactions
}

// measureConsole fills a local database and measures each page.
func measureConsole(ctx context.Context, root string, transactions int, progress io.Writer) ([]pageCost, error) {
	built, err := template.Load(filepath.Join(root, "template.yaml"), template.Options{
		StackName: "bench", Parameters: local.Parameters(),
	})
	if err != nil {
		return nil, err
	}
	f := &consoleFixture{fixture: &fixture{deployment: built, delays: typicalDelays()}, transactions: transactions}
	defer f.close()
	if err := f.startServices(ctx); err != nil {
		return nil, err
	}
	if err := f.connect(ctx); err != nil {
		return nil, err
	}
	started := time.Now()
	if err := f.fill(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "%d transactions stored in %s\n", transactions, time.Since(started).Round(time.Second))
	costs, err := f.measureFind(ctx)
	if err != nil {
		return nil, err
	}
	pages, err := f.measurePages(progress)
	return append(pages, costs...), err
}

// connect sets the variables of gatewayctl, and reads the merchants.
func (f *consoleFixture) connect(ctx context.Context) error {
	names := f.deployment.References
	folder, err := os.MkdirTemp("", "bench-console-")
	if err != nil {
		return err
	}
	f.closers = append(f.closers, func() { _ = os.RemoveAll(folder) })
	f.environment = map[string]string{
		"LEDGER_TABLE": names["LedgerTable"], "MERCHANT_TABLE": names["MerchantTable"],
		"LIMIT_TABLE": names["LimitTable"], "OPERATOR_CREDENTIALS_SECRET": names["OperatorSecret"],
		"TOKEN_KEY_SECRET": names["TokenKeySecret"], "TOKEN_PUBLIC_KEY_SECRET": names["TokenPublicKeySecret"],
		"CALLBACK_KEY_SECRET": names["CallbackKeySecret"], "WEBHOOK_KEY_SECRET": names["WebhookKeySecret"],
		"AUDIT_LOG_FILE": filepath.Join(folder, "audit.log"),
	}
	for name, value := range f.endpoints {
		f.environment[name] = value
	}
	registry := merchantdynamo.NewRegistry(f.client.DynamoDB(), names["MerchantTable"])
	ids, err := registry.IDs(ctx)
	if err != nil {
		return err
	}
	slices.Sort(ids)
	for _, id := range ids {
		profile, err := registry.Profile(ctx, id)
		if err != nil {
			return err
		}
		f.profiles = append(f.profiles, profile)
	}
	now := time.Now().UTC()
	f.began = now.Truncate(24 * time.Hour)
	if now.Sub(f.began) < time.Hour {
		f.began = now.Add(-time.Hour)
	}
	return nil
}

// fill stores the transactions in batches, past the gateway.
func (f *consoleFixture) fill(ctx context.Context) error {
	const batch, writers = 25, 4 // DynamoDB's limit of a batch
	table := f.deployment.References["LedgerTable"]
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for first := 0; first < f.transactions && ctx.Err() == nil; first += batch {
		group.Go(func() error {
			var writes []types.WriteRequest
			for i := first; i < min(first+batch, f.transactions); i++ {
				item, err := ledgerdynamo.Encode(f.newPayment(i))
				if err != nil {
					return err
				}
				writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
			}
			out, err := f.client.DynamoDB().BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
				RequestItems: map[string][]types.WriteRequest{table: writes},
			})
			if err == nil && len(out.UnprocessedItems) > 0 {
				err = fmt.Errorf("the table took only a part of %d entries", len(writes))
			}
			return err
		})
	}
	return group.Wait()
}

// Of this many payments one has no outcome yet, one has an unknown one, and one has a notification that waits.
const rare = 1000

// newPayment is a payment of today. Most are successful, and their notifications are delivered.
func (f *consoleFixture) newPayment(i int) *ledger.Entry {
	p := f.profiles[i%len(f.profiles)]
	spread := time.Since(f.began) - time.Minute
	at := f.began.Add(spread * time.Duration(i) / time.Duration(f.transactions)).Truncate(time.Millisecond)
	id := p.Name + "_" + strconv.Itoa(i)
	key := ledger.Key{Kind: ledger.Payment, ID: id}
	message := ledger.Notification{ID: ledger.NotificationID(key, ledger.Successful), Status: ledger.Successful, At: at}
	delivered := message
	delivered.Attempts, delivered.DeliveredAt = 1, at.Add(time.Second)
	e := &ledger.Entry{
		Key: key, Merchant: ledger.Merchant{ID: p.ID, Name: p.Name}, Version: 3, CreatedAt: at, UpdatedAt: at,
		Call:     ledger.Call{State: ledger.Done, SentAt: at, ReservedAt: at},
		Progress: ledger.Progress{Status: ledger.Successful, FinalAt: at},
		Route:    ledger.Route{Operator: "sandbox", Account: "local", Country: "CI", UpstreamKey: id},
		Request:  ledger.Request{Channel: "ussd", MSISDN: fmt.Sprintf("22507070%05d", i), State: "cart-7"},
		Amount:   ledger.Amount{Minor: int64(1000 + i%100), Currency: "XOF"},
		Response: ledger.Response{Status: http.StatusCreated, Body: make([]byte, 500)},
		Outbox:   ledger.Outbox{URL: "https://shop.example/n", Delivered: []ledger.Notification{delivered}},
	}
	e.Merchant.DayShard = p.DayShard(key)
	switch i % rare {
	case 1: // pending
		e.Status, e.FinalAt, e.Outbox.Delivered = ledger.Pending, time.Time{}, nil
		e.Poll.At = time.Now().Add(time.Hour)
	case 2: // unknown
		e.State, e.Status, e.FinalAt, e.Outbox.Delivered = ledger.Unknown, ledger.Pending, time.Time{}, nil
		e.EverUnknown, e.Owner, e.Poll.At = true, "o", time.Now().Add(time.Hour)
	case 3: // a notification that waits
		message.Attempts, message.NextAttemptAt = 4, time.Now().Add(time.Hour)
		e.Outbox.Delivered, e.Outbox.Waiting = nil, []ledger.Notification{message}
	case 4: // a dead letter
		message.Attempts, message.DeadReason = 10, "timeout"
		e.Outbox.Delivered, e.Outbox.Waiting = nil, []ledger.Notification{message}
	}
	e.Reschedule()
	return e
}

// drainCalls returns the number of calls of DynamoDB since the last drain.
func (f *consoleFixture) drainCalls() (count int) {
	for _, m := range []*meter{f.dynamo, f.circuits} {
		calls, _ := m.drain()
		for _, n := range calls {
			count += n
		}
	}
	return count
}

// run returns what runs a command line of gatewayctl.
func (f *consoleFixture) run() console.Run {
	return gatewayctl.NewRunner(deployment.System{
		Getenv: func(name string) string { return f.environment[name] }, User: "bench", Now: time.Now,
		Rand: rand.Reader, Connect: deployment.Connect,
	})
}

// measureFind measures a page of each kind of search.
func (f *consoleFixture) measureFind(ctx context.Context) (costs []pageCost, err error) {
	run, name := f.run(), f.profiles[0].Name
	var next string
	for _, words := range []string{
		"--merchant " + name, "--continue", "--status successful", "--amount 1005", "--amount 1005 --payer 34",
		"--status pending", "--state unknown", "--operator sandbox --country CI", name + "_0",
	} {
		arguments := append([]string{"find", "--json"}, strings.Fields(words)...)
		if words == "--continue" {
			arguments = []string{"find", "--json", "--merchant", name, "--continue=" + next}
			words = "--merchant " + name + " --continue TOKEN"
		}
		var output bytes.Buffer
		cost, err := f.repeat("`gatewayctl find "+words+"`", func() error {
			output.Reset()
			var stderr bytes.Buffer
			if code := run(ctx, arguments, &output, &stderr); code != 0 {
				return fmt.Errorf("gatewayctl %s: exit %d: %s", strings.Join(arguments, " "), code, stderr.String())
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		costs = append(costs, cost)
		var found struct {
			Continue string `json:"continue"`
		}
		if err := json.Unmarshal(output.Bytes(), &found); err != nil {
			return nil, err
		}
		next = found.Continue
	}
	return costs, nil
}

// repeat measures one page.
func (f *consoleFixture) repeat(name string, load func() error) (pageCost, error) {
	var times []time.Duration
	var counts []int
	for range pageLoads {
		f.drainCalls()
		began := time.Now()
		if err := load(); err != nil {
			return pageCost{}, err
		}
		times, counts = append(times, time.Since(began)), append(counts, f.drainCalls())
	}
	slices.Sort(times)
	slices.Sort(counts)
	return pageCost{name: name, calls: counts[pageLoads/2], time: times[pageLoads/2]}, nil
}

// frozenClock is the console's clock. It moves only while a command runs, so that no command of the background begins
// again while a page is measured.
type frozenClock struct {
	mutex sync.Mutex
	at    time.Time
}

func (c *frozenClock) now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.at
}

func (c *frozenClock) move() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.at = c.at.Add(time.Second)
}

// measurePages measures the pages. The commands in the background have ended before.
func (f *consoleFixture) measurePages(progress io.Writer) (costs []pageCost, err error) {
	clock, isWarm, run := &frozenClock{at: time.Now()}, false, f.run()
	made, err := console.New(console.Config{
		Run: func(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
			if !isWarm {
				defer clock.move()
			}
			return run(ctx, arguments, stdout, stderr)
		},
		Now: clock.now, Rand: rand.Reader, Port: "3003", Where: "bench",
	})
	if err != nil {
		return nil, err
	}
	b := &browser{console: made}
	if _, err := b.load(made.Opening()); err != nil {
		return nil, err
	}
	name := f.profiles[0].Name
	for _, path := range []string{
		"/", "/attention", "/search", "/search?merchant=" + name, "/search?amount=1005&payer=34",
		"/search?q=" + name + "_0", "/transaction?kind=pay&id=" + name + "_0", "/operators",
		"/deliveries", "/deliveries?merchant=" + name, "/reconciliation", "/merchants", "/merchant?name=" + name,
		"/accounts", "/keys", "/audit",
	} {
		isWarm = false
		f.drainCalls()
		began := time.Now()
		for {
			text, err := b.load(path)
			if err != nil {
				return nil, err
			}
			if !strings.Contains(text, "being read") {
				break
			}
			if time.Since(began) > maxBackground {
				return nil, fmt.Errorf("%s: its commands in the background take more than %s", path, maxBackground)
			}
		}
		background, reads := time.Since(began), f.drainCalls()
		isWarm = true
		cost, err := f.repeat("`"+path+"`", func() error {
			_, err := b.load(path)
			return err
		})
		if err != nil {
			return nil, err
		}
		cost.background, cost.reads = background, reads
		fmt.Fprintf(progress, "%s: %d calls, %s\n", cost.name, cost.calls, cost.time.Round(time.Millisecond))
		costs = append(costs, cost)
	}
	return costs, nil
}

// browser loads pages of a console in this process. It keeps the cookies.
type browser struct {
	console *console.Console
	cookies []*http.Cookie
}

func (b *browser) load(path string) (string, error) {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, http.NoBody)
	r.Host = "127.0.0.1:3003"
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	b.console.ServeHTTP(w, r)
	b.cookies = append(b.cookies, w.Result().Cookies()...)
	if w.Code != http.StatusOK {
		return "", fmt.Errorf("%s: status %d", path, w.Code)
	}
	return w.Body.String(), nil
}
