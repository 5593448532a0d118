// Package mirror follows the ledger's table: it has the transactions as they are now, when each is due, and when each
// was last listed for a person.
package mirror

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	model "mobilegateway/world/dynamodb"
)

// ListedBound is the longest time between two listings of one entry.
const ListedBound = 26 * time.Hour

// Entries are the transactions of the ledger's table.
type Entries struct {
	// HasUndecodable is true if the table has an item with the key Undecodable, which cannot be decoded and is due.
	HasUndecodable bool

	byKey      map[string]*ledger.Entry
	keys       []string          // of entries, in the order of their insertion
	byUpstream map[string]string // the stored keys by kind and key at the operator
	listed     map[string]time.Time
	due        dueList
}

// Undecodable is the key of an item that cannot be decoded.
var Undecodable = ledger.Key{Kind: ledger.Charge, ID: "undecodable"}

// New returns no entries.
func New() *Entries {
	return &Entries{byKey: map[string]*ledger.Entry{}, byUpstream: map[string]string{}, listed: map[string]time.Time{}}
}

// effectKinds are the operators' words for the kinds of entries.
var effectKinds = map[ledger.Kind]string{
	ledger.Charge: outside.KindCharge, ledger.Payment: outside.KindPayment, ledger.SMS: outside.KindSMS,
}

// EffectKind is the operators' word for the kind of an entry.
func EffectKind(e *ledger.Entry) string { return effectKinds[e.Kind] }

// Of is the entry of a stored key, nil for none.
func (m *Entries) Of(key string) *ledger.Entry { return m.byKey[key] }

// Payment is the entry of a payment, nil for none.
func (m *Entries) Payment(id string) *ledger.Entry {
	return m.byKey[ledger.Key{Kind: ledger.Payment, ID: id}.String()]
}

// AtOperator is the entry of a kind and a key at the operator, nil for none.
func (m *Entries) AtOperator(kind, key string) *ledger.Entry {
	return m.byKey[m.byUpstream[kind+" "+key]]
}

// All iterates over the entries in the order of their insertion.
func (m *Entries) All() iter.Seq[*ledger.Entry] {
	return func(yield func(*ledger.Entry) bool) {
		for _, key := range m.keys {
			if e := m.byKey[key]; e != nil && !yield(e) {
				return
			}
		}
	}
}

// HasDeleted reports whether an entry was deleted.
func (m *Entries) HasDeleted() bool {
	return slices.ContainsFunc(m.keys, func(key string) bool { return m.byKey[key] == nil })
}

// FirstDue is the earliest time at which an entry is due, zero for none.
func (m *Entries) FirstDue() time.Time { return m.due.first(m.byKey) }

// IsShardEmpty reports whether no entry of a shard is due within the next minutes.
func (m *Entries) IsShardEmpty(shard string) bool {
	return !m.due.hasShard(m.byKey, shard) && (!m.HasUndecodable || ShardOf(Undecodable) != shard)
}

// MarkListed records that a transaction is listed for a person.
func (m *Entries) MarkListed(id string) { m.listed[id] = time.Now() }

// ListedAt is when an entry was last listed for a person, zero for never.
func (m *Entries) ListedAt(id string) time.Time { return m.listed[id] }

// IsListed reports whether an entry was listed for a person lately.
func (m *Entries) IsListed(e *ledger.Entry) bool { return time.Since(m.listed[e.ID]) <= ListedBound }

// Change is a change of a table. An entry is new without Before, and was deleted without After.
type Change struct {
	*model.Change
	IsEntry       bool // else it is another item
	Before, After *ledger.Entry
	Err           error             // the new item cannot be decoded
	Made          ledger.Transition // what the writer says that it made; none without the overlay of TestRows
}

// storedKinds are the prefixes of the keys of transactions. Other items of the ledger's table are references, and the
// health of servers and endpoints.
var storedKinds = []string{string(ledger.Charge) + "#", string(ledger.Payment) + "#", string(ledger.SMS) + "#"}

// Follow follows a change of a table.
func (m *Entries) Follow(change *model.Change) Change {
	followed := Change{Change: change}
	followed.IsEntry = change.Table == fixture.LedgerTable && change.Key != Undecodable.String() &&
		slices.ContainsFunc(storedKinds, func(prefix string) bool { return strings.HasPrefix(change.Key, prefix) })
	if !followed.IsEntry {
		return followed
	}
	followed.Before = m.byKey[change.Key]
	item := change.New()
	if item == nil {
		if change.Expired {
			delete(m.byKey, change.Key)
		}
		return followed
	}
	if followed.After, followed.Err = ledgerdynamo.Decode(item); followed.Err != nil {
		return followed
	}
	if followed.Before == nil {
		m.keys = append(m.keys, change.Key)
	}
	after := followed.After
	m.byKey[change.Key] = after
	m.byUpstream[EffectKind(after)+" "+after.Route.UpstreamKey] = change.Key
	m.due.add(change.Key, after.DueAt)
	return followed
}

// Describe describes an entry for a story.
func Describe(e *ledger.Entry) string {
	text := fmt.Sprintf("v%d: %s/%s", e.Version, e.State, e.Status)
	for _, n := range e.Outbox.Waiting {
		text += fmt.Sprintf(" [%s n=%d next %s dead %q parked %v]", n.Status, n.Attempts,
			n.NextAttemptAt.Sub(history.Start), n.DeadReason, n.Parked)
	}
	if !e.DueAt.IsZero() {
		text += " due " + e.DueAt.Sub(history.Start).String()
	}
	return text
}

// LastReplay is when a notification of an entry was last replayed, zero for never.
func LastReplay(e *ledger.Entry) time.Time {
	var last time.Time
	for _, replay := range e.Outbox.Replays {
		last = history.Latest(last, replay.At)
	}
	return last
}
