package inbox_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobilegateway/proof/kits/localtest"
	"mobilegateway/shared/webhook"
	"mobilegateway/world/inbox"
)

const order = `{"order-id":"Demo_1","status":"successful","state":"<b>&amp;"}`

var receivedAt = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func openInbox(t *testing.T, path string) (*inbox.Inbox, string) {
	t.Helper()
	i, err := inbox.Open(path, func() time.Time { return receivedAt })
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(i.Handler())
	t.Cleanup(func() {
		server.Close()
		_ = i.Close()
	})
	return i, server.URL
}

func messages(t *testing.T, address string) []inbox.Message {
	t.Helper()
	status, _, text := localtest.Send(t, "GET", address, "", nil)
	var list []inbox.Message
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != 200 || list == nil {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	return list
}

func TestMessagesAreStoredAndListed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	_, url := openInbox(t, path)
	if got := messages(t, url+"/messages"); len(got) != 0 {
		t.Errorf("an empty inbox lists %v", got)
	}
	for _, body := range []string{order, `{"order-id":"Demo_2"}`, "not JSON"} {
		status, _, _ := localtest.Send(t, "POST", url+"/notifications/DemoShop", body, http.Header{"Webhook-Id": {"w"}})
		if status != 200 {
			t.Fatalf("the status is %d, want 200", status)
		}
	}
	got := messages(t, url+"/messages?order_id=Demo_1")
	if len(got) != 1 {
		t.Fatalf("one order has %d messages, want 1", len(got))
	}
	if got[0].Body != order || got[0].Headers["webhook-id"] != "w" {
		t.Errorf("the message has body %s and headers %v", got[0].Body, got[0].Headers)
	}
	if !got[0].ReceivedAt.Equal(receivedAt) {
		t.Errorf("the message was received at %s, want %s", got[0].ReceivedAt, receivedAt)
	}
	if got := messages(t, url+"/messages?order_id=Demo_3"); len(got) != 0 {
		t.Errorf("an unknown order lists %v", got)
	}
	text, err := os.ReadFile(path)
	if err == nil { // an incomplete line after a crash
		err = os.WriteFile(path, append(text, `{"received_at":"2026-`...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, again := openInbox(t, path)
	if got := messages(t, again+"/messages"); len(got) != 3 {
		t.Errorf("after a restart there are %d messages, want 3", len(got))
	}
	localtest.Send(t, "POST", again+"/", order, nil)
	_, third := openInbox(t, path)
	if got := messages(t, third+"/messages"); len(got) != 4 {
		t.Errorf("after one more message there are %d messages, want 4", len(got))
	}
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	if err := os.WriteFile(path, []byte("{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := inbox.Open(path, time.Now); err == nil {
		t.Error("a damaged file was accepted")
	}
}

func TestPageShowsSignatureStatus(t *testing.T) {
	secret := webhook.Secret("12345678901234567890123456789012")
	old := webhook.Secret("another-secret-of-thirty-two-byte")
	signed := func(at time.Time, secrets ...webhook.Secret) http.Header {
		return http.Header{
			"Webhook-Id": {"w"}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)},
			"Webhook-Signature": {webhook.Sign(secrets, "w", at, []byte(order))},
		}
	}
	invalidTime := http.Header{"Webhook-Id": {"w"}, "Webhook-Timestamp": {"x"}, "Webhook-Signature": {"v1,"}}
	cases := map[string]struct {
		header http.Header
		want   string
	}{
		"signed":                  {signed(receivedAt, secret), ">verified<"},
		"signed with two secrets": {signed(receivedAt, old, secret), ">verified<"},
		"signed with another":     {signed(receivedAt, old), ">signature does not match<"},
		"signed ten minutes ago":  {signed(receivedAt.Add(-10*time.Minute), secret), ">timestamp is 10m0s off<"},
		"not signed":              {nil, ">not signed<"},
		"invalid time":            {invalidTime, ">timestamp is not a number<"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			i, url := openInbox(t, filepath.Join(t.TempDir(), "inbox.jsonl"))
			i.SetSecrets(secret.Text())
			localtest.Send(t, "POST", url+"/n", order, c.header)
			status, header, page := localtest.Send(t, "GET", url+"/", "", nil)
			if status != 200 || !strings.Contains(page, c.want) {
				t.Errorf("status %d, want %q in the page:\n%s", status, c.want, page)
			}
			policy := header.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") {
				t.Errorf("the page's policy is %q", policy)
			}
			if strings.Contains(page, "<b>") || strings.Contains(page, "<script") {
				t.Errorf("the page contains markup of the notification:\n%s", page)
			}
		})
	}
}

func TestOtherPaths(t *testing.T) {
	_, url := openInbox(t, filepath.Join(t.TempDir(), "inbox.jsonl"))
	if status, _, _ := localtest.Send(t, "GET", url+"/elsewhere", "", nil); status != 404 {
		t.Errorf("GET of an unknown path responds %d, want 404", status)
	}
	if status, _, _ := localtest.Send(t, "POST", url+"/", strings.Repeat("x", 1<<20+1), nil); status != 400 {
		t.Errorf("a notification over the limit gets %d, want 400", status)
	}
}
