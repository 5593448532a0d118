package kit

import (
	"slices"
	"strings"
	"time"
)

// Hazard is one way in which an operator breaks a promise, or in which its reports are wrong. None is on by default.
// Hazards has two more, which are options.
type Hazard string

// The hazards that Hazards.Pick returns. They are modes of a call, which a platform understands if its Spec names them.
const (
	DeniesApplied   Hazard = "503-applied"                  // the call takes effect, and its response is 503
	UnseenDuplicate Hazard = "duplicate"                    // 409 for a new key, without an effect
	NotFoundYet     Hazard = "not found yet"                // 404 for a payment that is younger than two minutes
	NotFound        Hazard = "not found"                    // 404 for a payment that exists
	OtherAmount     Hazard = "lookup with another amount"   // the lookup reports the success of another amount
	OtherCurrency   Hazard = "lookup with another currency" // the lookup reports the success of another currency
)

// The hazards of the outcome that Config.Draw returns, which Outcome.With adds.
const (
	OtherSpellings        Hazard = "other spellings of the statuses" // as some platforms write them
	ReversedSuccess       Hazard = "success, then failure"           // the failure Wrong.After later; no effect
	CallbackTwice         Hazard = "callback twice"                  // each report comes twice
	CallbackReordered     Hazard = "reordered callbacks"             // after that of a payment comes pending
	CallbackOvertaking    Hazard = "callbacks that do not wait for each other"
	CallbackContradicting Hazard = "contradicting callback" // one more report, of Wrong.Claim
	CallbackForged        Hazard = "forged callback"        // the same, once, with a bad MAC in its address
	CallbackForgedKey     Hazard = "forged callback with another key number"
	CallbackWrongAmount   Hazard = "callback with a wrong amount"
	CallbackWrongToken    Hazard = "callback with a wrong notif_token"
	CallbackGarbage       Hazard = "callback without JSON" // cut in half
	CallbackLate          Hazard = "late callback"         // Wrong.After later
	CallbackNever         Hazard = "no callback"           // except false ones
)

// Wrong is what a hazard of reports needs. Each field may be zero.
type Wrong struct {
	// Claim is the result that a false report claims.
	Claim Result
	// After is the delay of late reports, the time until a reversal, or how long a contradiction comes after the end.
	After time.Duration
	// Early lets a contradiction come After the acceptance instead, as a forged report does.
	Early bool
}

// Hazards are the broken promises of a platform.
type Hazards struct {
	// ForgetsRefusals takes a repeat of a refused charge or SMS for a new call.
	ForgetsRefusals bool
	// KeyWindow is how long a key is recognized; 0 is without limit. After it a repeat is a new call with an effect.
	KeyWindow time.Duration
	// Pick returns the hazard of a call or a lookup, or "". It may return any mode of a script too. isKnown is true for
	// a call under a key that was applied.
	Pick func(operation string, k Keys, isKnown bool) Hazard
}

// withHazard adds a hazard to an outcome.
var withHazard = map[Hazard]func(o Outcome, w Wrong) Outcome{
	OtherSpellings:        respell,
	ReversedSuccess:       reverse,
	CallbackTwice:         each(func(r Report, _ Wrong) []Report { return []Report{r, r} }),
	CallbackReordered:     reorder,
	CallbackOvertaking:    overtake,
	CallbackContradicting: falseReport(""),
	CallbackForged:        falseReport(CallbackForged),
	CallbackForgedKey:     falseReport(CallbackForgedKey),
	CallbackWrongAmount:   content(CallbackWrongAmount),
	CallbackWrongToken:    content(CallbackWrongToken),
	CallbackGarbage:       content(CallbackGarbage),
	CallbackLate: each(func(r Report, w Wrong) []Report {
		r.After += w.After
		return []Report{r}
	}),
	CallbackNever: each(func(Report, Wrong) []Report { return nil }),
}

// mode returns the mode of a call with a hazard, or "".
func (h Hazards) mode(operation string, k Keys, isKnown bool) string {
	if h.Pick == nil {
		return ""
	}
	hazard := h.Pick(operation, k, isKnown)
	if hazard == UnseenDuplicate && isKnown {
		return ""
	}
	return string(hazard)
}

// With returns an outcome whose explicit Reports have a hazard. Several are added in turn.
func (o Outcome) With(hazard Hazard, w Wrong) Outcome {
	add, known := withHazard[hazard]
	if !known {
		panic("kit: " + string(hazard) + " is not a hazard of an outcome")
	}
	o.Reports = slices.Clone(o.Reports)
	return add(o, w)
}

// each replaces each report that is not a false one.
func each(f func(r Report, w Wrong) []Report) func(o Outcome, w Wrong) Outcome {
	return func(o Outcome, w Wrong) Outcome {
		reports := []Report{}
		for _, r := range o.Reports {
			if !r.Early {
				reports = append(reports, f(r, w)...)
			} else {
				reports = append(reports, r)
			}
		}
		o.Reports = reports
		return o
	}
}

func content(h Hazard) func(o Outcome, w Wrong) Outcome {
	return each(func(r Report, _ Wrong) []Report {
		r.Hazard = h
		return []Report{r}
	})
}

// reorder reverses the reports. That of a payment was the only one: a stale one follows it.
func reorder(o Outcome, _ Wrong) Outcome {
	if len(o.Reports) == 1 {
		o.Reports = append(o.Reports, Report{Result: Undecided, After: o.Reports[0].After + time.Second})
		return o
	}
	for i, j := 0, len(o.Reports)-1; i < j; i, j = i+1, j-1 {
		o.Reports[i].Result, o.Reports[j].Result = o.Reports[j].Result, o.Reports[i].Result
	}
	return o
}

func overtake(o Outcome, _ Wrong) Outcome {
	o.Overtaking = true
	return o
}

func respell(o Outcome, _ Wrong) Outcome {
	o.OtherSpellings = true
	return o
}

func reverse(o Outcome, w Wrong) Outcome {
	o.ReversedAfter = w.After
	return o
}

func falseReport(h Hazard) func(o Outcome, w Wrong) Outcome {
	return func(o Outcome, w Wrong) Outcome {
		isEarly := w.Early || h.isForged()
		o.Reports = append(o.Reports, Report{Result: w.Claim, After: w.After, Early: isEarly, Hazard: h})
		return o
	}
}

func (h Hazard) isForged() bool { return h == CallbackForged || h == CallbackForgedKey }

// spoil applies the hazards of a callback that are not in its body.
func (h Hazard) spoil(out *Outgoing) {
	switch {
	case h == CallbackGarbage:
		out.Body = out.Body[:len(out.Body)/2]
	case h.isForged():
		out.URL = ForgeToken(out.URL, h == CallbackForgedKey)
	}
}

// ForgeToken changes the token at the end of a callback's URL: its key number, which it begins with, or its MAC.
func ForgeToken(address string, forgesKey bool) string {
	start := strings.LastIndexByte(address, '/') + 1
	at := start
	if !forgesKey {
		at = start + (len(address)-start)/2
	}
	if at >= len(address) {
		return address + "forged"
	}
	replacement := "A"
	if address[at] == 'A' {
		replacement = "B"
	}
	return address[:at] + replacement + address[at+1:]
}
