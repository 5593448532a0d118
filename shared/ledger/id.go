package ledger

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Kind is the operation a transaction belongs to.
type Kind string

// The kinds of transactions, and the small item that makes a charge's referenceCode unique.
const (
	Charge    Kind = "charge"
	Payment   Kind = "pay"
	SMS       Kind = "sms"
	Reference Kind = "reference"
	MessageID Kind = "message" // finds an SMS by its operator's id
)

// Key names one entry. ID is the public identifier: the charge's transaction id, the order_id, the SMS request id.
type Key struct {
	Kind Kind
	ID   string
}

// String is the key as it is stored: kind#id.
func (k Key) String() string { return string(k.Kind) + "#" + k.ID }

// MaxUpstreamKey is the maximum length of an upstream key in characters (decision "upstream-key").
const MaxUpstreamKey = 64

// upstreamHash is the number of hexadecimal digits in a hashed upstream key: 160 bits. With a merchant's name of at
// most 20 characters and the "!" it stays within MaxUpstreamKey.
const upstreamHash = 40

// digest hashes a domain and parts, each after its length, so that different lists of parts never give the same input.
// An empty part counts too: to append one changes every digest.
func digest(domain string, parts ...[]byte) [sha256.Size]byte {
	h := sha256.New()
	var length [8]byte
	for _, part := range slices.Concat([][]byte{[]byte(domain)}, parts) {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write(part)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// derive makes a UUID of version 8 (RFC 9562, custom) from a domain and texts.
func derive(domain string, texts ...string) string {
	parts := make([][]byte, len(texts))
	for i, text := range texts {
		parts[i] = []byte(text)
	}
	sum := digest("mobilegateway/id/"+domain, parts...)
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	text := hex.EncodeToString(id)
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// ChargeID is the transaction id of a charge: derived from the merchant's immutable id and the clientCorrelator, or
// without a correlator from the merchant's id and the referenceCode (decision "charge-repeat"). The two never collide.
func ChargeID(merchantID, correlator, referenceCode string) string {
	if correlator != "" {
		return derive("charge/correlator", merchantID, correlator)
	}
	return derive("charge/reference", merchantID, referenceCode)
}

// SMSID is the request id of an SMS: derived from the merchant's immutable id and the clientCorrelator.
func SMSID(merchantID, correlator string) string {
	return derive("sms/correlator", merchantID, correlator)
}

// ReferenceID is the id of the small item that makes a charge's referenceCode unique for a merchant (decision
// "charge-reference").
func ReferenceID(merchantID, referenceCode string) string {
	return derive("reference", merchantID, referenceCode)
}

// PaymentTransactionID is a payment's Transaction-id: derived from the order_id, which is global.
func PaymentTransactionID(orderID string) string {
	return derive("pay/transaction", orderID)
}

// UpstreamKey is the key of a charge or an SMS at its operator (decision "upstream-key"): "<Name>.<clientCorrelator>",
// or without a correlator "<Name>~<referenceCode>". If that is over MaxUpstreamKey characters, it is "<Name>!<hash>". A
// merchant's name has only letters and digits, so no two keys collide.
func UpstreamKey(merchantName, correlator, referenceCode string) string {
	key := merchantName + "." + correlator
	if correlator == "" {
		key = merchantName + "~" + referenceCode
	}
	if utf8.RuneCountInString(key) <= MaxUpstreamKey {
		return key
	}
	sum := digest("mobilegateway/upstream", []byte(key))
	return merchantName + "!" + hex.EncodeToString(sum[:])[:upstreamHash]
}

// Fingerprint is the SHA-256, in base64, of a request's canonical body and of its routing: the other values that decide
// who pays and how (decision "fingerprint"). Never add, remove or reorder a routing value, not even an empty one: every
// stored fingerprint would differ, and every repeat of an older request would get 409. Append an optional value only to
// requests that have it.
func Fingerprint(canonicalBody []byte, routing ...string) string {
	parts := [][]byte{canonicalBody}
	for _, text := range routing {
		parts = append(parts, []byte(text))
	}
	sum := digest("mobilegateway/fingerprint", parts...)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// The partitions of the due index. Both numbers may grow, never shrink, and in two releases (decision "due-shards").
// The first one raises DueShards, so that all readers read more, the second one DueShardsWritten.
const (
	DueShards        = 16 // read
	DueShardsWritten = 16 // written

	_ = uint(DueShards - DueShardsWritten) // all that is written is read: otherwise this does not compile
)

// DueShard is the partition of the due index that a key is written to, from 0 to DueShardsWritten-1.
func DueShard(key Key) int { return DueShardAmong(key, DueShardsWritten) }

// DueShardAmong is the partition of a key among this many.
func DueShardAmong(key Key, shards uint32) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key.String()))
	return int(h.Sum32() % shards)
}

// MerchantDay is a partition of the day index: the merchant's id, the UTC day, and the number of the partition among
// those of that day unless it is 0. It is "" without a merchant or a day.
func MerchantDay(merchantID string, day time.Time, shard int) string {
	if merchantID == "" || day.IsZero() {
		return ""
	}
	partition := merchantID + "#" + day.UTC().Format(time.DateOnly)
	if shard > 0 {
		partition += "#" + strconv.Itoa(shard)
	}
	return partition
}

// DayShardAmong is the partition of a key among those of a merchant's day, from 0; 0 if there is only one.
func DayShardAmong(key Key, shards int) int {
	if shards <= 1 {
		return 0
	}
	return DueShardAmong(key, uint32(shards)) //nolint:gosec // positive
}

// DaySort is the position of an entry within its MerchantDay: the time of its creation.
func DaySort(createdAt time.Time) string { return createdAt.UTC().Format(DaySortLayout) }

// DaySortLayout is the form of a DaySort.
const DaySortLayout = "15:04:05.000"
