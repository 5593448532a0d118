package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mobilegateway/proof/kits/localtest"
)

// shopDeadline is how long all orders of a shop may take. The slow operator of 1004 takes 60 seconds. A payment of 1003
// expires after 120 seconds, which is shopPaymentLifetime divided by shopSpeed.
const (
	shopDeadline        = 4 * time.Minute
	shopSpeed           = 60
	shopPaymentLifetime = "120m"
)

// shopKinds are the kinds of an order, in the order of the page's columns.
var shopKinds = []string{"charge", "ussd", "web", "sms"}

// shopOrder is a shop's view of an order.
type shopOrder struct {
	Number        string `json:"number"`
	Kind          string `json:"kind"`
	Label         string `json:"label"`
	Customer      string `json:"customer"`
	Key           string `json:"key"`
	PaymentURL    string `json:"payment_url"`
	Notifications int    `json:"notifications"`
}

// shop is a running sample shop with the orders of all test numbers.
type shop struct {
	t        *testing.T
	gateway  *localtest.Gateway
	client   *http.Client
	language string
	// prefix begins the numbers of this shop's orders.
	prefix, address string
	command         func() *exec.Cmd
	process         *exec.Cmd
	// expected and payers are by the order's number, and orders are the latest views. confirmed are the orders whose
	// payment page was confirmed.
	expected, payers map[string]string
	orders           map[string]shopOrder
	confirmed        map[string]bool
	work             sync.WaitGroup
}

// TestLocalSamples runs the curl commands of the reference and both sample shops. At each shop it buys with every test
// number, and kills the shop while requests are in progress. It compares what the customer read at the end with the
// table of docs/merchants.md.
func TestLocalSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a gateway and two shops, and waits for a slow operator")
	}
	requireTool(t, "node", "bash", "curl")
	t.Parallel() // it waits most of the time
	gateway := localtest.Start(t, localtest.Options{Speed: shopSpeed,
		EnvOverrides: map[string]string{"PAYMENT_LIFETIME": shopPaymentLifetime}})
	shops := startShops(t, gateway)
	for _, s := range shops {
		s.orderEverything()
	}
	keys := map[string]bool{}
	for _, key := range checkCurlSamples(t, gateway) {
		keys[key] = true
	}
	time.Sleep(3 * time.Second) // some requests are in progress; any moment is valid
	for _, s := range shops {
		s.kill()
		s.startProcess()
	}
	workUntilDone(t, shops)
	for _, s := range shops {
		s.checkEffects()
		s.checkRefundAndForgery()
		s.checkChargeNotification()
		for _, order := range s.orders {
			keys[order.Key] = true
		}
	}
	checkNoOtherKey(t, gateway, keys)
}

// startShops starts the shop of each language. Without PHP the test fails in CI and is only about Node elsewhere.
func startShops(t *testing.T, gateway *localtest.Gateway) []*shop {
	t.Helper()
	// They are below the ports that Linux gives to outgoing connections, so that they stay free while a shop restarts.
	port, settings := freePorts(t, 2, 10000, 32000), filepath.Join(gateway.Dir, "run.json")
	shops := []*shop{newShop(t, gateway, "node", "1", port, func() *exec.Cmd {
		return exec.Command("node", "docs/samples/node/shop.mjs", settings)
	})}
	interpreter, err := php()
	switch {
	case err == nil:
		arguments := append(slices.Clone(interpreter), "-S", "127.0.0.1:"+strconv.Itoa(port+1),
			"docs/samples/php/shop.php")
		shops = append(shops, newShop(t, gateway, "php", "2", port+1, func() *exec.Cmd {
			command := exec.Command(arguments[0], arguments[1:]...)
			command.Env = []string{"SETTINGS=" + settings, "PHP_CLI_SERVER_WORKERS=20"}
			return command
		}))
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Log("without the shop in PHP:", err)
	}
	return shops
}

// checkNoOtherKey checks that the operator has no keys but those of the samples' orders. A sample that makes a second
// key for an order, for example after a 504 or a 404, fails here.
func checkNoOtherKey(t *testing.T, gateway *localtest.Gateway, keys map[string]bool) {
	t.Helper()
	_, _, text := localtest.Send(t, http.MethodGet, gateway.Info().SandboxURL+"/sandbox/v1/transactions", "", nil)
	var transactions []struct{ Kind, Key string }
	if err := json.Unmarshal([]byte(text), &transactions); err != nil || len(transactions) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	for _, transaction := range transactions {
		key := transaction.Key[strings.LastIndex(transaction.Key, ".")+1:] // without the merchant's name
		if !keys[key] {
			t.Errorf("the operator got a %s with the key %s, which belongs to no order", transaction.Kind, key)
		}
	}
}

// newShop starts a shop, which ends with the test.
func newShop(
	t *testing.T, gateway *localtest.Gateway, language, prefix string, port int, start func() *exec.Cmd,
) *shop {
	t.Helper()
	data := t.TempDir()
	s := &shop{t: t, gateway: gateway, client: &http.Client{Timeout: 40 * time.Second}, language: language,
		prefix: prefix, address: "http://127.0.0.1:" + strconv.Itoa(port), expected: map[string]string{},
		payers: map[string]string{}, orders: map[string]shopOrder{}, confirmed: map[string]bool{}}
	s.command = func() *exec.Cmd {
		command := start()
		command.Dir = rootDir
		command.Env = append(append(environment(), "PORT="+strconv.Itoa(port), "SHOP_DATA="+data), command.Env...)
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return command
	}
	s.startProcess()
	t.Cleanup(func() {
		s.kill()
		s.work.Wait()
	})
	return s
}

func (s *shop) startProcess() {
	s.t.Helper()
	s.process = s.command()
	var output bytes.Buffer
	s.process.Stdout, s.process.Stderr = &output, &output
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if status, _, err := s.call(http.MethodGet, "/orders/1", nil); err == nil && status == http.StatusNotFound {
			return
		}
		if time.Now().After(deadline) {
			s.kill()
			s.t.Fatalf("the shop does not respond:\n%s", output.String())
		}
	}
}

// kill ends the shop's process group as a crash would.
func (s *shop) kill() {
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL)
	_ = s.process.Wait() // it was killed
}

// call sends a request to the shop.
func (s *shop) call(method, path string, body any) (int, []byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequest(method, s.address+path, strings.NewReader(string(text)))
	if err != nil {
		return 0, nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	return response.StatusCode, read, err
}

// orderEverything orders once for each cell of the page's table. The shop is killed meanwhile, so that a request may
// fail.
func (s *shop) orderEverything() {
	for _, row := range tableRows(s.t, merchantsPage, "What the customer saw")[1:] {
		if len(row) != len(shopKinds)+1 {
			continue // the table of labels
		}
		digits := row[0]
		if digits == "any other" {
			digits = "2000"
		}
		for i := range shopKinds {
			number := fmt.Sprintf("%s%d%s", s.prefix, i, digits)
			s.expected[number], s.payers[number] = row[i+1], "+22507000"+s.prefix+digits
			s.order(number)
		}
	}
}

// order orders in the background. The number names the kind and the payer.
func (s *shop) order(number string) {
	kind := shopKinds[number[1]-'0']
	s.background(http.MethodPut, "/orders/"+number,
		map[string]string{"kind": kind, "amount": "500", "payer": s.payers[number]})
}

// background sends a request whose response does not matter.
func (s *shop) background(method, path string, body any) {
	s.work.Go(func() { _, _, _ = s.call(method, path, body) })
}

// workUntilDone lets the shops work until every order has the label of the table.
func workUntilDone(t *testing.T, shops []*shop) {
	t.Helper()
	for deadline := time.Now().Add(shopDeadline); ; time.Sleep(time.Second) {
		var wrong []string
		for _, s := range shops {
			wrong = append(wrong, s.doWork()...)
		}
		if len(wrong) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s:\n%s", shopDeadline, strings.Join(wrong, "\n"))
		}
	}
}

// doWork calls the shop's work as a cron job would, confirms payment pages, and returns the orders that do not have the
// label of the table.
func (s *shop) doWork() (wrong []string) {
	s.background(http.MethodPost, "/work", nil)
	for number, want := range s.expected {
		order, err := s.view(number)
		if err == nil {
			err = s.confirmPage(order)
		}
		if err != nil || order.Label != want || order.Customer == "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s %s: %q, want %q (%v)", s.language, order.Kind, number,
				order.Label, want, err))
		}
		s.orders[number] = order
	}
	slices.Sort(wrong)
	return wrong
}

// view reads an order, and orders again as the customer would if the killed shop does not know it.
func (s *shop) view(number string) (order shopOrder, err error) {
	status, text, err := s.call(http.MethodGet, "/orders/"+number, nil)
	if err != nil {
		return order, err
	}
	if status == http.StatusNotFound {
		s.order(number)
		return order, errors.New("the shop was killed before it stored the order")
	}
	return order, json.Unmarshal(text, &order)
}

// confirmPage confirms the payment page of an order once, as the customer with the test number would.
func (s *shop) confirmPage(order shopOrder) error {
	if order.Label != "page" || s.confirmed[order.Number] {
		return nil
	}
	payer := s.payers[order.Number]
	_, _, text := localtest.Send(s.t, http.MethodPost, s.gateway.Info().SandboxURL+"/sandbox/v1/tests",
		`{"msisdn":"`+payer+`"}`, nil)
	var issued struct {
		PIN string `json:"pin"`
	}
	if err := json.Unmarshal([]byte(text), &issued); err != nil {
		return err
	}
	form := url.Values{"msisdn": {payer}, "pin": {issued.PIN}, "action": {"confirm"}}
	status, _, _ := localtest.Send(s.t, http.MethodPost, order.PaymentURL, form.Encode(),
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	s.confirmed[order.Number] = status == http.StatusSeeOther // else the PIN was too late
	return nil
}

// checkEffects compares what happened at the operator with what the customer read, for each order.
func (s *shop) checkEffects() {
	s.t.Helper()
	kinds := map[string]string{"charge": "charge", "ussd": "payment", "web": "payment", "sms": "sms"}
	for number, order := range s.orders {
		_, _, text := localtest.Send(s.t, http.MethodGet, s.gateway.Info().SandboxURL+"/sandbox/v1/effects?key="+
			url.QueryEscape(order.Key), "", nil)
		want := 0
		if slices.Contains([]string{"paid", "delivered", "sent"}, order.Label) {
			want = 1
		}
		if got := strings.Count(text, `"kind":"`+kinds[order.Kind]+`"`); got != want {
			s.t.Errorf("%s: %s %s: the customer read %q, and the operator had %d effects: %s", s.language, order.Kind,
				number, order.Customer, got, text)
		}
		if order.Label == "paid" && order.Notifications > 1 {
			s.t.Errorf("%s: %s %s was notified %d times", s.language, order.Kind, number, order.Notifications)
		}
	}
}

// checkRefundAndForgery checks that a refund is said to be absent, and that a notification without a signature changes
// nothing.
func (s *shop) checkRefundAndForgery() {
	s.t.Helper()
	for number, order := range s.orders {
		if order.Label != "not paid" {
			continue
		}
		status, text, err := s.call(http.MethodPost, "/orders/"+number+"/refund", nil)
		if err != nil || status != http.StatusNotImplemented || !strings.Contains(string(text), "has no refunds") {
			s.t.Errorf("a refund responded %d, %s, %v", status, text, err)
		}
		status, _, err = s.call(http.MethodPost, "/webhook", map[string]string{"order-id": order.Key,
			"status": "successful", "amount": "500", "currency": "XOF"})
		after, viewErr := s.view(number)
		if err != nil || viewErr != nil || status != http.StatusBadRequest || after.Label != order.Label {
			s.t.Errorf("a forged notification responded %d, %v; the order is %q", status, err, after.Label)
		}
		return
	}
	s.t.Error("no payment failed")
}
