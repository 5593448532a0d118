package dynamo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/ledger"
)

// Names of the attributes that keys, indexes, conditions and the stream's filter speak of.
const (
	attributeKey         = "pk"
	attributeVersion     = "version"
	attributeExpireAt    = "expire_at"
	attributeDueShard    = "due_shard"
	attributeDueAt       = "due_at"
	attributeMerchantDay = "merchant_day"
	attributeDaySort     = "day_sort"
	attributeWakesRelay  = "fast"
	attributeChargeID    = "charge_id"
)

// derived are the attributes computed from the entry with each write, so never read back.
var derived = map[string]bool{
	attributeKey: true, attributeDueShard: true, attributeMerchantDay: true, attributeDaySort: true, attributeWakesRelay: true,
}

type entry = ledger.Entry

// fields are the attributes of an item in the order of Entry's fields.
var fields = []field{
	text("merchant_id", func(e *entry) *string { return &e.MerchantID }),
	text("merchant", func(e *entry) *string { return &e.Merchant }),
	number(attributeVersion, func(e *entry) *int64 { return &e.Version }),
	text("owner", func(e *entry) *string { return &e.Owner }),
	text("writer", func(e *entry) *string { return &e.Writer }),
	text("state", func(e *entry) *ledger.State { return &e.State }),
	text("status", func(e *entry) *ledger.Status { return &e.Status }),
	timestamp("lease_until", time.Millisecond, func(e *entry) *time.Time { return &e.LeaseUntil }),
	flag("ever_unknown", func(e *entry) *bool { return &e.EverUnknown }),
	flag("released_before", func(e *entry) *bool { return &e.ReleasedBefore }),
	timestamp("created_at", time.Millisecond, func(e *entry) *time.Time { return &e.CreatedAt }),
	timestamp("sent_at", time.Millisecond, func(e *entry) *time.Time { return &e.SentAt }),
	timestamp("reserved_at", time.Millisecond, func(e *entry) *time.Time { return &e.ReservedAt }),
	timestamp("updated_at", time.Millisecond, func(e *entry) *time.Time { return &e.UpdatedAt }),
	timestamp("final_at", time.Millisecond, func(e *entry) *time.Time { return &e.FinalAt }),
	timestamp(attributeExpireAt, time.Second, func(e *entry) *time.Time { return &e.ExpireAt }),
	text("fingerprint", func(e *entry) *string { return &e.Fingerprint }),
	text("correlator", func(e *entry) *string { return &e.Correlator }),
	text("reference_code", func(e *entry) *string { return &e.ReferenceCode }),
	text("upstream_key", func(e *entry) *string { return &e.UpstreamKey }),
	text("country", func(e *entry) *string { return &e.Country }),
	text("operator", func(e *entry) *string { return &e.Operator }),
	text("account", func(e *entry) *string { return &e.Account }),
	text("channel", func(e *entry) *string { return &e.Channel }),
	text("lang", func(e *entry) *string { return &e.Lang }),
	number("minor", func(e *entry) *int64 { return &e.AmountMinor }),
	number("exponent", func(e *entry) *int { return &e.Exponent }),
	text("currency", func(e *entry) *string { return &e.Currency }),
	text("amount_text", func(e *entry) *string { return &e.AmountAsSent }),
	flag("limited", func(e *entry) *bool { return &e.CountsDailyAmount }),
	number("answer_status", func(e *entry) *int { return &e.ResponseStatus }),
	binary("answer_body", func(e *entry) *[]byte { return &e.ResponseBody }),
	text("operator_reference", func(e *entry) *string { return &e.OperatorReference }),
	text("payment_id", func(e *entry) *string { return &e.TransactionID }),
	text("merchant_state", func(e *entry) *string { return &e.MerchantState }),
	text("ref_text", func(e *entry) *string { return &e.MerchantReference }),
	text("msisdn", func(e *entry) *string { return &e.MSISDN }),
	text("country_text", func(e *entry) *string { return &e.CountryAsSent }),
	text("msisdn_found", func(e *entry) *string { return &e.MSISDNReported }),
	text("notif_token", func(e *entry) *string { return &e.NotifToken }),
	text("notify_url", func(e *entry) *string { return &e.NotifyURL }),
	text("address", func(e *entry) *string { return &e.Address }),
	text("sender", func(e *entry) *string { return &e.Sender }),
	text("callback_data", func(e *entry) *string { return &e.CallbackData }),
	document("claim", func(e *entry) *ledger.Claim { return &e.Claim }, func(c ledger.Claim) bool { return c == ledger.Claim{} }),
	list("conflicts", func(e *entry) *[]ledger.Conflict { return &e.Conflicts }),
	list("outbox", func(e *entry) *[]ledger.Notification { return &e.Outbox }),
	list("told", func(e *entry) *[]ledger.Notification { return &e.Delivered }),
	list("attempts", func(e *entry) *[]ledger.FailedAttempt { return &e.FailedAttempts }),
	list("replays", func(e *entry) *[]ledger.ReplayRecord { return &e.Replays }),
	text("user_sms", func(e *entry) *ledger.UserSMSState { return &e.UserSMS }),
	timestamp("user_sms_at", time.Millisecond, func(e *entry) *time.Time { return &e.UserSMSAt }),
	number("user_sms_try", func(e *entry) *int { return &e.UserSMSAttempts }),
	timestamp("poll_at", time.Millisecond, func(e *entry) *time.Time { return &e.PollAt }),
	number("due_try", func(e *entry) *int { return &e.PollAttempts }),
	document("word", func(e *entry) *ledger.ManualResolution { return &e.Manual }, func(w ledger.ManualResolution) bool { return w == ledger.ManualResolution{} }),
	timestamp(attributeDueAt, time.Millisecond, func(e *entry) *time.Time { return &e.DueAt }),
}

// fieldsByName finds a field by its attribute's name.
var fieldsByName = func() map[string]field {
	byName := make(map[string]field, len(fields))
	for _, f := range fields {
		byName[f.name] = f
	}
	return byName
}()

// Encode makes the item of an entry: its fields that are not empty, the attributes that keys and indexes need, and what
// Extra holds of a later version's. Errors: a field that cannot be encoded, which is a fault of ours.
func Encode(e *ledger.Entry) (map[string]types.AttributeValue, error) {
	item := make(map[string]types.AttributeValue, len(fields))
	if extra, ok := e.Extra.(map[string]types.AttributeValue); ok {
		for name, value := range extra {
			item[name] = value
		}
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
	item[attributeKey] = textValue(e.Key.String())
	if !e.DueAt.IsZero() {
		item[attributeDueShard] = dueShard(ledger.DueShard(e.Key))
	}
	if partition := ledger.MerchantDay(e.MerchantID, e.CreatedAt); partition != "" {
		item[attributeMerchantDay] = textValue(partition)
		item[attributeDaySort] = textValue(e.DaySort())
	}
	if e.WakesRelay() {
		item[attributeWakesRelay] = textValue("1")
	}
	return item, nil
}

// Decode reads an entry from an item, or from a stream's image of one. Attributes that it does not know go to Extra. An
// item that holds no entry, or one of our attributes in another type, is an error without any value in its text.
func Decode(item map[string]types.AttributeValue) (*ledger.Entry, error) {
	key, err := decodeKey(item[attributeKey])
	if err != nil {
		return nil, err
	}
	e := &ledger.Entry{Key: key}
	var extra map[string]types.AttributeValue
	for name, value := range item {
		if derived[name] {
			continue
		}
		f, known := fieldsByName[name]
		if !known {
			if extra == nil {
				extra = map[string]types.AttributeValue{}
			}
			extra[name] = value
			continue
		}
		if err := f.decode(e, value); err != nil {
			return nil, fmt.Errorf("ledger: decoding a %s: %w", key.Kind, err)
		}
	}
	if extra != nil {
		e.Extra = extra
	}
	return e, nil
}

// decodeKey reads kind#id.
func decodeKey(value types.AttributeValue) (ledger.Key, error) {
	s, ok := value.(*types.AttributeValueMemberS)
	if !ok {
		return ledger.Key{}, errNoKey
	}
	kind, id, found := strings.Cut(s.Value, "#")
	if !found || kind == "" || id == "" {
		return ledger.Key{}, errNoKey
	}
	return ledger.Key{Kind: ledger.Kind(kind), ID: id}, nil
}

var errNoKey = errors.New("ledger: an item without the key of an entry")

func textValue(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func dueShard(shard int) types.AttributeValue { return textValue(strconv.Itoa(shard)) }
