package deployment

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/mirror"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
)

// CrowdSign is in the ids of entries that StoreCrowd stores.
const CrowdSign = "_crowd"

// IsCrowd reports whether an entry was stored by StoreCrowd: no operator knows it.
func IsCrowd(e *ledger.Entry) bool { return strings.Contains(e.ID, CrowdSign) }

// StoreCrowd stores successful payments of a merchant at an operator, as if they had ended at this time. Their payers'
// SMS are due, or their notifications. shard is the shard of all, or -1 for any.
func (t *Tables) StoreCrowd(s *fixture.Shop, operatorName string, count, shard int, dueSMS bool) {
	now := ledger.Timestamp(time.Now())
	for number := 0; count > 0; number++ {
		key := ledger.Key{Kind: ledger.Payment, ID: fmt.Sprintf("%s%s%d", s.Name, CrowdSign, number)}
		if shard >= 0 && ledger.DueShard(key) != shard {
			continue
		}
		count--
		e := &ledger.Entry{
			Key: key, Merchant: ledger.Merchant{ID: s.Profile.ID, Name: s.Name}, Version: 1,
			Call: ledger.Call{Owner: "crowd", State: ledger.Done, SentAt: now, ReservedAt: now}, Writer: "crowd",
			Progress: ledger.Progress{Status: ledger.Successful, FinalAt: now}, CreatedAt: now, UpdatedAt: now,
			Request: ledger.Request{
				Fingerprint: "crowd", Channel: "tpe", Lang: "fr", TransactionID: key.ID, MSISDN: "+2250700000000",
				CountryAsSent: "CI",
			},
			Route:  ledger.Route{UpstreamKey: key.ID, Country: "CI", Operator: operatorName, Account: "a1"},
			Amount: ledger.Amount{Minor: 100, Currency: "XOF", AsSent: "100"}, Outbox: ledger.Outbox{URL: s.NotifyURL},
		}
		if dueSMS {
			e.UserSMS.State, e.UserSMS.At = ledger.UserSMSDue, now
		} else {
			e.Outbox.Waiting = []ledger.Notification{{
				ID: ledger.NotificationID(key, e.Status), Status: e.Status, At: now, Attempts: 1, NextAttemptAt: now,
			}}
		}
		e.Reschedule()
		item, err := ledgerdynamo.Encode(e)
		if err == nil {
			_, err = t.Database.PutItem(&dynamodb.PutItemInput{TableName: aws.String(fixture.LedgerTable), Item: item})
		}
		if err != nil {
			t.Fail("store an entry of the crowd: %s", err)
			return
		}
	}
}

// ReplaceItem replaces the item of an entry, without a writer: a restore of the table does that.
func (t *Tables) ReplaceItem(e *ledger.Entry) {
	item, err := ledgerdynamo.Encode(e)
	if err == nil {
		_, err = t.Database.PutItem(&dynamodb.PutItemInput{TableName: aws.String(fixture.LedgerTable), Item: item})
	}
	if err != nil {
		t.Fail("replace an item: %s", err)
	}
}

// StoreUndecodable stores an item that cannot be decoded, and is due.
func (t *Tables) StoreUndecodable() {
	t.Entries.HasUndecodable = true
	item := dynamoitem.Key(mirror.Undecodable.String())
	item["ds"] = dynamoitem.Text(mirror.ShardOf(mirror.Undecodable))
	item[dueAttribute] = dynamoitem.Number(time.Now().UnixMilli())
	item["v"] = dynamoitem.Text("not a number")
	_, err := t.Database.PutItem(&dynamodb.PutItemInput{TableName: aws.String(fixture.LedgerTable), Item: item})
	if err != nil {
		t.Fail("store an undecodable item: %s", err)
	}
}

// RestoreItem does what docs/operations.md says about an item that cannot be decoded: it is as it was before.
func (t *Tables) RestoreItem() {
	if !t.Entries.HasUndecodable {
		return
	}
	_, err := t.Database.DeleteItem(&dynamodb.DeleteItemInput{
		TableName: aws.String(fixture.LedgerTable), Key: dynamoitem.Key(mirror.Undecodable.String()),
	})
	if err != nil {
		t.Fail("restore an item: %s", err)
	}
}
