package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mobilegateway/internal/localtest"
)

// acceleratedSpeed divides the schedules so that a day is 24 seconds.
const acceleratedSpeed = 3600

// responseMode is how a merchant's server takes one notification.
type responseMode string

const (
	respond500    responseMode = "500"
	respond429    responseMode = "429 with Retry-After"
	respond301    responseMode = "301"
	cutConnection responseMode = "cut"
	respondSlowly responseMode = "slow drip"
	respond200    responseMode = "well"
)

// deliveryAttempt is one notification as it came, and how it was taken.
type deliveryAttempt struct {
	notification observation
	at           time.Time
	mode         responseMode
}

// faultyServer is a merchant's server that fails in the order it is told, path by path, and then is well.
type faultyServer struct {
	*httptest.Server

	mu                sync.Mutex
	modes             map[string][]responseMode    // by path
	attempts          map[string][]deliveryAttempt // by path
	followedRedirects int                          // requests that only a followed redirect brings
}

// newFaultyServer starts the server on an address that it can be started on again.
func newFaultyServer(t *testing.T) *faultyServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveFaulty(t, listener)
}

// serveFaulty serves what comes to a listener.
func serveFaulty(t *testing.T, listener net.Listener) *faultyServer {
	m := &faultyServer{modes: map[string][]responseMode{}, attempts: map[string][]deliveryAttempt{}}
	m.Server = httptest.NewUnstartedServer(m)
	_ = m.Listener.Close()
	m.Listener = listener
	m.Start()
	t.Cleanup(m.Close)
	return m
}

// newUnreachableServer is a merchant's server that is down, at an address that is its own: connections are refused there until up.
func newUnreachableServer(t *testing.T) (address string, up func() *faultyServer) {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(socket)
	file := os.NewFile(uintptr(socket), "a port that nobody listens at")
	t.Cleanup(func() { _ = file.Close() })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	address = fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
	return address, func() *faultyServer {
		if err := syscall.Listen(socket, syscall.SOMAXCONN); err != nil {
			t.Fatal(err)
		}
		listener, err := net.FileListener(file)
		if err != nil {
			t.Fatal(err)
		}
		return serveFaulty(t, listener)
	}
}

// recordAttempt notes a visit and says how it is taken.
func (m *faultyServer) recordAttempt(r *http.Request, body []byte) responseMode {
	m.mu.Lock()
	defer m.mu.Unlock()
	how, left := respond200, m.modes[r.URL.Path]
	if len(left) > 0 {
		how, m.modes[r.URL.Path] = left[0], left[1:]
	}
	if strings.HasSuffix(r.URL.Path, "/elsewhere") {
		m.followedRedirects++
	}
	seen := observation{source: "a notification", header: r.Header.Clone(), body: body}
	m.attempts[r.URL.Path] = append(m.attempts[r.URL.Path], deliveryAttempt{seen, time.Now(), how})
	return how
}

// ServeHTTP takes a notification as the mood is.
func (m *faultyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch m.recordAttempt(r, body) {
	case respond500:
		w.WriteHeader(http.StatusInternalServerError)
	case respond429:
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
	case respond301:
		w.Header().Set("Location", m.URL+r.URL.Path+"/elsewhere")
		w.WriteHeader(http.StatusMovedPermanently)
	case cutConnection:
		panic(http.ErrAbortHandler)
	case respondSlowly:
		respondByteByByte(w, r)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// respondByteByByte sends the head of an answer byte by byte, longer than anyone waits.
func respondByteByByte(w http.ResponseWriter, r *http.Request) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = connection.Close() }()
	for _, character := range []byte("HTTP/1.1 200 OK\r\nX-Slow: " + strings.Repeat("z", 200)) {
		if _, err := connection.Write([]byte{character}); err != nil || r.Context().Err() != nil {
			return
		}
		time.Sleep(pollEvery)
	}
}

// attemptsAt lists the visits of a path.
func (m *faultyServer) attemptsAt(path string) []deliveryAttempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.attempts[path])
}

// TestFaultyMerchantServer lets a merchant's server fail in all ways, and then be well: all notifications arrive, each with the
// same id on every attempt, and never an earlier status after a later one (decisions "notifications" and
// "notification-order"). In the same run, where a day is 24 seconds, a payment that nobody answers expires.
func TestFaultyMerchantServer(t *testing.T) {
	requireLocalRun(t)
	t.Parallel()
	run := localtest.Start(t, localtest.Options{Speed: acceleratedSpeed, EnvOverrides: map[string]string{"WEBHOOK_TIMEOUT": "2s"}})
	g := mustReadTarget(t, filepath.Join(run.Dir, "run.json"))
	t.Run("decision pay-poll: 1003 expires at the end of its lifetime", func(t *testing.T) {
		t.Parallel()
		checkPaymentExpiry(t, g)
	})
	t.Run("decision access-tokens: a short-lived token ends", func(t *testing.T) {
		t.Parallel()
		checkTokenExpiry(t, g)
	})
	for _, how := range []responseMode{respond500, respond429, respond301, cutConnection, respondSlowly} {
		t.Run("decision notifications: "+string(how), func(t *testing.T) {
			t.Parallel()
			m := newFaultyServer(t)
			m.modes["/hook"] = []responseMode{how, how}
			m.checkPaymentAttempts(t, g, 3)
		})
	}
	t.Run("decision notifications: everything goes wrong, one after the other", func(t *testing.T) {
		t.Parallel()
		m := newFaultyServer(t)
		m.modes["/hook"] = []responseMode{respond500, respond429, respond301, cutConnection, respondSlowly}
		m.checkPaymentAttempts(t, g, 6)
	})
	t.Run("decision notifications: the server is down for a while", func(t *testing.T) {
		t.Parallel()
		checkUnreachableServer(t, g)
	})
	t.Run("decision notification-order: a message's statuses", func(t *testing.T) {
		t.Parallel()
		checkStatusOrder(t, g)
	})
}

// startPayment posts a payment whose merchant is told at an address.
func startPayment(t *testing.T, g *target, notifyURL, msisdn string) string {
	t.Helper()
	order := g.Merchant + "_" + g.newID()
	a := newPayment(g.merchantCredentials, order, "ussd", msisdn)
	if notifyURL != "" {
		a.body["notif_url"] = notifyURL
	}
	request, err := a.build(g.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if response := mustExchange(t, newClient(), request); response.status != http.StatusCreated {
		t.Fatal(response.errorf("the payment is refused"))
	}
	return order
}

// checkPaymentAttempts sends one payment's notification and waits until it was taken well, at the attempt that is said.
func (m *faultyServer) checkPaymentAttempts(t *testing.T, g *target, attempts int) {
	order := startPayment(t, g, m.URL+"/hook", successfulMSISDN)
	deliveries := eventually(t, notificationTimeout, func() ([]deliveryAttempt, error) {
		found := m.attemptsAt("/hook")
		if len(found) == 0 || found[len(found)-1].mode != respond200 {
			return nil, fmt.Errorf("not taken well yet: %d attempts", len(found))
		}
		return found, nil
	})
	if len(deliveries) != attempts {
		t.Errorf("taken at attempt %d, want %d", len(deliveries), attempts)
	}
	for i, v := range deliveries {
		v.checkAttempt(t, g, deliveries[0], order)
		if i > 0 && deliveries[i-1].mode == respond429 && v.at.Sub(deliveries[i-1].at) < 3*time.Second {
			t.Errorf("%s after Retry-After: 3", v.at.Sub(deliveries[i-1].at))
		}
	}
	if m.mu.Lock(); m.followedRedirects > 0 {
		t.Error("a redirect was followed")
	}
	m.mu.Unlock()
	time.Sleep(2 * time.Second) // no more of it
	if again := m.attemptsAt("/hook"); len(again) != len(deliveries) {
		t.Errorf("sent again after it was taken well: %d attempts, then %d", len(deliveries), len(again))
	}
}

// checkAttempt: each attempt is signed anew, and is the same notification.
func (v deliveryAttempt) checkAttempt(t *testing.T, g *target, first deliveryAttempt, order string) {
	t.Helper()
	if err := verifyWithGoLibrary(g.WebhookSecret, v.notification); err != nil {
		t.Error(v.notification.errorf("not signed: %v", err))
	}
	if got, want := v.notification.header.Get("Webhook-Id"), first.notification.header.Get("Webhook-Id"); got != want {
		t.Errorf("webhook-id %s, then %s", want, got)
	}
	if string(v.notification.body) != string(first.notification.body) {
		t.Error(v.notification.errorf("another body than\n%s", first.notification.body))
	}
	if got, _ := v.notification.textValue("order-id"); got != order {
		t.Error(v.notification.errorf("not of %s", order))
	}
}

// checkUnreachableServer: nobody listens, and then somebody does.
func checkUnreachableServer(t *testing.T, g *target) {
	address, up := newUnreachableServer(t)
	if connection, err := net.Dial("tcp", address); err == nil {
		_ = connection.Close()
		t.Fatal("somebody listens")
	}
	order := startPayment(t, g, "http://"+address+"/hook", successfulMSISDN)
	time.Sleep(4 * time.Second)
	m := up()
	deliveries := eventually(t, notificationTimeout, func() ([]deliveryAttempt, error) {
		found := m.attemptsAt("/hook")
		if len(found) == 0 {
			return nil, fmt.Errorf("nothing came yet")
		}
		return found, nil
	})
	deliveries[0].checkAttempt(t, g, deliveries[0], order)
}

// checkStatusOrder: a message's first status is refused for a while; the second comes after it all the same.
func checkStatusOrder(t *testing.T, g *target) {
	m := newFaultyServer(t)
	m.modes["/receipts"] = []responseMode{respond500, cutConnection, respond301}
	a := newSMS(g.merchantCredentials, g.newID(), g.GWAlias, "tel:+2250000")
	setPath(a.body, "outboundSMSMessageRequest.receiptRequest.notifyURL", m.URL+"/receipts")
	request, err := a.build(g.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if response := mustExchange(t, newClient(), request); response.status != http.StatusCreated {
		t.Fatal(response.errorf("the message is refused"))
	}
	eventually(t, notificationTimeout, func() (struct{}, error) {
		got := m.attemptedStatuses("/receipts")
		if !slices.Contains(got, "DeliveredToTerminal") {
			return struct{}{}, fmt.Errorf("told so far: %q", got)
		}
		return struct{}{}, nil
	})
	want := []string{"DeliveredToNetwork", "DeliveredToNetwork", "DeliveredToNetwork", "DeliveredToNetwork", "DeliveredToTerminal"}
	if got := m.attemptedStatuses("/receipts"); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	ids := map[string]string{}
	for _, v := range m.attemptsAt("/receipts") {
		status, _ := v.notification.textValue(receiptStatus)
		id := v.notification.header.Get("Webhook-Id")
		if ids[status] != "" && ids[status] != id {
			t.Errorf("%s has the ids %s and %s", status, ids[status], id)
		}
		ids[status] = id
	}
}

// attemptedStatuses lists what a path was told, refused or not.
func (m *faultyServer) attemptedStatuses(path string) []string {
	var found []string
	for _, v := range m.attemptsAt(path) {
		status, _ := v.notification.textValue(receiptStatus)
		found = append(found, status)
	}
	return found
}

// checkTokenExpiry: an hour of this run is a second.
func checkTokenExpiry(t *testing.T, g *target) {
	a := newRequestBuilder(g.merchantCredentials, http.MethodPost, "/token?grant_type=client_credentials")
	a.body = nil
	request, err := a.build(g.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(g.ClientID, g.ClientSecret)
	request.Header.Del("Content-Type")
	token, err := mustExchange(t, newClient(), request).textValue("access_token")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() (struct{}, error) {
		a := newCharge(g.merchantCredentials, g.newID(), g.GWAlias)
		a.header["Authorization"] = "Bearer " + token
		request, err := a.build(g.BaseURL)
		if err != nil {
			return struct{}{}, err
		}
		response := mustExchange(t, newClient(), request)
		id, _ := response.textValue("requestError.policyException.messageId")
		if response.status != http.StatusUnauthorized || id != "900901" {
			return struct{}{}, response.errorf("the token still opens")
		}
		return struct{}{}, nil
	})
}

// checkPaymentExpiry: 1003 is never answered, and expires after a day of this run; a success that comes later changes nothing.
func checkPaymentExpiry(t *testing.T, g *target) {
	started := time.Now()
	order := startPayment(t, g, "", "+2250700001003")
	checkNotifiedOnce(t, g, order, "expired")
	if elapsed := time.Since(started); elapsed < 24*time.Second {
		t.Errorf("expired after %s, want 24 h / %d", elapsed, acceleratedSpeed)
	}
	if err := g.sandboxControl(http.MethodPost, "settle", map[string]any{"key": order, "status": "successful"}, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() (struct{}, error) {
		text, _, err := g.transactionAtOperator(order, "payment")
		if err != nil {
			return struct{}{}, err
		}
		outcome, err := observation{source: "the operator", body: text}.textValue("callbacks.0.attempts.0.answer")
		if err == nil && outcome != "200" {
			err = fmt.Errorf("the late callback was answered %s", outcome)
		}
		return struct{}{}, err
	})
	checkNotifiedOnce(t, g, order, "expired")
	a := newRequestBuilder(g.merchantCredentials, http.MethodGet, "/mobilemoney/v1/getStatus/"+order)
	a.body = nil
	request, err := a.build(g.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	response := mustExchange(t, newClient(), request)
	if status, _ := response.textValue("status"); status != "expired" {
		t.Error(response.errorf("a final status changed"))
	}
}
