// Package inbox is the demo merchant's server for notifications. It stores every request that is posted to any path,
// and shows it with the status of its Standard Webhooks signature.
//
// It verifies signatures with the library of Standard Webhooks, so it also checks the gateway's own signing. It is for
// the local run: it accepts a notification from any sender. The invariant: a notification with response 200 is on disk.
package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// maxBodyBytes is the maximum size of a notification.
const maxBodyBytes = 1 << 20

// Message is one received notification. Header names are in lower case.
type Message struct {
	ReceivedAt time.Time         `json:"received_at"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
}

// storedMessage is a message as the file has it.
type storedMessage struct {
	Message
	Path            string `json:"path"`
	SignatureStatus string `json:"verdict"`
}

// Inbox stores messages in a file, one JSON document per line. It is safe for concurrent use.
type Inbox struct {
	now func() time.Time

	mu       sync.Mutex
	file     *os.File
	secrets  []string
	messages []storedMessage
}

// Open reads the file, or creates it. It removes an incomplete last line.
func Open(path string, now func() time.Time) (*Inbox, error) {
	i := &Inbox{now: now}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the inbox: %w", err)
	}
	completeLines := text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(completeLines) {
		var m storedMessage
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s is damaged: %w", path, err)
		}
		i.messages = append(i.messages, m)
	}
	i.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = i.file.Truncate(int64(len(completeLines)))
	}
	if err != nil {
		return nil, fmt.Errorf("open the inbox: %w", err)
	}
	return i, nil
}

// SetSecrets sets the webhook secrets (whsec_...). A notification must be signed with one of them.
func (i *Inbox) SetSecrets(secrets ...string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.secrets = secrets
}

// Close closes the file.
func (i *Inbox) Close() error { return i.file.Close() }

// Handler serves the list and the page, and accepts notifications on every other path.
func (i *Inbox) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /messages", i.listMessages)
	mux.HandleFunc("GET /{$}", i.servePage)
	mux.HandleFunc("GET /", http.NotFound)
	mux.HandleFunc("/", i.receiveNotification)
	return mux
}

func (i *Inbox) receiveNotification(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		http.Error(w, "the notification cannot be read", http.StatusBadRequest)
		return
	}
	received := Message{ReceivedAt: i.now().UTC(), Headers: map[string]string{}, Body: string(body)}
	m := storedMessage{Path: r.URL.Path, Message: received}
	for name, values := range r.Header {
		m.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	if err := i.store(m); err != nil {
		http.Error(w, "the notification cannot be stored", http.StatusServiceUnavailable)
	}
}

func (i *Inbox) store(m storedMessage) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	m.SignatureStatus = checkSignature(i.secrets, m.Message)
	if err := json.NewEncoder(i.file).Encode(m); err != nil { // one Write, with the newline
		return err
	}
	i.messages = append(i.messages, m)
	return nil
}

// listMessages sends the messages in order of arrival: all, or those with the order-id of the query.
func (i *Inbox) listMessages(w http.ResponseWriter, r *http.Request) {
	orderIDs, filtered := r.URL.Query()["order_id"]
	found := []Message{}
	for _, m := range i.snapshot() {
		if !filtered || orderID(m.Body) == orderIDs[0] {
			found = append(found, m.Message)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(found) // texts and times always marshal, and the client may have gone
}

func (i *Inbox) snapshot() []storedMessage {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.messages)
}

// orderID returns the order-id of a payment notification; "" for another body.
func orderID(body string) string {
	var notification struct {
		OrderID string `json:"order-id"`
	}
	_ = json.Unmarshal([]byte(body), &notification) // an error leaves ""
	return notification.OrderID
}

// timestampTolerance is the maximum difference of a notification's time and its arrival (Standard Webhooks 1.0).
const timestampTolerance = 5 * time.Minute

// checkSignature returns the status of a message's signature: "verified" if one of the secrets made it, else the reason
// why it is not valid.
func checkSignature(secrets []string, m Message) string {
	header := http.Header{}
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		value := m.Headers[name]
		if value == "" {
			return "not signed"
		}
		header.Set(name, value)
	}
	seconds, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil {
		return "timestamp is not a number"
	}
	if age := m.ReceivedAt.Sub(time.Unix(seconds, 0)); age.Abs() > timestampTolerance {
		return fmt.Sprintf("timestamp is %s off", age.Round(time.Second))
	}
	for _, secret := range secrets {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err == nil && verifier.VerifyIgnoringTimestamp([]byte(m.Body), header) == nil {
			return "verified"
		}
	}
	return "signature does not match"
}
