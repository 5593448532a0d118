package dynamo

import (
	"maps"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/logsafe"
)

// Names of the attributes that keys, indexes, conditions and the stream's filter use.
const (
	attributeVersion     = "v"
	attributeCreatedAt   = "ca"
	attributeExpireAt    = "expire_at" // the table's time to live; items of other kinds have it too
	attributeDueShard    = "ds"
	attributeDueAt       = "da"
	attributeMerchantDay = "md"
	attributeDaySort     = "dk"
	attributeWakesRelay  = "wr"
	attributeChargeID    = "ci" // of a reference: the charge that it belongs to

	attributeResponseBody = "bo" // a Store may pack it
)

// derived are the attributes that each write computes from the entry, and no read decodes, with their long names.
var derived = map[string]string{
	dynamoitem.KeyAttribute: "key", attributeDueShard: "due_shard", attributeMerchantDay: "merchant_day",
	attributeDaySort: "day_sort", attributeWakesRelay: "wakes_relay",
}

type entry = ledger.Entry

// fields is the one table of stored names and long names, each for a field of a part of Entry. Stored names are short,
// so that a finished charge stays under 1,024 bytes: one write unit. The members of JSON documents are named by the
// tags of their types in package ledger.
var fields = []field{
	{"mi", "merchant_id", func(e *entry) any { return &e.Merchant.ID }},
	{"m", "merchant", func(e *entry) any { return &e.Merchant.Name }},
	{"dn", "day_shard", func(e *entry) any { return &e.Merchant.DayShard }},
	{attributeVersion, "version", func(e *entry) any { return &e.Version }},
	{"o", "owner", func(e *entry) any { return &e.Owner }},
	{"w", "writer", func(e *entry) any { return &e.Writer }},
	{"st", "state", func(e *entry) any { return (*string)(&e.State) }},
	{"su", "status", func(e *entry) any { return (*string)(&e.Status) }},
	{"lu", "lease_until", func(e *entry) any { return &e.LeaseUntil }},
	{"eu", "ever_unknown", func(e *entry) any { return &e.EverUnknown }},
	{"ns", "nothing_sent", func(e *entry) any { return &e.NothingSent }},
	{"kt", "key_taken", func(e *entry) any { return &e.ForeignKey }},
	{"ck", "callback_keys", func(e *entry) any { return &e.Route.CallbackKeys }},
	{"rb", "released_before", func(e *entry) any { return &e.ReleasedBefore }},
	{attributeCreatedAt, "created_at", func(e *entry) any { return &e.CreatedAt }},
	{"sa", "sent_at", func(e *entry) any { return &e.SentAt }},
	{"ra", "reserved_at", func(e *entry) any { return &e.ReservedAt }},
	{"ua", "updated_at", func(e *entry) any { return &e.UpdatedAt }},
	{"fa", "final_at", func(e *entry) any { return &e.FinalAt }},
	{attributeExpireAt, "expire_at", func(e *entry) any { return &e.ExpireAt }},
	{"fp", "fingerprint", func(e *entry) any { return &e.Request.Fingerprint }},
	{"co", "correlator", func(e *entry) any { return &e.Request.Correlator }},
	{"rc", "reference_code", func(e *entry) any { return &e.Request.ReferenceCode }},
	{"uk", "upstream_key", func(e *entry) any { return &e.Route.UpstreamKey }},
	{"cc", "country", func(e *entry) any { return &e.Route.Country }},
	{"op", "operator", func(e *entry) any { return &e.Route.Operator }},
	{"ac", "account", func(e *entry) any { return &e.Route.Account }},
	{"ch", "channel", func(e *entry) any { return &e.Request.Channel }},
	{"la", "lang", func(e *entry) any { return &e.Request.Lang }},
	{"am", "amount_minor", func(e *entry) any { return &e.Amount.Minor }},
	{"ex", "exponent", func(e *entry) any { return &e.Amount.Exponent }},
	{"cu", "currency", func(e *entry) any { return &e.Amount.Currency }},
	{"ams", "amount_as_sent", func(e *entry) any { return &e.Amount.AsSent }},
	{"cd", "counts_daily_amount", func(e *entry) any { return &e.Amount.CountsDaily }},
	{"rs", "response_status", func(e *entry) any { return &e.Response.Status }},
	{attributeResponseBody, "response_body", func(e *entry) any { return (*packed)(&e.Response.Body) }},
	{"ct", "call_attempts", func(e *entry) any { return &e.Call.Attempts }},
	{"opr", "operator_reference", func(e *entry) any { return &e.OperatorReference }},
	{"opl", "late_operator_reference", func(e *entry) any { return &e.LateReference }},
	{"ti", "transaction_id", func(e *entry) any { return &e.Request.TransactionID }},
	{"ms", "merchant_state", func(e *entry) any { return &e.Request.State }},
	{"mr", "merchant_reference", func(e *entry) any { return &e.Request.Reference }},
	{"mn", "msisdn", func(e *entry) any { return &e.Request.MSISDN }},
	{"cs", "country_as_sent", func(e *entry) any { return &e.Request.CountryAsSent }},
	{"mnr", "msisdn_reported", func(e *entry) any { return &e.Payer }},
	{"fr", "failure_reason", func(e *entry) any { return (*string)(&e.FailureReason) }},
	{"nt", "notif_token", func(e *entry) any { return &e.Outbox.NotifToken }},
	{"mt", "material", func(e *entry) any { return &e.DriverData }},
	{"ba", "bind_at", func(e *entry) any { return &e.BindAt }},
	{"nu", "notify_url", func(e *entry) any { return &e.Outbox.URL }},
	{"nf", "notify_from", func(e *entry) any { return (*string)(&e.Outbox.From) }},
	{"ad", "address", func(e *entry) any { return &e.Request.Address }},
	{"se", "sender", func(e *entry) any { return &e.Request.Sender }},
	{"cb", "callback_data", func(e *entry) any { return &e.Request.CallbackData }},
	{"cl", "claim", func(e *entry) any { return &e.Claim }},
	{"cf", "conflicts", func(e *entry) any { return &e.Conflicts }},
	{"ob", "outbox", func(e *entry) any { return &e.Outbox.Waiting }},
	{"dl", "delivered", func(e *entry) any { return &e.Outbox.Delivered }},
	{"oc", "open_claims", func(e *entry) any { return &e.Outbox.UnrecordedAttempts }},
	{"fl", "failed_attempts", func(e *entry) any { return &e.Outbox.FailedAttempts }},
	{"rp", "replays", func(e *entry) any { return &e.Outbox.Replays }},
	{"us", "user_sms", func(e *entry) any { return (*string)(&e.UserSMS.State) }},
	{"usa", "user_sms_at", func(e *entry) any { return &e.UserSMS.At }},
	{"usn", "user_sms_attempts", func(e *entry) any { return &e.UserSMS.Attempts }},
	{"usc", "user_sms_claims", func(e *entry) any { return &e.UserSMS.UnrecordedAttempts }},
	{"usm", "user_sms_maybe_sent", func(e *entry) any { return &e.UserSMS.MaybeSent }},
	{"pa", "poll_at", func(e *entry) any { return &e.Poll.At }},
	{"pn", "poll_attempts", func(e *entry) any { return &e.Poll.Attempts }},
	{"mx", "manual", func(e *entry) any { return &e.Manual.ManualResolution }},
	{"mxr", "manual_reference", func(e *entry) any { return &e.Manual.Reference }},
	{"tl", "timeline", func(e *entry) any { return (*string)(&e.Timeline) }},
	{attributeDueAt, "due_at", func(e *entry) any { return &e.DueAt }},
}

// fieldsByName finds a field by its attribute's name.
var fieldsByName = func() map[string]field {
	byName := make(map[string]field, len(fields))
	for _, f := range fields {
		byName[f.name] = f
	}
	return byName
}()

// usualAttributes is a number of attributes that few items exceed. A map for all fields would be twice as large.
const usualAttributes = 48

// Encode makes the item of an entry: its fields that are not empty, the attributes of keys and indexes, and the
// attributes of a later version that Extra contains. A field that cannot be encoded is an error, and a fault of ours.
func Encode(e *ledger.Entry) (dynamoitem.Item, error) {
	item := make(dynamoitem.Item, usualAttributes)
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
	if partition := ledger.MerchantDay(e.Merchant.ID, e.CreatedAt, e.Merchant.DayShard); partition != "" {
		item[attributeMerchantDay] = dynamoitem.Text(partition)
		item[attributeDaySort] = dynamoitem.Text(ledger.DaySort(e.CreatedAt))
	}
	if e.Outbox.WakesRelay() {
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
			return nil, logsafe.Errorf("ledger: decoding a %s: %w", logsafe.Name(key.Kind), err)
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

var errNoKey = logsafe.New("ledger: the item has no entry's key")

func dueShard(shard int) types.AttributeValue { return dynamoitem.Text(strconv.Itoa(shard)) }
