package simulate

import (
	"fmt"
	"math"
	"strings"

	"github.com/anishathalye/porcupine"

	"mobilegateway/proof/simulate/outside"
)

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

// classify returns what a response to an order of a function says.
func classify(function string, r outside.Response) observation {
	switch {
	case r.Status == 201 || r.Status == 200:
		if function == functionSMS {
			return observation{kind: responseSuccess} // a repeat gets 409 with the same location
		}
		return observation{kind: responseSuccess, body: r.Body}
	case r.Status == 409 && r.Location != "":
		return observation{kind: responseSuccess}
	case r.Status == 409:
		return observation{kind: responseTaken}
	case r.Status == 504:
		return observation{kind: responseUnknown}
	case strings.HasPrefix(r.MessageID, "POL") && isKnown(r) || r.MessageID == "SVC0270":
		return observation{kind: responseRefused, body: r.Body}
	case r.Status == 503 && r.MessageID == "SVC0001":
		return observation{kind: responseReleased}
	}
	return observation{}
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

// call is one request of an order, and its response.
type call struct {
	body       int // 0 for the order's own, 1 for the other one
	start, end int // kernel steps
	lost       bool
	response   outside.Response
}

// checkLinearizable checks that an order's requests and responses are those of some sequence (invariant 3). The key of
// an expired SMS may be used again, for another one. A failed table lets the gateway respond "not applied" without a
// look at the key, so those responses have no information in a history with such failures.
func (c *checker) checkLinearizable(o *order) {
	if len(o.calls) < 2 || o.function == functionSMS && c.world.smsRetention != 0 {
		return
	}
	history := make([]porcupine.Operation, len(o.calls))
	for i, made := range o.calls {
		given, end := classify(o.function, made.response), int64(made.end)
		given.maybeReleased = c.world.Rates.Freeze > 0 || c.world.Rates.Table > 0
		// A platform's lookup may prove that an unknown payment was never sent. So it may be released between two
		// requests.
		if given.kind == responseReleased && (c.world.Rates.Table > 0 || c.world.platforms != nil) {
			given = observation{}
		}
		if made.lost {
			given, end = observation{kind: responseLost}, math.MaxInt64
		}
		history[i] = porcupine.Operation{
			ClientId: i, Input: made.body, Output: given, Call: int64(made.start), Return: end,
		}
	}
	if !porcupine.CheckOperations(keyModel, history) {
		var text strings.Builder
		for _, made := range o.calls {
			fmt.Fprintf(&text, " [%d-%d body %d: %d %s lost %v]", made.start, made.end, made.body, made.response.Status,
				made.response.MessageID, made.lost)
		}
		c.fail(3, "%s %s %d has no order of its requests that explains the responses:%s", o.shop.Name, o.function,
			o.number, text.String())
	}
}
