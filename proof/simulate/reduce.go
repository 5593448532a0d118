package simulate

import (
	"regexp"
	"slices"
	"strings"

	"mobilegateway/proof/simulate/tape"
)

// Reduced is the simplest history that was found, with its story.
type Reduced struct {
	Result
	Kept int // orders
	Runs int // histories that were run
}

// Reduce looks for the simplest history whose violation has the form of a failed one. It first drops whole orders, and
// then simplifies the choices. It calls run for each history, about maxRuns times.
func Reduce(
	seed uint64, failed Result, options Options, maxRuns int, run func(*tape.Tape, Options) Result,
) Reduced {
	form, choices, runs := formOf(failed.Violation), failed.Choices, 0
	fails := func(choices *tape.Tape) (Result, bool) {
		runs++
		result := run(choices, options)
		return result, result.Violation != nil && formOf(result.Violation) == form
	}
	for place := range min(failed.Orders, maxRuns/2) {
		kept := options.Without
		options.Without = append(slices.Clone(kept), place)
		for _, candidate := range []*tape.Tape{tape.FromChoices(choices), tape.FromSeed(seed)} {
			if result, isSame := fails(candidate); isSame {
				choices, kept = result.Choices, options.Without
				break
			}
		}
		options.Without = kept
	}
	choices = tape.Shrink(choices, maxRuns-runs, func(choices []int) bool {
		_, isSame := fails(tape.FromChoices(choices))
		return isSame
	})
	options.Story = true
	return Reduced{run(tape.FromChoices(choices), options), failed.Orders - len(options.Without), runs}
}

// The parts of a violation that differ between two histories of one defect: words with a digit, quoted texts, and
// bodies.
var (
	variableParts = regexp.MustCompile(`"[^"]*"|\S*\d\S*|(Open|Limit)Shop\S*`)
	bodyPart      = regexp.MustCompile(`(?s)\{.*`)
)

// formOf is a violation without the parts that differ between two histories of one defect.
func formOf(violation error) string {
	number, text, _ := strings.Cut(violation.Error(), ":")
	return number + ":" + variableParts.ReplaceAllString(bodyPart.ReplaceAllString(text, ""), "#")
}
