package check

import (
	"fmt"
	"math"
	"strings"

	"github.com/anishathalye/porcupine"

	"mobilegateway/proof/simulate/merchants"
)

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
