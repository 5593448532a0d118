package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/gatewayctl/restore"
	"mobilegateway/proof/kits/localtest"
)

// ledgerCopy is the ledger's table with its items of a moment, by their keys.
type ledgerCopy struct {
	t      *testing.T
	client *dynamodb.Client
	table  string
	items  map[string]map[string]types.AttributeValue
}

// scan reads all items of the table.
func (c *ledgerCopy) scan() map[string]map[string]types.AttributeValue {
	c.t.Helper()
	items := map[string]map[string]types.AttributeValue{}
	pages := dynamodb.NewScanPaginator(c.client, &dynamodb.ScanInput{TableName: &c.table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		for _, item := range page.Items {
			items[item["pk"].(*types.AttributeValueMemberS).Value] = item
		}
	}
	return items
}

// restore makes the table what the copy is, as a restore to the moment of the copy does.
func (c *ledgerCopy) restore() (lost int) {
	c.t.Helper()
	for key, item := range c.scan() {
		if c.items[key] != nil {
			continue
		}
		lost++
		_, err := c.client.DeleteItem(c.t.Context(), &dynamodb.DeleteItemInput{
			TableName: &c.table, Key: map[string]types.AttributeValue{"pk": item["pk"]},
		})
		if err != nil {
			c.t.Fatal(err)
		}
	}
	for _, item := range c.items {
		put := &dynamodb.PutItemInput{TableName: &c.table, Item: item}
		if _, err := c.client.PutItem(c.t.Context(), put); err != nil {
			c.t.Fatal(err)
		}
	}
	return lost
}

// copyLedger returns the table with its items of now.
func (e *ctlSession) copyLedger() *ledgerCopy {
	e.t.Helper()
	environment := e.run.Environment()
	environment["AWS_ENDPOINT_URL_DYNAMODB"] = e.run.DynamoDBURL()
	c := &ledgerCopy{t: e.t, client: newAWSClient(e.t, environment).DynamoDB(), table: environment["LEDGER_TABLE"]}
	c.items = c.scan()
	return c
}

// awaitStatus waits until getStatus reports a final status of an order.
func (e *ctlSession) awaitStatus(order string) {
	e.t.Helper()
	e.eventually(func() error {
		response, err := e.target.send(newRequestBuilder(e.target.MerchantCredentials, http.MethodGet,
			"/mobilemoney/v1/getStatus/"+order))
		if err != nil {
			return err
		}
		if status, _ := response.textValue("status"); status != "successful" {
			return fmt.Errorf("%s is %q (%d), want successful", order, status, response.status)
		}
		return nil
	})
}

// TestRestoredLedger takes a copy of the ledger, sends more, and restores the copy. After restore check the retries of
// what the ledger had lost have no second effect at the operator, and the payments are final (docs/recovery.md).
func TestRestoredLedger(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a gateway")
	}
	t.Parallel()
	e := newCtlSession(t, localtest.Options{})
	from := e.target.MerchantCredentials
	kept := e.payByDigits("2000")
	e.awaitStatus(kept)
	copied, moment := e.copyLedger(), time.Now().UTC().Format(time.RFC3339)

	requests := map[string]*requestBuilder{}
	expected := map[string]int{} // the status of a retry
	for _, channel := range []string{"ussd", "tpe"} {
		order := from.Merchant + "_" + e.target.newID()
		requests[order], expected[order] = newPayment(from, order, channel, successfulMSISDN), http.StatusConflict
	}
	requests["lost-charge"], expected["lost-charge"] = newCharge(from, "lost-charge", from.GWAlias), 504
	requests["lost-sms"], expected["lost-sms"] = newSMS(from, "lost-sms", from.GWAlias, "tel:+2250707"), 409
	effects := map[string]int{}
	for key, request := range requests {
		if status, err := e.target.sendForStatus(request); status != http.StatusCreated {
			t.Fatalf("%s got %d, %v", key, status, err)
		}
		if strings.HasPrefix(key, from.Merchant) {
			e.awaitStatus(key)
		}
	}
	count := func(key string) int {
		t.Helper()
		upstream := key
		if !strings.HasPrefix(key, from.Merchant) {
			upstream = from.Merchant + "." + key
		}
		found, err := e.target.effectsOf(upstream, "")
		if err != nil || len(found) == 0 {
			t.Fatalf("%d effects under %s, %v", len(found), upstream, err)
		}
		return len(found)
	}
	for key := range requests {
		if strings.HasPrefix(key, from.Merchant) { // the payment, and then the SMS to its payer
			e.eventually(func() error {
				if sent := count(key); sent != 2 {
					return fmt.Errorf("%s has %d effects, want 2", key, sent)
				}
				return nil
			})
		}
		effects[key] = count(key)
	}
	if lost := copied.restore(); lost < len(requests) {
		t.Fatalf("the restore lost %d items, want at least %d", lost, len(requests))
	}

	line := "restore check --at " + moment
	logs, err := filepath.Glob(filepath.Join(e.run.Dir, "log", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal("no log files", err)
	}
	for _, path := range logs {
		line += " --log " + path
	}
	var views []restore.View
	stderr := e.mustRun(line+confirmFlags, &views)
	if len(views) != 1 || views[0].Stored < len(requests) || views[0].Masked > 0 || views[0].Final != 2 {
		t.Errorf("restore check found %+v: %s", views, stderr)
	}
	for key, request := range requests {
		for range 2 {
			if status, err := e.target.sendForStatus(request); status != expected[key] {
				t.Errorf("the retry of %s got %d, %v, want %d", key, status, err, expected[key])
			}
			request.body["other"] = "body" // the first body of a payment and an SMS is lost too
		}
		if strings.HasPrefix(key, from.Merchant) {
			e.awaitStatus(key)
		}
		if got := count(key); got != effects[key] {
			t.Errorf("%s has %d effects at the operator, want %d", key, got, effects[key])
		}
	}
	e.awaitStatus(kept)
	e.mustRun(line+confirmFlags, &views)
	if views[0].Stored+views[0].Reopened > 0 {
		t.Errorf("a second run stored something: %+v", views)
	}
}
