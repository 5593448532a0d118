package audit_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/audit"
	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/dynamoitem"
)

// TestTwoCommandsAtOnce: commands that run together write one chain without a gap.
func TestTwoCommandsAtOnce(t *testing.T) {
	d, client, _ := gatewayctltest.NewOnLocalAWS(t)
	table := auditlog.Table{Client: client.DynamoDB(), Name: "merchants"}
	const commands, records = 4, 10
	var group sync.WaitGroup
	for command := range commands {
		group.Go(func() {
			for i := range records {
				r := auditlog.Record{ID: fmt.Sprint(command, "-", i), Who: "ama", Outcome: auditlog.OutcomeStarted}
				if _, err := table.Append(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	items, err := table.Items(t.Context())
	if err != nil || len(items) != commands*records {
		t.Fatalf("%d items, %v", len(items), err)
	}
	result := audit.Verify(items, []string{lastDocument(items)}, chainStart)
	d.Equal("faults", faultsOf(result), "")
	d.Equal("last sequence", auditlog.LastLink(items).Sequence, int64(commands*records))
	d.Equal("calls of the log", len(d.Logs.Actions), 0)
}

// lastDocument is the text of the last item of a chain.
func lastDocument(items []auditlog.Item) string {
	last := auditlog.LastLink(items)
	i := slices.IndexFunc(items,
		func(item auditlog.Item) bool { return auditlog.ReadItem(item).Link.Hash == last.Hash })
	return items[i].Document
}

// TestAppendReplacesNothing: a record keeps its place with every head, and a repeated write adds nothing.
func TestAppendReplacesNothing(t *testing.T) {
	_, client, _ := gatewayctltest.NewOnLocalAWS(t)
	table := auditlog.Table{Client: client.DynamoDB(), Name: "merchants"}
	count := 0
	add := func() auditlog.Item {
		count++
		item, err := table.Append(t.Context(), auditlog.Record{ID: fmt.Sprint(count), Outcome: auditlog.OutcomeStarted})
		if err != nil {
			t.Fatal(err)
		}
		return item
	}
	add()
	second := add()
	if repeated, err := table.Insert(t.Context(), second); repeated != second || err != nil {
		t.Errorf("the same write again: %v, %v", repeated, err)
	}
	other := auditlog.Item{Key: second.Key, Document: "{}"}
	if stored, err := table.Insert(t.Context(), other); stored != second || err != nil {
		t.Errorf("another write to the same place: %v, %v", stored, err)
	}
	for name, head := range map[string]dynamoitem.Item{
		"late": {"chain_sequence": dynamoitem.Number(1), "chain_hash": dynamoitem.Text("x")},
		"none": {}, "damaged": {"chain_sequence": dynamoitem.Text("x"), "chain_hash": dynamoitem.Text("x")},
	} {
		head[dynamoitem.KeyAttribute] = dynamoitem.Text("audit-head")
		_, err := client.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String("merchants"), Item: head,
		})
		if err != nil {
			t.Fatal(err)
		}
		add()
		items, err := table.Items(t.Context())
		if err != nil || len(items) != count {
			t.Errorf("head %s: %d items, %v", name, len(items), err)
		}
		gatewayctltest.Equal(t, "faults", faultsOf(audit.Verify(items, []string{lastDocument(items)}, chainStart)), "")
	}
}

// TestFarRecordBlocksNothing: a forged item far behind the end is a fault. Neither it nor a forged head stops a command
// or takes its record out of the chain.
func TestFarRecordBlocksNothing(t *testing.T) {
	head := func(sequence string) dynamoitem.Item {
		number := &types.AttributeValueMemberN{Value: sequence}
		return dynamoitem.Item{"chain_sequence": number, "chain_hash": dynamoitem.Text("x")}
	}
	document := dynamoitem.Item{"document": dynamoitem.Text(`{"id":"far","outcome":"done"}`)}
	for name, item := range map[string]dynamoitem.Item{
		"audit#000000000200": document, "audit#999999999998": document, "audit#999999999999": document,
		"audit#9223372036854775807": document, "audit#99999999999999999999999": document,
		"audit-head far": head("999999999997"), "audit-head last": head("999999999999"),
		"audit-head beyond": head("9223372036854775807"), "audit-head before": head("-9223372036854775808"),
	} {
		t.Run(name, func(t *testing.T) {
			d, client, _ := gatewayctltest.NewOnLocalAWS(t)
			put := func(key string, item dynamoitem.Item) {
				item = maps.Clone(item)
				item[dynamoitem.KeyAttribute] = dynamoitem.Text(key)
				_, err := client.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{
					TableName: aws.String("merchants"), Item: item,
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			d.Apply("keys add tokens")
			key, _, isHead := strings.Cut(name, " ")
			put(key, item)
			if !isHead {
				d.ExpectExit("audit verify", gatewayctl.ExitFailed, "fault")
				put("audit-head", dynamoitem.Item{}) // so the end is found by the items
			}
			d.Apply("keys add callbacks", "keys add webhooks", "keys add callbacks", "keys add webhooks")
			var result audit.Result
			_, out, _ := d.Exec("audit verify --json")
			gatewayctltest.Decode(t, out, &result)
			d.Equal("copies of five changes", result.Copies, 10)
			for _, f := range result.Faults {
				if f.What == "add a key" {
					t.Errorf("the record of a command is a fault: %+v", f)
				}
			}
		})
	}
}

// TestTamperingIsFound: verify finds what a person with the table's permissions did, by the log's copies.
func TestTamperingIsFound(t *testing.T) {
	d, client, _ := gatewayctltest.NewOnLocalAWS(t)
	d.Apply("keys add tokens", "keys add callbacks", "keys add webhooks")
	d.ExpectExit("audit verify", gatewayctl.ExitDone, "no fault")
	table := client.DynamoDB()
	remove := func(key string) {
		_, err := table.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: aws.String("merchants"), Key: dynamoitem.Key(key),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	remove("audit#000000000005")
	remove("audit#000000000006")
	remove("audit-head")
	d.ExpectExit("audit verify", gatewayctl.ExitFailed, "2 faults")
	d.ExpectOutput("audit", "add a key", "add a key") // the rest is still shown
	d.Apply("keys add tokens")                        // takes their places
	result, _ := gatewayctltest.QueryExit[audit.Result](d, "audit verify", gatewayctl.ExitFailed)
	d.Equal("faults", faultsOf(result), "5 changed, 6 changed")
	if !strings.Contains(result.Faults[0].Detail, "ring webhooks") {
		t.Errorf("the fault does not show the copy: %s", result.Faults[0].Detail)
	}
}

// TestRejectedCopy: the service accepts a request whose line it rejects. Nothing is changed then.
func TestRejectedCopy(t *testing.T) {
	d, _, _ := gatewayctltest.NewOnLocalAWS(t)
	d.Logs.Rejected = true
	d.ExpectFailed("keys add tokens", "nothing was done")
	d.Logs.Rejected = false
	d.ExpectExit("audit verify", gatewayctl.ExitFailed, "1 fault") // the record without a copy
	d.Apply("keys add tokens")
	d.ExpectExit("audit verify", gatewayctl.ExitDone, "1 without a copy")
	d.ExpectCount("keys", "keys list tokens", 1)
}
