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

// hurried divides the schedules so that a day is 24 seconds.
const hurried = 3600

// mood is how a merchant's server takes one notification.
type mood string

const (
	broken    mood = "500"
	throttled mood = "429 with Retry-After"
	moved     mood = "301"
	cutOff    mood = "cut"
	dripping  mood = "slow drip"
	well      mood = "well"
)

// visit is one notification as it came, and how it was taken.
type visit struct {
	message reply
	at      time.Time
	mood    mood
}

// moody is a merchant's server that fails in the order it is told, path by path, and then is well.
type moody struct {
	*httptest.Server

	mu     sync.Mutex
	moods  map[string][]mood  // by path
	visits map[string][]visit // by path
	strays int                // requests that only a followed redirect brings
}

// newMoody starts the server on an address that it can be started on again.
func newMoody(t *testing.T) *moody {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return moodyAt(t, listener)
}

// moodyAt serves what comes to a listener.
func moodyAt(t *testing.T, listener net.Listener) *moody {
	m := &moody{moods: map[string][]mood{}, visits: map[string][]visit{}}
	m.Server = httptest.NewUnstartedServer(m)
	_ = m.Listener.Close()
	m.Listener = listener
	m.Start()
	t.Cleanup(m.Close)
	return m
}

// newAbsent is a merchant's server that is down, at an address that is its own: connections are refused there until up.
func newAbsent(t *testing.T) (address string, up func() *moody) {
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
	return address, func() *moody {
		if err := syscall.Listen(socket, syscall.SOMAXCONN); err != nil {
			t.Fatal(err)
		}
		listener, err := net.FileListener(file)
		if err != nil {
			t.Fatal(err)
		}
		return moodyAt(t, listener)
	}
}

// next notes a visit and says how it is taken.
func (m *moody) next(r *http.Request, body []byte) mood {
	m.mu.Lock()
	defer m.mu.Unlock()
	how, left := well, m.moods[r.URL.Path]
	if len(left) > 0 {
		how, m.moods[r.URL.Path] = left[0], left[1:]
	}
	if strings.HasSuffix(r.URL.Path, "/elsewhere") {
		m.strays++
	}
	seen := reply{asked: "a notification", header: r.Header.Clone(), body: body}
	m.visits[r.URL.Path] = append(m.visits[r.URL.Path], visit{seen, time.Now(), how})
	return how
}

// ServeHTTP takes a notification as the mood is.
func (m *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch m.next(r, body) {
	case broken:
		w.WriteHeader(http.StatusInternalServerError)
	case throttled:
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
	case moved:
		w.Header().Set("Location", m.URL+r.URL.Path+"/elsewhere")
		w.WriteHeader(http.StatusMovedPermanently)
	case cutOff:
		panic(http.ErrAbortHandler)
	case dripping:
		drip(w, r)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// drip sends the head of an answer byte by byte, longer than anyone waits.
func drip(w http.ResponseWriter, r *http.Request) {
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

// seen lists the visits of a path.
func (m *moody) seen(path string) []visit {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.visits[path])
}

// TestMerchantFails lets a merchant's server fail in all ways, and then be well: all notifications arrive, each with the
// same id on every attempt, and never an earlier status after a later one (decisions "notifications" and
// "notification-order"). In the same run, where a day is 24 seconds, a payment that nobody answers expires.
func TestMerchantFails(t *testing.T) {
	needsLocal(t)
	t.Parallel()
	run := localtest.Start(t, localtest.Options{Speed: hurried, Env: map[string]string{"WEBHOOK_TIMEOUT": "2s"}})
	g := mustRead(t, filepath.Join(run.Dir, "run.json"))
	t.Run("decision pay-poll: 1003 expires at the end of its lifetime", func(t *testing.T) {
		t.Parallel()
		expires(t, g)
	})
	t.Run("decision access-tokens: a short-lived token ends", func(t *testing.T) {
		t.Parallel()
		tokenEnds(t, g)
	})
	for _, how := range []mood{broken, throttled, moved, cutOff, dripping} {
		t.Run("decision notifications: "+string(how), func(t *testing.T) {
			t.Parallel()
			m := newMoody(t)
			m.moods["/hook"] = []mood{how, how}
			m.judgePayment(t, g, 3)
		})
	}
	t.Run("decision notifications: everything goes wrong, one after the other", func(t *testing.T) {
		t.Parallel()
		m := newMoody(t)
		m.moods["/hook"] = []mood{broken, throttled, moved, cutOff, dripping}
		m.judgePayment(t, g, 6)
	})
	t.Run("decision notifications: the server is down for a while", func(t *testing.T) {
		t.Parallel()
		down(t, g)
	})
	t.Run("decision notification-order: a message's statuses", func(t *testing.T) {
		t.Parallel()
		inOrder(t, g)
	})
}

// start posts a payment whose merchant is told at an address.
func start(t *testing.T, g *target, notifyURL, msisdn string) string {
	t.Helper()
	order := g.Merchant + "_" + g.newID()
	a := newPayment(g.shop, order, "ussd", msisdn)
	if notifyURL != "" {
		a.body["notif_url"] = notifyURL
	}
	request, err := a.request(g.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if answer := sure(t, newClient(), request); answer.status != http.StatusCreated {
		t.Fatal(answer.wrong("the payment is refused"))
	}
	return order
}

// judgePayment sends one payment's notification and waits until it was taken well, at the attempt that is said.
func (m *moody) judgePayment(t *testing.T, g *target, attempts int) {
	order := start(t, g, m.URL+"/hook", plainNumber)
	visits := eventually(t, toldWithin, func() ([]visit, error) {
		found := m.seen("/hook")
		if len(found) == 0 || found[len(found)-1].mood != well {
			return nil, fmt.Errorf("not taken well yet: %d attempts", len(found))
		}
		return found, nil
	})
	if len(visits) != attempts {
		t.Errorf("taken at attempt %d, want %d", len(visits), attempts)
	}
	for i, v := range visits {
		v.judge(t, g, visits[0], order)
		if i > 0 && visits[i-1].mood == throttled && v.at.Sub(visits[i-1].at) < 3*time.Second {
			t.Errorf("%s after Retry-After: 3", v.at.Sub(visits[i-1].at))
		}
	}
	if m.mu.Lock(); m.strays > 0 {
		t.Error("a redirect was followed")
	}
	m.mu.Unlock()
	time.Sleep(2 * time.Second) // no more of it
	if again := m.seen("/hook"); len(again) != len(visits) {
		t.Errorf("sent again after it was taken well: %d attempts, then %d", len(visits), len(again))
	}
}

// judge: each attempt is signed anew, and is the same notification.
func (v visit) judge(t *testing.T, g *target, first visit, order string) {
	t.Helper()
	if err := verifyGo(g.WebhookSecret, v.message); err != nil {
		t.Error(v.message.wrong("not signed: %v", err))
	}
	if got, want := v.message.header.Get("Webhook-Id"), first.message.header.Get("Webhook-Id"); got != want {
		t.Errorf("webhook-id %s, then %s", want, got)
	}
	if string(v.message.body) != string(first.message.body) {
		t.Error(v.message.wrong("another body than\n%s", first.message.body))
	}
	if got, _ := v.message.text("order-id"); got != order {
		t.Error(v.message.wrong("not of %s", order))
	}
}

// down: nobody listens, and then somebody does.
func down(t *testing.T, g *target) {
	address, up := newAbsent(t)
	if connection, err := net.Dial("tcp", address); err == nil {
		_ = connection.Close()
		t.Fatal("somebody listens")
	}
	order := start(t, g, "http://"+address+"/hook", plainNumber)
	time.Sleep(4 * time.Second)
	m := up()
	visits := eventually(t, toldWithin, func() ([]visit, error) {
		found := m.seen("/hook")
		if len(found) == 0 {
			return nil, fmt.Errorf("nothing came yet")
		}
		return found, nil
	})
	visits[0].judge(t, g, visits[0], order)
}

// inOrder: a message's first status is refused for a while; the second comes after it all the same.
func inOrder(t *testing.T, g *target) {
	m := newMoody(t)
	m.moods["/receipts"] = []mood{broken, cutOff, moved}
	a := newSMS(g.shop, g.newID(), g.GWAlias, "tel:+2250000")
	put(a.body, "outboundSMSMessageRequest.receiptRequest.notifyURL", m.URL+"/receipts")
	request, err := a.request(g.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if answer := sure(t, newClient(), request); answer.status != http.StatusCreated {
		t.Fatal(answer.wrong("the message is refused"))
	}
	eventually(t, toldWithin, func() (struct{}, error) {
		got := m.statuses("/receipts")
		if !slices.Contains(got, "DeliveredToTerminal") {
			return struct{}{}, fmt.Errorf("told so far: %q", got)
		}
		return struct{}{}, nil
	})
	want := []string{"DeliveredToNetwork", "DeliveredToNetwork", "DeliveredToNetwork", "DeliveredToNetwork", "DeliveredToTerminal"}
	if got := m.statuses("/receipts"); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	ids := map[string]string{}
	for _, v := range m.seen("/receipts") {
		status, _ := v.message.text(receiptStatus)
		id := v.message.header.Get("Webhook-Id")
		if ids[status] != "" && ids[status] != id {
			t.Errorf("%s has the ids %s and %s", status, ids[status], id)
		}
		ids[status] = id
	}
}

// statuses lists what a path was told, refused or not.
func (m *moody) statuses(path string) []string {
	var found []string
	for _, v := range m.seen(path) {
		status, _ := v.message.text(receiptStatus)
		found = append(found, status)
	}
	return found
}

// tokenEnds: an hour of this run is a second.
func tokenEnds(t *testing.T, g *target) {
	a := newAsk(g.shop, http.MethodPost, "/token?grant_type=client_credentials")
	a.body = nil
	request, err := a.request(g.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(g.ClientID, g.ClientSecret)
	request.Header.Del("Content-Type")
	token, err := sure(t, newClient(), request).text("access_token")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() (struct{}, error) {
		a := newCharge(g.shop, g.newID(), g.GWAlias)
		a.header["Authorization"] = "Bearer " + token
		request, err := a.request(g.BaseURL)
		if err != nil {
			return struct{}{}, err
		}
		answer := sure(t, newClient(), request)
		id, _ := answer.text("requestError.policyException.messageId")
		if answer.status != http.StatusUnauthorized || id != "900901" {
			return struct{}{}, answer.wrong("the token still opens")
		}
		return struct{}{}, nil
	})
}

// expires: 1003 is never answered, and expires after a day of this run; a success that comes later changes nothing.
func expires(t *testing.T, g *target) {
	began := time.Now()
	order := start(t, g, "", "+2250700001003")
	tellOnce(t, g, order, "expired")
	if took := time.Since(began); took < 24*time.Second {
		t.Errorf("expired after %s, want 24 h / %d", took, hurried)
	}
	if err := g.control(http.MethodPost, "settle", map[string]any{"key": order, "status": "successful"}, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() (struct{}, error) {
		text, _, err := g.knows(order, "payment")
		if err != nil {
			return struct{}{}, err
		}
		outcome, err := reply{asked: "the operator", body: text}.text("callbacks.0.attempts.0.answer")
		if err == nil && outcome != "200" {
			err = fmt.Errorf("the late callback was answered %s", outcome)
		}
		return struct{}{}, err
	})
	tellOnce(t, g, order, "expired")
	a := newAsk(g.shop, http.MethodGet, "/mobilemoney/v1/getStatus/"+order)
	a.body = nil
	request, err := a.request(g.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	answer := sure(t, newClient(), request)
	if status, _ := answer.text("status"); status != "expired" {
		t.Error(answer.wrong("a final status changed"))
	}
}
