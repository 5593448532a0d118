package dynamo

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
)

// Names of the attributes that keys, indexes, conditions and the stream's filter use.
const (
	attributeVersion     = "v"
	attributeExpireAt    = "expire_at" // the table's time to live; items of other kinds have it too
	attributeDueShard    = "ds"
	attributeDueAt       = "da"
	attributeMerchantDay = "md"
	attributeDaySort     = "dk"
	attributeWakesRelay  = "wr"
	attributeChargeID    = "ci" // of a reference: the charge that it belongs to
)

// derived are the attributes that each write computes from the entry, and no read decodes, with their long names.
var derived = map[string]string{
	dynamoitem.KeyAttribute: "key", attributeDueShard: "due_shard", attributeMerchantDay: "merchant_day",
	attributeDaySort: "day_sort", attributeWakesRelay: "wakes_relay",
}

type entry = ledger.Entry

// fields is the one table of stored names and long names, in the order of Entry's fields. Stored names are short, so
// that a finished charge stays under 1,024 bytes: one write unit. The members of JSON documents are named by the tags
// of their types in package ledger.
var fields = []field{
	text("mi", "merchant_id", func(e *entry) *string { return &e.MerchantID }),
	text("m", "merchant", func(e *entry) *string { return &e.Merchant }),
	number(attributeVersion, "version", func(e *entry) *int64 { return &e.Version }),
	text("o", "owner", func(e *entry) *string { return &e.Owner }),
	text("w", "writer", func(e *entry) *string { return &e.Writer }),
	text("st", "state", func(e *entry) *ledger.State { return &e.State }),
	text("su", "status", func(e *entry) *ledger.Status { return &e.Status }),
	timestamp("lu", "lease_until", func(e *entry) *time.Time { return &e.LeaseUntil }),
	flag("eu", "ever_unknown", func(e *entry) *bool { return &e.EverUnknown }),
	flag("ns", "nothing_sent", func(e *entry) *bool { return &e.NothingSent }),
	flag("rb", "released_before", func(e *entry) *bool { return &e.ReleasedBefore }),
	timestamp("ca", "created_at", func(e *entry) *time.Time { return &e.CreatedAt }),
	timestamp("sa", "sent_at", func(e *entry) *time.Time { return &e.SentAt }),
	timestamp("ra", "reserved_at", func(e *entry) *time.Time { return &e.ReservedAt }),
	timestamp("ua", "updated_at", func(e *entry) *time.Time { return &e.UpdatedAt }),
	timestamp("fa", "final_at", func(e *entry) *time.Time { return &e.FinalAt }),
	timeIn(time.Second, attributeExpireAt, "expire_at", func(e *entry) *time.Time { return &e.ExpireAt }),
	text("fp", "fingerprint", func(e *entry) *string { return &e.Fingerprint }),
	text("co", "correlator", func(e *entry) *string { return &e.Correlator }),
	text("rc", "reference_code", func(e *entry) *string { return &e.ReferenceCode }),
	text("uk", "upstream_key", func(e *entry) *string { return &e.UpstreamKey }),
	text("cc", "country", func(e *entry) *string { return &e.Country }),
	text("op", "operator", func(e *entry) *string { return &e.Operator }),
	text("ac", "account", func(e *entry) *string { return &e.Account }),
	text("ch", "channel", func(e *entry) *string { return &e.Channel }),
	text("la", "lang", func(e *entry) *string { return &e.Lang }),
	number("am", "amount_minor", func(e *entry) *int64 { return &e.AmountMinor }),
	number("ex", "exponent", func(e *entry) *int { return &e.Exponent }),
	text("cu", "currency", func(e *entry) *string { return &e.Currency }),
	text("ams", "amount_as_sent", func(e *entry) *string { return &e.AmountAsSent }),
	flag("cd", "counts_daily_amount", func(e *entry) *bool { return &e.CountsDailyAmount }),
	number("rs", "response_status", func(e *entry) *int { return &e.ResponseStatus }),
	binary("bo", "response_body", func(e *entry) *[]byte { return &e.ResponseBody }),
	text("opr", "operator_reference", func(e *entry) *string { return &e.OperatorReference }),
	text("ti", "transaction_id", func(e *entry) *string { return &e.TransactionID }),
	text("ms", "merchant_state", func(e *entry) *string { return &e.MerchantState }),
	text("mr", "merchant_reference", func(e *entry) *string { return &e.MerchantReference }),
	text("mn", "msisdn", func(e *entry) *string { return &e.MSISDN }),
	text("cs", "country_as_sent", func(e *entry) *string { return &e.CountryAsSent }),
	text("mnr", "msisdn_reported", func(e *entry) *string { return &e.MSISDNReported }),
	text("nt", "notif_token", func(e *entry) *string { return &e.NotifToken }),
	text("nu", "notify_url", func(e *entry) *string { return &e.NotifyURL }),
	text("nf", "notify_from", func(e *entry) *ledger.AddressSource { return &e.NotifyFrom }),
	text("ad", "address", func(e *entry) *string { return &e.Address }),
	text("se", "sender", func(e *entry) *string { return &e.Sender }),
	text("cb", "callback_data", func(e *entry) *string { return &e.CallbackData }),
	document("cl", "claim", func(e *entry) *ledger.Claim { return &e.Claim }, isZero),
	list("cf", "conflicts", func(e *entry) *[]ledger.Conflict { return &e.Conflicts }),
	list("ob", "outbox", func(e *entry) *[]ledger.Notification { return &e.Outbox }),
	list("dl", "delivered", func(e *entry) *[]ledger.Notification { return &e.Delivered }),
	number("oc", "open_claims", func(e *entry) *int { return &e.OpenClaims }),
	list("fl", "failed_attempts", func(e *entry) *[]ledger.FailedAttempt { return &e.FailedAttempts }),
	list("rp", "replays", func(e *entry) *[]ledger.ReplayRecord { return &e.Replays }),
	text("us", "user_sms", func(e *entry) *ledger.UserSMSState { return &e.UserSMS }),
	timestamp("usa", "user_sms_at", func(e *entry) *time.Time { return &e.UserSMSAt }),
	number("usn", "user_sms_attempts", func(e *entry) *int { return &e.UserSMSAttempts }),
	number("usc", "user_sms_claims", func(e *entry) *int { return &e.UserSMSClaims }),
	flag("usm", "user_sms_maybe_sent", func(e *entry) *bool { return &e.UserSMSMaybeSent }),
	timestamp("pa", "poll_at", func(e *entry) *time.Time { return &e.PollAt }),
	number("pn", "poll_attempts", func(e *entry) *int { return &e.PollAttempts }),
	document("mx", "manual", func(e *entry) *ledger.ManualResolution { return &e.Manual }, isZero),
	timestamp(attributeDueAt, "due_at", func(e *entry) *time.Time { return &e.DueAt }),
}

// fieldsByName finds a field by its attribute's name.
var fieldsByName = func() map[string]field {
	byName := make(map[string]field, len(fields))
	for _, f := range fields {
		byName[f.name] = f
	}
	return byName
}()

// Encode makes the item of an entry: its fields that are not empty, the attributes of keys and indexes, and the
// attributes of a later version that Extra contains. A field that cannot be encoded is an error, and a fault of ours.
func Encode(e *ledger.Entry) (dynamoitem.Item, error) {
	item := make(dynamoitem.Item, len(fields))
	if extra, ok := e.Extra.(dynamoitem.Item); ok {
		maps.Copy(item, extra)
	}
	for _, f := range fields {
		value, err := f.encode(e)
		if err != nil {
			return nil, err
		}
		if value != nil {
			item[f.name] = value
		}
	}
	item[dynamoitem.KeyAttribute] = dynamoitem.Text(e.Key.String())
	if !e.DueAt.IsZero() {
		item[attributeDueShard] = dueShard(ledger.DueShard(e.Key))
	}
	if partition := ledger.MerchantDay(e.MerchantID, e.CreatedAt); partition != "" {
		item[attributeMerchantDay] = dynamoitem.Text(partition)
		item[attributeDaySort] = dynamoitem.Text(e.DaySort())
	}
	if e.WakesRelay() {
		item[attributeWakesRelay] = dynamoitem.Text(WakeValue)
	}
	return item, nil
}

// Decode reads an entry from an item, or from a stream's image of one. Unknown attributes go to Extra. An item without
// an entry, or with one of our attributes in another type, is an error whose text contains no value.
func Decode(item dynamoitem.Item) (*ledger.Entry, error) {
	key, err := decodeKey(item)
	if err != nil {
		return nil, err
	}
	e := &ledger.Entry{Key: key}
	extra := dynamoitem.Item{}
	for name, value := range item {
		if derived[name] != "" {
			continue
		}
		f, known := fieldsByName[name]
		if !known {
			extra[name] = value
			continue
		}
		if err := f.decode(e, value); err != nil {
			return nil, fmt.Errorf("ledger: decoding a %s: %w", key.Kind, err)
		}
	}
	if len(extra) > 0 {
		e.Extra = extra
	}
	return e, nil
}

// decodeKey reads kind#id from the key attribute.
func decodeKey(item dynamoitem.Item) (ledger.Key, error) {
	kind, id, _ := strings.Cut(dynamoitem.ReadText(item, dynamoitem.KeyAttribute), "#")
	if kind == "" || id == "" {
		return ledger.Key{}, errNoKey
	}
	return ledger.Key{Kind: ledger.Kind(kind), ID: id}, nil
}

var errNoKey = errors.New("ledger: the item has no entry's key")

func dueShard(shard int) types.AttributeValue { return dynamoitem.Text(strconv.Itoa(shard)) }
