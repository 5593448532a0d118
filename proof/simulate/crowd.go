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
			Key: key, MerchantID: s.profile.ID, Merchant: s.Name, Version: 1, Owner: "crowd", Writer: "crowd",
			State: ledger.Done, Status: ledger.Successful, CreatedAt: now, SentAt: now, ReservedAt: now, UpdatedAt: now,
			FinalAt: now, Fingerprint: "crowd", UpstreamKey: key.ID, Country: "CI", Operator: operatorName,
			Account: "a1", Channel: "tpe", Lang: "fr", AmountMinor: 100, Currency: "XOF", AmountAsSent: "100",
			TransactionID: key.ID, MSISDN: "+2250700000000", CountryAsSent: "CI", NotifyURL: s.NotifyURL,
		}
		if dueSMS {
			e.UserSMS, e.UserSMSAt = ledger.UserSMSDue, now
		} else {
			e.Outbox = []ledger.Notification{{
				ID: ledger.NotificationID(key, e.Status), Status: e.Status, At: now, Attempts: 1, NextAttemptAt: now,
			}}
		}
		e.Reschedule()
		item, err := ledgerdynamo.Encode(e)
		if err == nil {
			_, err = w.database.PutItem(&dynamodb.PutItemInput{TableName: aws.String(ledgerTable), Item: item})
		}
		if err != nil {
			w.fail("store an entry of the crowd: %s", err)
			return
		}
	}
}
