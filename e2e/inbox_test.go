package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"mobilegateway/e2e/harness"
)

// message is one notification in the inbox.
type message struct {
	ReceivedAt time.Time         `json:"received_at"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
}

// observation returns the message in the form that the checks read.
func (m message) observation() observation {
	header := http.Header{}
	for name, value := range m.Headers {
		header.Set(name, value)
	}
	return observation{source: "a notification", header: header, body: []byte(m.Body)}
}

// inboxMessages lists the notifications of an order, oldest first; "" is all orders.
func (g *target) inboxMessages(order string) ([]message, error) {
	address := g.InboxURL + "/messages"
	if order != "" {
		address += "?order_id=" + url.QueryEscape(order)
	}
	text, _, err := harness.Call(context.Background(), http.MethodGet, address, "", nil)
	if err != nil {
		return nil, err
	}
	var found []message
	return found, json.Unmarshal(text, &found)
}

// statusesOf returns the status of each message.
func statusesOf(messages []message, path string) []string {
	statuses := []string{}
	for _, m := range messages {
		status, _ := m.observation().textValue(path)
		statuses = append(statuses, status)
	}
	return statuses
}

// notifications checks all notifications of an order: notifications ORDER successful. Without a status it checks that
// none arrived.
func (s *story) notifications(arguments []string) error {
	found, err := s.target.inboxMessages(arguments[0])
	if err != nil {
		return err
	}
	if got := statusesOf(found, "status"); !slices.Equal(got, arguments[1:]) {
		atOperator, _, _ := s.target.transactionAtOperator(arguments[0], "payment")
		return fmt.Errorf("the merchant got the receipts %q for %s, want %q; the operator: %s; the functions:\n%s",
			got, arguments[0], arguments[1:], atOperator, s.target.functionLogs(arguments[0]))
	}
	return nil
}

// functionLogs returns the log lines of a local run that contain a key; "" on another target.
func (g *target) functionLogs(key string) string {
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(g.path), "log", "*.log")) // the pattern is valid
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			found = append(found, err.Error())
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, key) {
				found = append(found, filepath.Base(file)+": "+line)
			}
		}
	}
	return strings.Join(found, "")
}

// lastNotification reads the last notification of an order for the checks.
func (s *story) lastNotification(arguments []string) error {
	return s.recordLast(arguments, s.target.inboxMessages)
}

// lastReceipt reads the last delivery notification with a callbackData for the checks.
func (s *story) lastReceipt(arguments []string) error {
	return s.recordLast(arguments, s.target.receiptsOf)
}

// recordLast records the last message that list returns for the one argument.
func (s *story) recordLast(arguments []string, list func(string) ([]message, error)) error {
	found, err := list(arguments[0])
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("no notification for %s arrived", arguments[0])
	}
	s.record(found[len(found)-1].observation())
	return nil
}

const (
	receiptData   = "deliveryInfoNotification.callbackData"
	receiptStatus = "deliveryInfoNotification.deliveryInfo.deliveryStatus"
)

// receiptsOf lists the delivery notifications with a callbackData.
func (g *target) receiptsOf(data string) ([]message, error) {
	all, err := g.inboxMessages("")
	return slices.DeleteFunc(all, func(m message) bool {
		found, err := m.observation().textValue(receiptData)
		return err != nil || found != data
	}), err
}

// receipts checks all delivery notifications with a callbackData: receipts DATA DeliveredToNetwork.
func (s *story) receipts(arguments []string) error {
	found, err := s.target.receiptsOf(arguments[0])
	if err != nil {
		return err
	}
	if got := statusesOf(found, receiptStatus); !slices.Equal(got, arguments[1:]) {
		return fmt.Errorf("the merchant got the receipts %q for %s, want %q", got, arguments[0], arguments[1:])
	}
	return nil
}

// verifySignature checks the last notification's signature with the official libraries of Go and JavaScript:
// verify-signature [-as second]. It also checks that both refuse another body, and another secret.
func (s *story) verifySignature(arguments []string) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	secret := s.merchantFor(o).WebhookSecret
	if err := verifyWithGoLibrary(secret, s.last); err != nil {
		return s.last.errorf("the Go library: %v", err)
	}
	if err := verifyWithNodeLibrary(secret, s.last); err != nil {
		return s.last.errorf("the JavaScript library: %v", err)
	}
	forged := s.last
	forged.body = append(bytes.Clone(forged.body), ' ')
	other := s.target.SecondMerchant.WebhookSecret
	if secret == other {
		other = s.target.WebhookSecret
	}
	if verifyWithGoLibrary(secret, forged) == nil || verifyWithNodeLibrary(secret, forged) == nil ||
		verifyWithGoLibrary(other, s.last) == nil {
		return errors.New("a library verified a forged notification")
	}
	return nil
}

// verifyWithGoLibrary verifies a notification with the official Go library.
func verifyWithGoLibrary(secret string, r observation) error {
	webhook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return webhook.Verify(r.body, r.header)
}

// installNodeLibrary installs the pinned JavaScript library if it is missing. Isolated targets have no network and
// find it installed.
var installNodeLibrary = sync.OnceValue(func() error {
	return harness.InstallNodeLibrary(context.Background(), "..")
})

// verifyWithNodeLibrary verifies a notification with the official JavaScript library.
func verifyWithNodeLibrary(secret string, r observation) error {
	if err := installNodeLibrary(); err != nil {
		return err
	}
	headers := map[string]string{}
	for name := range r.header {
		headers[name] = r.header.Get(name)
	}
	given, err := json.Marshal(map[string]any{"secret": secret, "headers": headers, "body": string(r.body)})
	if err != nil {
		return err
	}
	command := exec.Command("node", filepath.FromSlash("node/verify.mjs"))
	command.Stdin = bytes.NewReader(given)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}
