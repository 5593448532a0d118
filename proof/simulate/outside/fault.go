package outside

import (
	"cmp"
	"slices"
	"time"

	"mobilegateway/world/operators/kit"
)

// Fault is one kind of fault that a model can inject, by its name in stories.
type Fault string

// Faults of a request. "Before" means without the effect of the request, "After" means with it.
const (
	NoFault           Fault = ""
	ConnectRefused    Fault = "connect refused"
	ResetBefore       Fault = "reset before the effect"
	ResetAfter        Fault = "reset after the effect"
	StaleBefore       Fault = "reused connection lost before the effect"
	StaleAfter        Fault = "reused connection lost after the effect"
	HangBefore        Fault = "hang before the effect"
	HangAfter         Fault = "hang after the effect"
	HangLate          Fault = "hang, effect after the caller's timeout"
	TruncatedAfter    Fault = "truncated response after the effect"
	GarbageBefore     Fault = "garbage before the effect"
	GarbageAfter      Fault = "garbage after the effect"
	ServerErrorBefore Fault = "500 before the effect"
	ServerErrorAfter  Fault = "500 after the effect"
	ProxyErrorAfter   Fault = "503 of a proxy after the effect"
	SlowAfter         Fault = "slow"
	Unavailable       Fault = "503"
	Throttled         Fault = "429"
	Unauthorized      Fault = "401"
	Rejected          Fault = "400"
	Redirected        Fault = "302"
	EndpointGone      Fault = "410"
	FinalRefusal      Fault = "final refusal"
	LieUnavailable    Fault = "lie: 503 for what was applied"
	LieDuplicate      Fault = "lie: duplicate of a key that was never seen"
	NotFoundYet       Fault = "not found within two minutes" // because of replication
	LieNotFound       Fault = "lie: not found"
	// LookupOther reports the success of a payment with another amount or currency.
	LookupOther Fault = "getStatus of another payment"
)

// Decisions of the payer, statuses and times of callbacks, and failures of a server and of the secret store.
const (
	PayerFails   Fault = "payer fails"
	PayerCancels Fault = "payer cancels"
	PayerExpires Fault = "payment expires"
	PayerNever   Fault = "payer never decides"
	PayerLate    Fault = "payer decides late"
	PayerInstant Fault = "payer decides at once"
	// LieReversed reports success first and failure later; the truth is failure.
	LieReversed Fault = "lie: success, then failure"

	ReceiptImpossible  Fault = "delivery impossible"
	ReceiptUncertain   Fault = "delivery uncertain"
	ReceiptNetworkOnly Fault = "delivered to the network only"

	CallbackNever Fault = "no callback"
	CallbackLate  Fault = "late callback"
	CallbackEarly Fault = "callback before the response"

	CallbackTwice         Fault = "callback twice"
	CallbackReordered     Fault = "reordered callbacks"
	CallbackContradicting Fault = "contradicting callback"
	CallbackForged        Fault = "forged callback"
	CallbackWrongAmount   Fault = "callback with a wrong amount"
	CallbackWrongToken    Fault = "callback with a wrong notif_token"
	CallbackGarbage       Fault = "callback without JSON"

	ServerDown Fault = "server down for a time"

	SecretError   Fault = "secret unreadable"
	SecretTimeout Fault = "no response from the secret store"
	SecretStale   Fault = "stale secret" // an earlier version, within a minute of a rotation
)

// Window is a time in which something is broken.
type Window struct{ From, To time.Time }

// Contains reports whether a time is in the window.
func (w Window) Contains(at time.Time) bool { return !at.Before(w.From) && at.Before(w.To) }

// Outage is a time in which each call of a kind meets a fault, or all but a few, without a choice. A server has no
// kinds.
type Outage struct {
	Window
	Kind  string // one of the kinds of effects; "" is every kind, also lookups
	Fault Fault
	// SparedOf lets one of so many calls meet no fault, 0 for none.
	SparedOf int

	met int // calls
}

// Group is a kind of occasion for faults. One fault of the group at most is injected at each occasion.
type Group string

// The groups.
const (
	OperatorCalls    Group = "operator call" // a charge, a payment or an SMS
	Lookups          Group = "getStatus"
	LookupContents   Group = "content of getStatus" // only by a hazard
	Payers           Group = "payer"
	Receipts         Group = "receipt"
	CallbackTimes    Group = "time of the callback"
	CallbackContents Group = "content of the callback"
	Notifications    Group = "notification"
	MerchantServers  Group = "merchant's server" // at PlanHealth
	SecretFetches    Group = "fetch of a secret"
)

// groupFaults lists the faults of each group.
var groupFaults = map[Group][]Fault{
	OperatorCalls: {
		ConnectRefused, ResetBefore, ResetAfter, StaleBefore, StaleAfter, HangBefore, HangAfter, HangLate,
		TruncatedAfter, GarbageBefore, GarbageAfter, ServerErrorBefore, ServerErrorAfter, SlowAfter, Unavailable,
		Throttled, Unauthorized, Rejected, Redirected, FinalRefusal, ProxyErrorAfter, LieUnavailable, LieDuplicate,
	},
	Lookups: {
		ConnectRefused, ResetBefore, StaleBefore, HangBefore, TruncatedAfter, GarbageBefore, ServerErrorBefore,
		SlowAfter, Unavailable, NotFoundYet, LieNotFound,
	},
	LookupContents: {LookupOther},
	Payers:         {PayerFails, PayerCancels, PayerExpires, PayerNever, PayerLate, PayerInstant, LieReversed},
	Receipts:       {ReceiptImpossible, ReceiptUncertain, ReceiptNetworkOnly},
	CallbackTimes:  {CallbackNever, CallbackLate, CallbackEarly},
	CallbackContents: {
		CallbackTwice, CallbackReordered, CallbackContradicting, CallbackForged, CallbackWrongAmount,
		CallbackWrongToken, CallbackGarbage,
	},
	Notifications: {
		ConnectRefused, ResetBefore, ResetAfter, HangBefore, HangAfter, SlowAfter, ServerErrorBefore, Redirected,
		Rejected, Throttled, EndpointGone,
	},
	MerchantServers: {ServerDown},
	SecretFetches:   {SecretError, SecretTimeout, SecretStale},
}

// FaultsOf lists the faults of a group in a fixed order.
func FaultsOf(group Group) []Fault { return slices.Clone(groupFaults[group]) }

// faultRow describes what a fault does to a request.
type faultRow struct {
	isLost bool // it has no effect now
	lies   bool
	// response is that of a server, and of an operator's platform without a mode of its own; nil is the correct one.
	response *Exchange
	// mode is that of the operator's platform.
	mode kit.Hazard
}

// notApplied is a mode of a platform without an effect. The response of the fault replaces its response.
const notApplied = "503"

// hazard is what an operator's platform does.
func (r faultRow) hazard() kit.Hazard {
	if r.isLost {
		return cmp.Or(r.mode, notApplied)
	}
	return r.mode
}

// faultTable has the faults of requests that change the effect or the response.
var faultTable = map[Fault]faultRow{
	ConnectRefused:    {isLost: true, response: &Exchange{Failure: ConnectionRefused}},
	ResetBefore:       {isLost: true, response: &Exchange{Failure: ConnectionReset}},
	ResetAfter:        {response: &Exchange{Failure: ConnectionReset}},
	StaleBefore:       {isLost: true, response: &Exchange{Failure: StaleConnection}},
	StaleAfter:        {response: &Exchange{Failure: StaleConnection}},
	HangBefore:        {isLost: true, response: &Exchange{Failure: NoResponse}},
	HangAfter:         {response: &Exchange{Failure: NoResponse}},
	HangLate:          {isLost: true, response: &Exchange{Failure: NoResponse}},
	GarbageBefore:     {mode: "garbage-unapplied"},
	GarbageAfter:      {mode: "garbage"},
	ServerErrorBefore: {isLost: true, response: new(newResponse(500, "<html>Internal Server Error"))},
	ServerErrorAfter:  {response: new(newResponse(500, "<html>Internal Server Error"))},
	ProxyErrorAfter:   {response: new(newResponse(503, "<html>Service Unavailable"))},
	Unavailable:       {mode: "503"},
	Throttled:         {isLost: true, response: new(newResponse(429, "")), mode: "429"},
	Unauthorized:      {mode: "401"},
	Rejected:          {isLost: true, response: new(newResponse(400, "")), mode: "400"},
	Redirected:        {isLost: true, response: new(newResponse(302, "", "Location", "https://b.example/"))},
	EndpointGone:      {isLost: true, response: new(newResponse(410, ""))},
	LieUnavailable:    {lies: true, mode: kit.DeniesApplied},
	LieDuplicate:      {lies: true, mode: kit.UnseenDuplicate},
	NotFoundYet:       {mode: kit.NotFoundYet},
	LieNotFound:       {lies: true, mode: kit.NotFound},
	LieReversed:       {lies: true},
}

// Faults are the rates of a history, shared by its models. The zero value injects nothing and makes no choice.
type Faults struct {
	// Rates has the rates of the groups in per mille of the occasions. The sum of a group is at most 1,000.
	Rates map[Group]map[Fault]int
	// Even makes every fault with a rate one choice of its own, with equal weight. Exhaustive mode uses it.
	Even bool
	// Taken counts the injected faults.
	Taken map[Group]map[Fault]int
}

// Set sets the rate of a fault in per mille.
func (f *Faults) Set(group Group, fault Fault, rate int) { setCount(&f.Rates, group, fault, rate) }

func (f *Faults) count(group Group, fault Fault) {
	setCount(&f.Taken, group, fault, f.Taken[group][fault]+1)
}

func setCount(counts *map[Group]map[Fault]int, group Group, fault Fault, value int) {
	if *counts == nil {
		*counts = map[Group]map[Fault]int{}
	}
	if (*counts)[group] == nil {
		(*counts)[group] = map[Fault]int{}
	}
	(*counts)[group][fault] = value
}

// pick draws NoFault or one of the group's faults that have a rate. Without such a rate it makes no choice. Choice 0 is
// NoFault at every rate.
func (f *Faults) pick(c Chooser, group Group) Fault {
	total := 0
	for _, fault := range groupFaults[group] {
		total += f.weight(group, fault)
	}
	n := max(1000, total)
	if f.Even {
		n = total
	}
	if total == 0 {
		return NoFault
	}
	skip := c.Choose(string(group), n+1) - 1 - (n - total) // the weight before the drawn fault
	for _, fault := range groupFaults[group] {
		weight := f.weight(group, fault)
		if 0 <= skip && skip < weight {
			f.count(group, fault)
			return fault
		}
		skip -= weight
	}
	return NoFault
}

func (f *Faults) weight(group Group, fault Fault) int {
	if rate := f.Rates[group][fault]; !f.Even || rate == 0 {
		return rate
	}
	return 1
}
