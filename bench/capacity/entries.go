package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// work is one kind of work of a function.
type work struct {
	name     string
	function string
	// makeDue brings a reserved entry into the state in which the work is due. at is in the past for the sweep.
	makeDue func(e *ledger.Entry, at time.Time)
	kind    ledger.Kind
	// outsideCalls is the number of calls of operators and merchants that the work on one entry makes.
	outsideCalls int
}

// works lists the kinds of work, in the order of the table.
func works() []work {
	return []work{
		{"delivery", "sweep", notificationDue, ledger.Payment, 1},
		{"lookup", "sweep", lookupDue, ledger.Payment, 1},
		{"payer's SMS", "sweep", userSMSDue, ledger.Payment, 1},
		{"lapse", "sweep", func(*ledger.Entry, time.Time) {}, ledger.Charge, 0},
		{"relay: notification", "relay", notificationDue, ledger.Payment, 1},
		{"relay: notification and payer's SMS", "relay", bothDue, ledger.Payment, 2},
	}
}

// accepted is the outcome of a payment that the operator has accepted.
func accepted(firstPollAt time.Time) ledger.CallOutcome {
	return ledger.CallOutcome{
		State: ledger.Done, Status: ledger.Pending, ResponseStatus: 201, FirstPollAt: firstPollAt,
		ResponseBody: json.RawMessage(`{"status":"Pending","order-id":"Capacity","amount":500,"currency":"XOF",` +
			`"Transaction-id":"T-1","txnid":"MP260101.0000.A00000","user_msisdn":"2250700000000"}`),
	}
}

func notificationDue(e *ledger.Entry, at time.Time) { makeFinal(e, at, false) }

func bothDue(e *ledger.Entry, at time.Time) { makeFinal(e, at, true) }

func userSMSDue(e *ledger.Entry, at time.Time) {
	makeFinal(e, at, true)
	e.Outbox.MarkDelivered(e.Outbox.Head().ID, at)
}

func lookupDue(e *ledger.Entry, at time.Time) { e.ApplyOutcome(e.Owner, accepted(at), at) }

func makeFinal(e *ledger.Entry, at time.Time, withSMS bool) {
	e.ApplyOutcome(e.Owner, accepted(at), at)
	e.ApplyFinalStatus(ledger.StatusReport{Status: ledger.Successful, Source: "callback", UserSMS: withSMS}, at)
}

// newEntry returns an entry of a merchant, and of the operator with a number, on which the work is due. All times are
// before or at the given one.
func (w work) newEntry(id string, number int, shop *merchant.Profile, address string, at time.Time) *ledger.Entry {
	operators := operator.NamesWithPlatform() // the account of the stub is one of each
	at = ledger.Timestamp(at)
	e := &ledger.Entry{
		Key: ledger.Key{Kind: w.kind, ID: id}, Merchant: ledger.Merchant{ID: shop.ID, Name: shop.Name},
		Call: ledger.Call{LeaseUntil: at.Add(25 * time.Second)},
		Request: ledger.Request{
			Fingerprint: "c4pacity", CountryAsSent: "CI", Channel: "ussd", Lang: "fr",
			TransactionID: ledger.PaymentTransactionID(id), State: "cart-7", Reference: shop.Name,
			MSISDN: "2250700000000",
		},
		Route: ledger.Route{
			UpstreamKey: id, Country: "CI", Operator: operators[number%len(operators)], Account: "local",
		},
		Amount: ledger.Amount{Minor: 500, Currency: "XOF", AsSent: "500"},
		Outbox: ledger.Outbox{URL: address + "/notifications"},
	}
	e.BeginReservation("owner", at)
	w.makeDue(e, at)
	e.Version, e.Writer, e.CreatedAt, e.UpdatedAt = 1, "writer", at, at
	e.Reschedule()
	return e
}

// newEntries returns entries of all merchants in turn, in the shards that isOwn selects.
func (f *fixture) newEntries(w work, number int, at time.Time, isOwn func(shard int) bool) []*ledger.Entry {
	entries := make([]*ledger.Entry, 0, number)
	for i := 0; len(entries) < number; i++ {
		shop := f.merchants[i%merchants]
		id := shop.Name + "_" + strconv.Itoa(i)
		if !isOwn(ledger.DueShard(ledger.Key{Kind: w.kind, ID: id})) {
			continue
		}
		// Different times, as a backlog has them.
		before := time.Duration(i%60_000) * time.Millisecond
		entries = append(entries, w.newEntry(id, i/merchants, shop, f.addresses[i%merchants], at.Add(-before)))
	}
	return entries
}

// store puts entries into the ledger's table, past the fronts.
func (f *fixture) store(ctx context.Context, entries []*ledger.Entry) error {
	const batch, writers = 25, 4 // DynamoDB's limit of a batch
	table := f.deployment.References["LedgerTable"]
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for from := 0; from < len(entries); from += batch {
		group.Go(func() error {
			var requests []types.WriteRequest
			for _, e := range entries[from:min(from+batch, len(entries))] {
				item, err := ledgerdynamo.Encode(e)
				if err != nil {
					return err
				}
				requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
			}
			out, err := f.client.DynamoDB().BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
				RequestItems: map[string][]types.WriteRequest{table: requests},
			})
			if err == nil && len(out.UnprocessedItems) > 0 {
				err = fmt.Errorf("the table took only a part of %d entries", len(requests))
			}
			return err
		})
	}
	return group.Wait()
}

// countDue counts the entries that were due at a time and still are.
func (f *fixture) countDue(ctx context.Context, at time.Time) (int, error) {
	store := ledgerdynamo.New(f.client.DynamoDB(), f.deployment.References["LedgerTable"])
	count := 0
	for shard := range ledger.DueShards {
		query := ledger.DueQuery{Shard: shard, Before: at, Limit: ledgerdynamo.MaxPage}
		for {
			keys, cursor, err := store.DueKeys(ctx, query)
			if err != nil {
				return 0, err
			}
			count += len(keys)
			if query.Cursor = cursor; cursor == "" {
				break
			}
		}
	}
	return count, nil
}

// streamEvent is the Lambda event of a batch of stream records with the images of entries.
func streamEvent(entries []*ledger.Entry) ([]byte, error) {
	type record struct {
		EventID   string `json:"eventID"`
		EventName string `json:"eventName"`
		DynamoDB  struct {
			NewImage map[string]any
		} `json:"dynamodb"`
	}
	records := make([]record, len(entries))
	for i, e := range entries {
		item, err := ledgerdynamo.Encode(e)
		if err != nil {
			return nil, err
		}
		records[i].EventID, records[i].EventName = strconv.Itoa(i), "MODIFY"
		records[i].DynamoDB.NewImage = imageOf(item)
	}
	return json.Marshal(map[string]any{"Records": records})
}

// imageOf returns the JSON form that a stream has for the attributes of an item.
func imageOf(item map[string]types.AttributeValue) map[string]any {
	image := map[string]any{}
	for name, value := range item {
		image[name] = typedValue(value)
	}
	return image
}

func typedValue(value types.AttributeValue) map[string]any {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	case *types.AttributeValueMemberM:
		return map[string]any{"M": imageOf(v.Value)}
	case *types.AttributeValueMemberL:
		list := make([]any, len(v.Value))
		for i, member := range v.Value {
			list[i] = typedValue(member)
		}
		return map[string]any{"L": list}
	default:
		return map[string]any{"NULL": true}
	}
}
