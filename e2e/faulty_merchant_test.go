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

	"mobilegateway/proof/kits/localtest"
)

// acceleratedSpeed divides the schedules, so that a day takes 24 seconds.
const acceleratedSpeed = 3600

// responseMode is how a merchant's server responds to one notification.
type responseMode string

const (
	respond500    responseMode = "500"
	respond429    responseMode = "429 with Retry-After"
	respondLater  responseMode = "429 with Retry-After of an hour"
	respond410    responseMode = "410"
	respond301    responseMode = "301"
	cutConnection responseMode = "cut"
	respondSlowly responseMode = "slow drip"
	respond200    responseMode = "200"
)

// deliveryAttempt is one received notification and the response to it.
type deliveryAttempt struct {
	notification observation
	at           time.Time
	mode         responseMode
}

// faultyServer is a merchant's server that fails with the given modes in order, per path, and then works.
type faultyServer struct {
	*httptest.Server

	mu                sync.Mutex
	modes             map[string][]responseMode    // by path
	attempts          map[string][]deliveryAttempt // by path
	followedRedirects int                          // requests that prove a followed redirect
}

// newFaultyServer starts a server.
func newFaultyServer(t *testing.T) *faultyServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveFaulty(t, listener)
}

// serveFaulty starts a server on a listener.
func serveFaulty(t *testing.T, listener net.Listener) *faultyServer {
	m := &faultyServer{modes: map[string][]responseMode{}, attempts: map[string][]deliveryAttempt{}}
	m.Server = httptest.NewUnstartedServer(m)
	_ = m.Listener.Close()
	m.Listener = listener
	m.Start()
	t.Cleanup(m.Close)
	return m
}

// newUnreachableServer reserves an address that refuses connections until up starts a server there.
func newUnreachableServer(t *testing.T) (address string, up func() *faultyServer) {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(socket)
	file := os.NewFile(uintptr(socket), "a reserved port")
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

// recordAttempt records a request and returns the mode of the response.
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

// ServeHTTP responds in the next mode.
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
	case respondLater:
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	case respond410:
		w.WriteHeader(http.StatusGone)
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

// respondByteByByte sends the head of a response so slowly that every client times out.
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
		time.Sleep(pollInterval)
	}
}

// attemptsAt returns the attempts at a path.
func (m *faultyServer) attemptsAt(path string) []deliveryAttempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.attempts[path])
}

// TestFaultyMerchantServer lets a merchant's server fail in all modes and then work. All notifications arrive. Each
// has the same id on every attempt, and no earlier status follows a later one (decisions "notifications" and
// "notification-order"). In the same run, where a day takes 24 seconds, an unconfirmed payment expires.
func TestFaultyMerchantServer(t *testing.T) {
	requireLocalRun(t)
	t.Parallel()
	run := localtest.Start(t, localtest.Options{Speed: acceleratedSpeed,
		EnvOverrides: map[string]string{"WEBHOOK_TIMEOUT": "2s"}})
	g := mustReadTarget(t, filepath.Join(run.Dir, "run.json"))
	t.Run("decision pay-poll: 1003 expires at the end of its lifetime", func(t *testing.T) {
		t.Parallel()
		checkPaymentExpiry(t, g)
	})
	t.Run("decision access-tokens: a short-lived token expires", func(t *testing.T) {
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
	t.Run("decision notifications: all faults in sequence", func(t *testing.T) {
		t.Parallel()
		m := newFaultyServer(t)
		m.modes["/hook"] = []responseMode{respond500, respond429, respond301, cutConnection, respondSlowly}
		m.checkPaymentAttempts(t, g, 6)
	})
	t.Run("decision notifications: the server is down for a while", func(t *testing.T) {
		t.Parallel()
		checkUnreachableServer(t, g)
	})
	t.Run("decision notification-order: statuses of one SMS", func(t *testing.T) {
		t.Parallel()
		checkStatusOrder(t, g)
	})
}

// startPayment sends a payment with a notif_url, unless that is "".
func startPayment(t *testing.T, g *target, notifyURL, msisdn string) string {
	t.Helper()
	order := g.Merchant + "_" + g.newID()
	a := newPayment(g.MerchantCredentials, order, "ussd", msisdn)
	if notifyURL != "" {
		a.body["notif_url"] = notifyURL
	}
	if response := g.mustSend(t, a); response.status != http.StatusCreated {
		t.Fatal(response.errorf("the payment was refused"))
	}
	return order
}

// checkPaymentAttempts starts a payment and checks that the given delivery attempt is the first successful one.
func (m *faultyServer) checkPaymentAttempts(t *testing.T, g *target, attempts int) {
	order := startPayment(t, g, m.URL+"/hook", successfulMSISDN)
	deliveries := eventually(t, notificationTimeout, func() ([]deliveryAttempt, error) {
		found := m.attemptsAt("/hook")
		if len(found) == 0 || found[len(found)-1].mode != respond200 {
			return nil, fmt.Errorf("no successful delivery yet after %d attempts", len(found))
		}
		return found, nil
	})
	if len(deliveries) != attempts {
		t.Errorf("attempt %d succeeded, want %d", len(deliveries), attempts)
	}
	for i, v := range deliveries {
		v.checkAttempt(t, g, deliveries[0], order)
		if i > 0 && deliveries[i-1].mode == respond429 && v.at.Sub(deliveries[i-1].at) < 3*time.Second {
			t.Errorf("the next attempt came %s after Retry-After: 3, want at least 3s", v.at.Sub(deliveries[i-1].at))
		}
	}
	m.mu.Lock()
	followed := m.followedRedirects
	m.mu.Unlock()
	if followed > 0 {
		t.Error("a redirect was followed")
	}
	time.Sleep(2 * time.Second) // time for an unwanted attempt
	if again := m.attemptsAt("/hook"); len(again) != len(deliveries) {
		t.Errorf("sent again after a successful delivery: %d attempts, then %d", len(deliveries), len(again))
	}
}

// checkAttempt checks that an attempt has its own signature and the same content as the first.
func (v deliveryAttempt) checkAttempt(t *testing.T, g *target, first deliveryAttempt, order string) {
	t.Helper()
	if err := verifyWithGoLibrary(g.WebhookSecret, v.notification); err != nil {
		t.Error(v.notification.errorf("the signature is invalid: %v", err))
	}
	if got, want := v.notification.header.Get("Webhook-Id"), first.notification.header.Get("Webhook-Id"); got != want {
		t.Errorf("webhook-id %s at first, then %s", want, got)
	}
	if string(v.notification.body) != string(first.notification.body) {
		t.Error(v.notification.errorf("another body than\n%s", first.notification.body))
	}
	if got, _ := v.notification.textValue("order-id"); got != order {
		t.Error(v.notification.errorf("the order-id is not %s", order))
	}
}

// checkUnreachableServer checks the delivery to a server that is started late.
func checkUnreachableServer(t *testing.T, g *target) {
	address, up := newUnreachableServer(t)
	if connection, err := net.Dial("tcp", address); err == nil {
		_ = connection.Close()
		t.Fatal("the address accepts connections too early")
	}
	order := startPayment(t, g, "http://"+address+"/hook", successfulMSISDN)
	time.Sleep(4 * time.Second)
	m := up()
	deliveries := eventually(t, notificationTimeout, func() ([]deliveryAttempt, error) {
		found := m.attemptsAt("/hook")
		if len(found) == 0 {
			return nil, fmt.Errorf("no notification yet")
		}
		return found, nil
	})
	deliveries[0].checkAttempt(t, g, deliveries[0], order)
}

// checkStatusOrder checks that a failed delivery of the first status delays the second.
func checkStatusOrder(t *testing.T, g *target) {
	m := newFaultyServer(t)
	m.modes["/receipts"] = []responseMode{respond500, cutConnection, respond301}
	a := newSMS(g.MerchantCredentials, g.newID(), g.GWAlias, "tel:+2250000")
	setPath(a.body, "outboundSMSMessageRequest.receiptRequest.notifyURL", m.URL+"/receipts")
	if response := g.mustSend(t, a); response.status != http.StatusCreated {
		t.Fatal(response.errorf("the SMS was refused"))
	}
	eventuallyNoError(t, notificationTimeout, func() error {
		got := m.attemptedStatuses("/receipts")
		if !slices.Contains(got, "DeliveredToTerminal") {
			return fmt.Errorf("statuses so far: %q", got)
		}
		return nil
	})
	want := []string{"DeliveredToNetwork", "DeliveredToNetwork", "DeliveredToNetwork", "DeliveredToNetwork",
		"DeliveredToTerminal"}
	if got := m.attemptedStatuses("/receipts"); !slices.Equal(got, want) {
		t.Errorf("the delivery attempts have the statuses %q, want %q", got, want)
	}
	ids := map[string]string{}
	for _, v := range m.attemptsAt("/receipts") {
		status, _ := v.notification.textValue(receiptStatus)
		id := v.notification.header.Get("Webhook-Id")
		if ids[status] != "" && ids[status] != id {
			t.Errorf("the status %s has the webhook-ids %s and %s", status, ids[status], id)
		}
		ids[status] = id
	}
}

// attemptedStatuses returns the status of each attempt at a path.
func (m *faultyServer) attemptedStatuses(path string) []string {
	var found []string
	for _, v := range m.attemptsAt(path) {
		status, _ := v.notification.textValue(receiptStatus)
		found = append(found, status)
	}
	return found
}

// checkTokenExpiry checks that a token expires; an hour of this run is a second.
func checkTokenExpiry(t *testing.T, g *target) {
	token, status, err := g.fetchToken(g.ClientID, g.ClientSecret)
	if err != nil || status != http.StatusOK {
		t.Fatalf("the token endpoint returned %d, %v", status, err)
	}
	eventuallyNoError(t, 10*time.Second, func() error {
		a := newCharge(g.MerchantCredentials, g.newID(), g.GWAlias)
		a.header["Authorization"] = "Bearer " + token
		response, err := g.send(a)
		if err != nil {
			return err
		}
		id, _ := response.textValue("requestError.policyException.messageId")
		if response.status != http.StatusUnauthorized || id != "900901" {
			return response.errorf("the token is still valid")
		}
		return nil
	})
}

// checkPaymentExpiry checks that an unconfirmed payment (1003) expires after a day of this run, and that a later
// success changes nothing.
func checkPaymentExpiry(t *testing.T, g *target) {
	started := time.Now()
	order := startPayment(t, g, "", "+2250700001003")
	checkNotifiedOnce(t, g, order, "expired")
	if elapsed := time.Since(started); elapsed < 24*time.Second {
		t.Errorf("expired after %s, want 24 h / %d", elapsed, acceleratedSpeed)
	}
	if err := g.sandboxControl(http.MethodPost, "settle", map[string]any{"key": order, "status": "successful"},
		nil); err != nil {
		t.Fatal(err)
	}
	eventuallyNoError(t, 10*time.Second, func() error {
		text, _, err := g.transactionAtOperator(order, "payment")
		if err != nil {
			return err
		}
		outcome, err := observation{source: "the operator's transaction",
			body: text}.textValue("callbacks.0.attempts.0.answer")
		if err == nil && outcome != "200" {
			err = fmt.Errorf("the late callback got %s, want 200", outcome)
		}
		return err
	})
	checkNotifiedOnce(t, g, order, "expired")
	if err := g.checkStatus(order, "expired"); err != nil {
		t.Error(err)
	}
}
