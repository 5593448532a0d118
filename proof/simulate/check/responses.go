package check

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

const sameResponse invariant = "3: The same key and body get the same response. A repeat of a charge or a payment " +
	"after it is marked as a replay. The operator never gets two bodies under one key. The responses of an order are " +
	"linearizable (porcupine)"

// responses checks that each key has one response.
type responses struct{ *base }

// changed checks that a stored response does not change.
func (c *responses) changed(t transition) {
	before, after := t.before.Response, t.after.Response
	if before.Status != 0 && (after.Status != before.Status || !bytes.Equal(after.Body, before.Body)) {
		c.fail(sameResponse, "%s: the stored response changed", t.key)
	}
}

// responded checks that an order's response is the same each time.
func (c *responses) responded(o *merchants.Order, r outside.Response) {
	if !IsKnown(r) {
		return
	}
	for _, earlier := range o.Responses {
		isSentSMS := earlier.Location != "" && r.Location != "" // the success of an SMS, or the reference to it
		if IsKnown(earlier) && (earlier.Status != r.Status || earlier.Body != r.Body) && !isSentSMS {
			c.fail(sameResponse, "%s %s %d: first %d %s, then %d %s", o.Shop.Name, o.Function, o.Number,
				earlier.Status, earlier.Body, r.Status, r.Body)
		}
	}
}

// replayed checks that a repeat is marked as a replay if it began when its merchant had the response. The repeat of an
// SMS refers to the first one instead.
func (c *responses) replayed(o *merchants.Order, made *merchants.Call) {
	r := made.Response
	hasHad := slices.ContainsFunc(o.Calls, func(earlier *merchants.Call) bool {
		return earlier.Body == made.Body && !earlier.IsLost && earlier.End < made.Start && IsKnown(earlier.Response)
	})
	if hasHad && o.Function != deployment.SMS && !r.Replayed {
		c.fail(sameResponse, "%s %s %d got %d again, and not as a replay", o.Shop.Name, o.Function, o.Number, r.Status)
	}
}

// ownKey checks that each merchant has its own keys. A charge or an SMS cannot be a duplicate if its merchant has sent
// one body only. The operator may know the key of an expired SMS.
func (c *responses) ownKey(o *merchants.Order, r outside.Response) {
	hasOtherBody := slices.ContainsFunc(o.Calls, func(made *merchants.Call) bool {
		return made.Body != merchants.OwnBody
	})
	isDuplicate := r.Status == 409 && r.Location == "" && r.RetryAfter == ""
	if !isDuplicate || hasOtherBody || c.reusesKeys(o.Function) || o.Function == deployment.Pay {
		return
	}
	upstream := ledger.UpstreamKey(o.Shop.Name, o.Wanted.Key, o.Wanted.Reference)
	if !c.operators.HasLied(upstream) {
		c.fail(sameResponse, "%s %s %d is refused as a duplicate, and its merchant has sent no other body", o.Shop.Name,
			o.Function, o.Number)
	}
}

// OtherContent reports a call under a key whose first call had another content. The key of an expired SMS may come
// again.
func (c *responses) OtherContent(kind, key string) {
	if kind != outside.KindSMS || c.SMSRetention == 0 {
		c.fail(sameResponse, "%s %s was sent with two different bodies", kind, key)
	}
}

// phase is the state of a key in the model.
type phase int

// The phases.
const (
	phaseFree    phase = iota // absent, or released
	phaseUnknown              // an attempt may have been applied
	phaseDone
	phaseRefused
)

// keyState is the state of a key in the model: whose body it has, and the response that each repeat gets.
type keyState struct {
	phase    phase
	body     int
	response string // "" while no response is known
}

// step is the sequential model of one key: the states that may follow a request with a body and its response. Between
// two requests a callback, a lookup or a person may have ended an unknown outcome, so it may become known at any time.
func step(state keyState, body int, given observation) []keyState {
	sameBody := state.body == body || state.phase == phaseFree
	open := state.phase == phaseFree || state.phase == phaseUnknown
	switch given.kind {
	case responseLost:
		next := []keyState{state}
		if open && sameBody {
			next = append(next, keyState{phaseUnknown, body, ""}, keyState{phaseDone, body, ""},
				keyState{phaseRefused, body, ""})
		}
		return next
	case responseSuccess, responseRefused:
		known := phaseDone
		if given.kind == responseRefused {
			known = phaseRefused
		}
		repeats := state.phase == known && (state.response == "" || state.response == given.body)
		switch {
		case repeats:
			return []keyState{{known, state.body, given.body}}
		case open && sameBody:
			return []keyState{{known, body, given.body}}
		case state.phase == phaseUnknown: // ended meanwhile: the stored response, with any body
			return []keyState{{known, state.body, given.body}}
		}
		return nil
	case responseReleased:
		if state.phase != phaseFree {
			return nil
		}
	case responseUnknown:
		switch {
		case !open:
			return nil
		case state.phase == phaseFree && given.maybeReleased:
			return []keyState{{phaseUnknown, body, ""}, state}
		case state.phase == phaseFree:
			return []keyState{{phaseUnknown, body, ""}}
		}
	}
	return []keyState{state}
}

// keyModel is the sequential model for porcupine.
var keyModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{keyState{}} },
	Step: func(state, input, output any) []any {
		var next []any
		for _, s := range step(state.(keyState), input.(int), output.(observation)) {
			next = append(next, s)
		}
		return next
	},
}).ToModel()

// linearizable checks that an order's requests and responses are those of some sequence. The key of
// an expired SMS may be used again, for another one. A failed table lets the gateway respond "not applied" without a
// look at the key, so those responses have no information in a history with such failures.
func (c *responses) linearizable(o *merchants.Order) {
	if len(o.Calls) < 2 || c.reusesKeys(o.Function) {
		return
	}
	history := make([]porcupine.Operation, len(o.Calls))
	for i, made := range o.Calls {
		given, end := classify(o.Function, made.Response), int64(made.End)
		given.maybeReleased = c.Rates.Freeze > 0 || c.Rates.Table > 0
		// A platform's lookup may prove that an unknown payment was never sent. So it may be released between two
		// requests.
		if given.kind == responseReleased && (c.Rates.Table > 0 || c.operators.Platforms != nil) {
			given = observation{}
		}
		if made.IsLost {
			given, end = observation{kind: responseLost}, math.MaxInt64
		}
		history[i] = porcupine.Operation{
			ClientId: i, Input: made.Body, Output: given, Call: int64(made.Start), Return: end,
		}
	}
	if !porcupine.CheckOperations(keyModel, history) {
		var text strings.Builder
		for _, made := range o.Calls {
			fmt.Fprintf(&text, " [%d-%d body %d: %d %s lost %v]", made.Start, made.End, made.Body, made.Response.Status,
				made.Response.MessageID, made.IsLost)
		}
		c.fail(sameResponse, "%s %s %d has no order of its requests that explains the responses:%s", o.Shop.Name,
			o.Function, o.Number, text.String())
	}
}

// responseKind is what a response reports about its key.
type responseKind int

// The kinds of responses. A response without information, such as a refused token, is responseNone.
const (
	responseNone     responseKind = iota
	responseLost                  // no response: anything may have happened
	responseSuccess               // the operator applied or accepted it
	responseRefused               // the operator's final refusal
	responseReleased              // not applied: the key may come again
	responseUnknown               // it may have been applied
	responseTaken                 // another request is in progress, or has the key
)

// observation is a response, as the sequential model sees it.
type observation struct {
	kind responseKind
	body string // of a success or a refusal
	// maybeReleased is true of an unknown outcome in a history with freezes or failures of tables. The write of a
	// release may then have no response in time: the gateway reports an unknown outcome of a key that is free.
	maybeReleased bool
}

// classify returns what a response to an order of a function says.
func classify(function string, r outside.Response) observation {
	switch {
	case r.Status == 201 || r.Status == 200:
		if function == deployment.SMS {
			return observation{kind: responseSuccess} // a repeat gets 409 with the same location
		}
		return observation{kind: responseSuccess, body: r.Body}
	case r.Status == 409 && r.Location != "":
		return observation{kind: responseSuccess}
	case r.Status == 409:
		return observation{kind: responseTaken}
	case r.Status == 504:
		return observation{kind: responseUnknown}
	case strings.HasPrefix(r.MessageID, "POL") && IsKnown(r) || r.MessageID == "SVC0270":
		return observation{kind: responseRefused, body: r.Body}
	case r.Status == 503 && r.MessageID == "SVC0001":
		return observation{kind: responseReleased}
	}
	return observation{}
}

// IsKnown reports whether a response reports the outcome of the request: a success, or the operator's final refusal.
func IsKnown(r outside.Response) bool {
	isRefusal := r.Status == 403 && !isOverLimit(r)
	return r.Status == 201 || r.Status == 200 || isRefusal || r.Status == 409 && r.Location != ""
}

// isOverLimit reports whether a response refuses a request because of the merchant's daily amount.
func isOverLimit(r outside.Response) bool {
	return r.Status == 403 && strings.Contains(r.Body, "Daily amount limit exceeded")
}
