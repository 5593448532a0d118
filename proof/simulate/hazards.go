package simulate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
)

// hazard is one kind of trouble that a history can have, beside the faults with a rate.
type hazard struct {
	name string
	plan func(w *World, length time.Duration)
	// rarity is one in how many histories it occurs, 0 for hazardRarity. A hazard whose histories take long is rarer.
	rarity int
	// isLater is true if the hazard was added later: whether it occurs leaves the other choices of a seed as they were.
	isLater bool
}

// hazards are all kinds. A history has about one of them.
var hazards = []hazard{
	{name: "a rotation of keys", plan: (*World).planRotations},
	{name: "a rotation of operators' tokens", plan: (*World).planTokenRotation},
	{name: "an unreadable secret", plan: (*World).planUnreadableSecret},
	{name: "a table that fails", plan: (*World).planFailingTable},
	{name: "a suspended merchant", plan: (*World).planSuspension, rarity: 60},
	{name: "a hanging operator", plan: (*World).planHangingOperator},
	{name: "the stream off", plan: (*World).planStreamOff},
	{name: "poison records", plan: (*World).planPoisonRecords},
	{name: "an undecodable item", plan: (*World).planUndecodableItem},
	{name: "deletion of expired items", plan: (*World).planDeletions},
	{name: "an engineer at work", plan: (*World).planEarlyEngineer},
	{name: "a newer version", plan: func(w *World, _ time.Duration) { w.hasNewerVersion = true }},
	{name: "denied addresses", plan: func(w *World, _ time.Duration) { w.hasDeniedAddresses = true }},
	{name: "sweeps started twice", plan: func(w *World, _ time.Duration) { w.Rates.DoubleSweep = 200 }},
	{name: "a short retention", plan: (*World).planShortRetention},
	{name: "crashes at a few calls", plan: (*World).planCrashProneCalls},
	{name: "changes by an engineer", plan: (*World).planChanges, rarity: 60},
	{name: "crashes at the table of limits", plan: (*World).planLimitCrashes, rarity: 24},
	{name: "short-lived tokens", plan: (*World).planShortLivedTokens},
	{name: "crashes of gatewayctl", plan: (*World).planToolCrashes, rarity: 40},
	{name: "an engineer who sends at once", plan: (*World).planSends, rarity: 24},
	{name: "operators that forget refusals", plan: (*World).planForgottenRefusals, rarity: 24, isLater: true},
	{name: "timers that stop in a freeze", plan: (*World).planStoppedTimers, rarity: 24, isLater: true},
	{name: "lookups of another payment", plan: (*World).planOtherLookups, rarity: 24, isLater: true},
	{name: "a busy merchant", plan: (*World).planBusyMerchant, rarity: 40, isLater: true},
	{name: "a new address", plan: (*World).planNewAddress, rarity: 40, isLater: true},
}

// hazardRarity is one in how many histories most hazards occur.
const hazardRarity = 12

// drawHazards draws the hazards of a history.
func (w *World) drawHazards(length time.Duration) {
	for _, h := range hazards {
		rarity, choose := cmp.Or(h.rarity, hazardRarity), w.Tape.Choose
		if h.isLater {
			choose = w.Tape.ChooseApart
		}
		if choose("has "+h.name, rarity) == rarity-1 {
			w.Count("hazard: " + h.name)
			h.plan(w, length)
		}
	}
}

// rings are the secrets with key rings.
var rings = []string{callbackSecret, webhookSecret, tokenSecret}

func (w *World) planRotations(length time.Duration) {
	for range 1 + w.Tape.Choose("rotations", 3) {
		ring := tape.Draw(w.Tape, "ring", rings...)
		w.Kernel.At(w.DrawStart(length), "rotation", func() {
			if w.secrets.Unreadable(time.Now(), ring) {
				return // a person cannot read it either
			}
			w.Logf("%s: a new key", ring)
			if err := w.addRingKey(ring); err != nil {
				w.Fail("add a key: %s", err)
			}
		})
	}
}

// addRingKey adds a key to a ring, as gatewayctl does: the public ring of the token keys is written first.
func (w *World) addRingKey(ring string) error {
	current, _ := w.secrets.Current(ring)
	random, now := w.Tape, time.Now()
	if ring != tokenSecret {
		next, err := keyring.AddKey(current, random, now)
		if err == nil {
			w.secrets.Set(now, ring, next)
		}
		return err
	}
	public, _ := w.secrets.Current(publicSecret)
	next, err := keyring.Pair{Private: current, Public: public}.AddKey(random, now)
	if err == nil {
		w.secrets.Set(now, publicSecret, next.Public)
		w.secrets.Set(now, tokenSecret, next.Private)
	}
	return err
}

// planTokenRotation changes the access token of every operator. The old one stays valid for an hour, or for a second.
func (w *World) planTokenRotation(length time.Duration) {
	overlap := tape.Draw(w.Tape, "overlap of access tokens", time.Hour, time.Second)
	const next = "operator-access-token-2"
	w.Kernel.At(w.DrawStart(length), "token rotation", func() {
		w.Logf("operators: a new access token")
		w.secrets.Set(time.Now(), operatorSecret, operatorCredentials(next))
		w.setAccessTokens(next, operatorToken)
		w.Kernel.At(time.Now().Add(overlap), "end of the old token", func() { w.setAccessTokens(next) })
	})
}

func (w *World) setAccessTokens(tokens ...string) {
	for _, name := range w.shops[0].Operators {
		o := w.operators[operatorHost(name)]
		o.AccessTokens = nil
		for _, token := range tokens {
			o.AccessTokens = append(o.AccessTokens, accessToken(token, name))
		}
	}
}

func (w *World) planUnreadableSecret(length time.Duration) {
	all := append(slices.Clone(rings), publicSecret, operatorSecret)
	broken := w.DrawWindow(length, 10*time.Minute, 3*time.Hour, 26*time.Hour)
	w.secrets.SetUnreadable(tape.Draw(w.Tape, "secret", all...), broken.From, broken.To)
}

// planFailingTable makes the profile of one merchant unreadable, or lets all writes of the ledger fail.
func (w *World) planFailingTable(length time.Duration) {
	at := w.Tape.Choose("failing table", len(w.shops)+1)
	if at == len(w.shops) {
		w.readOnly = w.DrawWindow(length, time.Minute, 20*time.Minute, 3*time.Hour)
		return
	}
	w.unreadable[w.shops[at].profile.ID] = w.DrawWindow(length, time.Hour, 24*time.Hour, 3*24*time.Hour)
}

func (w *World) planSuspension(length time.Duration) {
	s := tape.Draw(w.Tape, "shop", w.shops...)
	suspended := w.DrawWindow(length, 5*time.Minute, 10*time.Hour)
	w.engineerAt(suspended.From, "suspension", func(i *instance) { w.suspend(s, i) })
	w.engineerAt(suspended.To, "resumption", func(i *instance) { w.resume(s, i) })
}

// planHangingOperator lets the calls of one kind at an operator hang for days.
func (w *World) planHangingOperator(length time.Duration) {
	w.planOutage(tape.Draw(w.Tape, "operator", w.shops[0].Operators...), length)
}

// outageKinds and outageFaults are the kinds of calls that an outage concerns, "" for all, and what happens to them.
var (
	outageKinds = []string{
		outside.KindPayerSMS, outside.KindLookup, outside.KindSMS, outside.KindCharge, outside.KindPayment, "",
	}
	outageFaults = []outside.Fault{
		outside.HangBefore, outside.HangAfter, outside.ServerErrorBefore, outside.SlowAfter,
	}
)

func (w *World) planOutage(operatorName string, length time.Duration) {
	broken := w.DrawWindow(length, time.Hour, 24*time.Hour, 3*24*time.Hour)
	o := w.operators[operatorHost(operatorName)]
	o.Outages = append(o.Outages, outside.Outage{
		Kind: tape.Draw(w.Tape, "kind of outage", outageKinds...), From: broken.From, To: broken.To,
		Fault: tape.Draw(w.Tape, "fault of outage", outageFaults...),
	})
}

func (w *World) planStreamOff(length time.Duration) {
	w.streamOff = w.DrawWindow(length, time.Hour, 23*time.Hour)
}

// poisonRecords are records that no version of the gateway has written.
var poisonRecords = []string{
	`{"Records":[{"eventID":"1","dynamodb":{"NewImage":{"pk":{"S":"pay#poison"},"wr":{"S":"1"},"v":{"N":"x"}}}}]}`,
	`{"Records":[{"eventID":"2","dynamodb":{"NewImage":{"pk":{"N":"7"}}}}]}`,
	`{"Records":[{"eventID":"3","dynamodb":{}},{"eventID":"4"}]}`,
	`{"Records":[{"eventID":"5","dynamodb":{"NewImage":"text"}}]}`,
}

func (w *World) planPoisonRecords(length time.Duration) {
	for range 1 + w.Tape.Choose("poison records", 3) {
		record := []byte(tape.Draw(w.Tape, "poison record", poisonRecords...))
		w.Kernel.At(w.DrawStart(length), "poison record", func() {
			w.invoke(functionRelay, record, func(r result) {
				if r.err != nil {
					w.Fail("invariant 8: a poison record fails its batch: %s", r.err)
				}
			})
		})
	}
}

// An item of the ledger's table that cannot be decoded, and is due.
const (
	undecodableID  = "undecodable"
	undecodableKey = "charge#" + undecodableID
)

func (w *World) planUndecodableItem(length time.Duration) {
	w.Kernel.At(w.DrawStart(length), "undecodable item", func() {
		w.undecodable = true
		item := dynamoitem.Key(undecodableKey)
		item["ds"] = dynamoitem.Text(strconv.Itoa(ledger.DueShard(ledger.Key{Kind: ledger.Charge, ID: undecodableID})))
		item["da"] = dynamoitem.Number(time.Now().UnixMilli())
		item["v"] = dynamoitem.Text("not a number")
		_, err := w.database.PutItem(&dynamodb.PutItemInput{TableName: aws.String(ledgerTable), Item: item})
		if err != nil {
			w.Fail("store an undecodable item: %s", err)
		}
	})
}

// planDeletions deletes expired items some days late, or soon after their expiry.
func (w *World) planDeletions(time.Duration) {
	interval := tape.Draw(w.Tape, "interval of deletions", 6*time.Hour, 47*time.Hour)
	for at := history.Start.Add(interval); at.Before(w.End); at = at.Add(interval) {
		w.Kernel.At(at, "deletions", func() {
			for _, table := range []string{ledgerTable, limitTable} {
				for _, key := range w.database.Expirable(table) {
					w.database.Expire(table, key)
				}
			}
		})
	}
}

// planEarlyEngineer lets the engineer work also while faults happen.
func (w *World) planEarlyEngineer(length time.Duration) {
	for range 1 + w.Tape.Choose("rounds", 3) {
		w.Kernel.At(w.DrawStart(length).Add(30*time.Minute), "engineer", w.engineerRound)
	}
}

// planShortRetention lets SMS expire within the history, and operators remember keys for longer.
func (w *World) planShortRetention(time.Duration) {
	w.smsRetention = tape.Draw(w.Tape, "retention of SMS", time.Hour, 30*time.Hour)
	for _, name := range w.shops[0].Operators {
		w.operators[operatorHost(name)].KeyWindow = 60 * 24 * time.Hour
	}
}

// planForgottenRefusals lets operators forget the refusals of charges and SMS: a repeat may be applied. The gateway
// cannot store some of them. No function freezes, because a call that is sent after its order was refused would be
// applied too, and the gateway does not forget SMS sooner.
func (w *World) planForgottenRefusals(time.Duration) {
	if w.smsRetention != 0 {
		return
	}
	w.Rates.Freeze, w.losesRefusals = 0, true
	w.Faults.Set(outside.OperatorCalls, outside.FinalRefusal, 200)
	for _, name := range w.shops[0].Operators {
		w.operators[operatorHost(name)].ForgetsRefusals = true
	}
}

// planStoppedTimers lets functions continue after a freeze as if no time had passed, so that outcomes are stored late.
func (w *World) planStoppedTimers(time.Duration) { w.timersStop, w.Rates.Freeze = true, 60 }

// planOtherLookups lets lookups report the success of a payment with another amount or currency.
func (w *World) planOtherLookups(time.Duration) {
	w.Faults.Set(outside.LookupContents, outside.LookupOther, 400)
	w.Faults.Set(outside.CallbackTimes, outside.CallbackNever, 300)
	w.Faults.Set(outside.Payers, outside.PayerFails, 300)
}

// accessToken is the access token at an operator: no two operators have the same.
func accessToken(token, operatorName string) string { return token + "-at-" + operatorName }

// operatorCredentials is the operators' secret.
func operatorCredentials(token string) []byte { return must(json.Marshal(operatorAccounts(token))) }

// operatorAccounts has one account for each operator, with a host of its own.
func operatorAccounts(token string) map[string]any {
	all := map[string]any{}
	for _, name := range operatorNames() {
		all[name] = map[string]any{"current": "a1", "accounts": map[string]any{"a1": map[string]any{
			"base_url": "https://" + operatorHost(name), "access_token": accessToken(token, name),
			"service_id": "SERVICE-1", "application_id": "APP-1", "contact_id": "CONTACT-1",
			"user_sms": map[string]any{"gw_token": "platform-gw-token", "sender": senders(), "sender_name": "Gateway"},
		}}}
	}
	return all
}
