package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
)

// crowdSign is in the ids of entries that addCrowd stores.
const crowdSign = "_crowd"

// isCrowd reports whether an entry was stored by addCrowd: no operator knows it.
func isCrowd(e *ledger.Entry) bool { return strings.Contains(e.ID, crowdSign) }

// addCrowd stores successful payments of a merchant at an operator, as if they had ended at this time. Their payers'
// SMS are due, or their notifications. shard is the shard of all, or -1 for any.
func (w *World) addCrowd(s *shop, operatorName string, count, shard int, dueSMS bool) {
	now := ledger.Timestamp(time.Now())
	for number := 0; count > 0; number++ {
		key := ledger.Key{Kind: ledger.Payment, ID: fmt.Sprintf("%s%s%d", s.Name, crowdSign, number)}
		if shard >= 0 && ledger.DueShard(key) != shard {
			continue
		}
		count--
		e := &ledger.Entry{
			Key: key, Merchant: ledger.Merchant{ID: s.profile.ID, Name: s.Name}, Version: 1,
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
			_, err = w.database.PutItem(&dynamodb.PutItemInput{TableName: aws.String(ledgerTable), Item: item})
		}
		if err != nil {
			w.Fail("store an entry of the crowd: %s", err)
			return
		}
	}
}
