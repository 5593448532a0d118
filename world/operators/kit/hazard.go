package kit

import (
	"slices"
	"strings"
	"time"
)

// Hazard is one way in which an operator breaks a promise, or in which its reports are wrong. None is on by default.
type Hazard string

// The hazards, which hazardTable describes. Those of a call are modes.
const (
	ForgetsRefusals Hazard = "forgets refusals"
	KeyWindow       Hazard = "key window"

	DeniesApplied   Hazard = "503-applied"
	UnseenDuplicate Hazard = "duplicate"
	NotFoundYet     Hazard = "not found yet"
	NotFound        Hazard = "not found"
	OtherAmount     Hazard = "lookup with another amount"
	OtherCurrency   Hazard = "lookup with another currency"

	OtherSpellings        Hazard = "other spellings of the statuses"
	ReversedSuccess       Hazard = "success, then failure"
	CallbackTwice         Hazard = "callback twice"
	CallbackReordered     Hazard = "reordered callbacks"
	CallbackOvertaking    Hazard = "callbacks that do not wait for each other"
	CallbackContradicting Hazard = "contradicting callback"
	CallbackForged        Hazard = "forged callback"
	CallbackForgedKey     Hazard = "forged callback with another key number"
	CallbackWrongAmount   Hazard = "callback with a wrong amount"
	CallbackWrongToken    Hazard = "callback with a wrong notif_token"
	CallbackGarbage       Hazard = "callback without JSON"
	CallbackLate          Hazard = "late callback"
	CallbackNever         Hazard = "no callback"
)

// hazardRow describes a hazard.
type hazardRow struct {
	Hazard Hazard
	// Option is where it is set: a field of Hazards, or Outcome.With for the outcome that Config.Draw returns.
	Option string
	Means  string

	with func(o Outcome, w Wrong) Outcome // nil for those that are not set by Outcome.With
}

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

const (
	option = "Hazards."
	pick   = "Hazards.Pick"
	with   = "Outcome.With"
)

var hazardTable = []hazardRow{
	{ForgetsRefusals, option + "ForgetsRefusals", "the same charge or SMS is applied after a final refusal", nil},
	{KeyWindow, option + "KeyWindow", "after the window a repeat is a second effect", nil},
	{DeniesApplied, pick, "the call takes effect, and its response is 503", nil},
	{UnseenDuplicate, pick, "409 for a new key, without an effect; a known key is served", nil},
	{NotFoundYet, pick, "404 for a payment that is younger than two minutes", nil},
	{NotFound, pick, "404 for a payment that exists", nil},
	{OtherAmount, pick, "the lookup reports the success of another amount", nil},
	{OtherCurrency, pick, "the lookup reports the success of another currency", nil},
	{OtherSpellings, with, "the statuses of a payment are written as some platforms write them", respell},
	{ReversedSuccess, with, "it reports a success, and the failure Wrong.After later; no effect", reverse},
	{CallbackTwice, with, "each report comes twice", each(func(r Report, _ Wrong) []Report { return []Report{r, r} })},
	{CallbackReordered, with, "the reports change places; after that of a payment comes pending", reorder},
	{CallbackOvertaking, with, "a report does not wait until the one before is delivered", overtake},
	{CallbackContradicting, with, "one more report, of Wrong.Claim", falseReport("")},
	{CallbackForged, with, "one more report, once, with a bad MAC in its address", falseReport(CallbackForged)},
	{CallbackForgedKey, with, "the same, with another key number", falseReport(CallbackForgedKey)},
	{CallbackWrongAmount, with, "the reports have another amount", content(CallbackWrongAmount)},
	{CallbackWrongToken, with, "the reports have another notif_token", content(CallbackWrongToken)},
	{CallbackGarbage, with, "the reports are cut in half", content(CallbackGarbage)},
	{CallbackLate, with, "the reports come Wrong.After later", each(func(r Report, w Wrong) []Report {
		r.After += w.After
		return []Report{r}
	})},
	{CallbackNever, with, "no report comes, except false ones", each(func(Report, Wrong) []Report { return nil })},
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
	i := slices.IndexFunc(hazardTable, func(row hazardRow) bool { return row.Hazard == hazard && row.with != nil })
	if i < 0 {
		panic("kit: " + string(hazard) + " is not a hazard of an outcome")
	}
	o.Reports = slices.Clone(o.Reports)
	return hazardTable[i].with(o, w)
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
