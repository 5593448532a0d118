package simulate

import (
	"fmt"
	"slices"
	"strings"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/world"
)

const (
	// timeColumns are the columns of a line's time, with the space after it.
	timeColumns = 14
	// maxRepeats is how many lines of one form a story has before it leaves out those that follow, except the last.
	maxRepeats = 2
)

// subject is an order with all that belongs to it: its entry, its calls at the operator, and its notifications.
type subject struct {
	merchant string
	names    []string // in the lines of a story
}

// isIn reports whether a text names the subject.
func (s *subject) isIn(text string) bool {
	return slices.ContainsFunc(s.names, func(name string) bool { return hasWord(text, name) })
}

// hasWord reports whether a text has a name that is not the beginning of a longer one.
func hasWord(text, name string) bool {
	for name != "" {
		_, after, found := strings.Cut(text, name)
		if !found {
			return false
		}
		if after == "" || !strings.ContainsAny(after[:1], "0123456789abcdefghijklmnopqrstuvwxyz_-") {
			return true
		}
		text = after
	}
	return false
}

// subjectsOf returns all orders and entries of a history, without those of a crowd, which no violation is about.
func subjectsOf(w *world.World) []*subject {
	byKey := map[string]*subject{}
	var all []*subject
	of := func(key, merchant string) *subject {
		if byKey[key] == nil {
			byKey[key] = &subject{merchant: merchant, names: []string{key}}
			all = append(all, byKey[key])
		}
		return byKey[key]
	}
	for _, o := range w.Merchants.Orders {
		s := of(o.Key().String(), o.Shop.Name)
		s.names = append(s.names, fmt.Sprintf("%s %s %d", o.Shop.Name, o.Function, o.Number),
			fmt.Sprintf("%s requests %s %d", o.Shop.Name, o.Function, o.Number))
	}
	for e := range w.Entries.All() {
		if deployment.IsCrowd(e) {
			continue
		}
		s := of(e.Key.String(), e.Merchant.Name)
		s.names = append(s.names, e.ID, e.Route.UpstreamKey, e.OperatorReference)
		for _, n := range slices.Concat(e.Outbox.Waiting, e.Outbox.Delivered) {
			s.names = append(s.names, n.ID)
		}
	}
	return all
}

// violated divides the subjects into those that a violation names, and the others. If it names none it is about
// all of the merchant that it names, or about all.
func violated(all []*subject, violation string) (ours, others []*subject) {
	divide := func(isOurs func(*subject) bool) {
		ours, others = nil, nil
		for _, s := range all {
			if isOurs(s) {
				ours = append(ours, s)
			} else {
				others = append(others, s)
			}
		}
	}
	divide(func(s *subject) bool { return s.isIn(violation) })
	if len(ours) == 0 {
		divide(func(s *subject) bool { return strings.Contains(violation, s.merchant) })
	}
	if len(ours) == 0 {
		return all, nil
	}
	return ours, others
}

// relatedLines are the lines of a story about what was violated, without repeats. They are the lines that name it, and
// the faults of the invocations that worked on it. The faults of its merchant and of what all orders share belong to
// them.
func relatedLines(w *world.World) []string {
	if w.Violation == nil || !w.HasStory {
		return nil
	}
	ours, others := violated(subjectsOf(w), w.Violation.Error())
	names := func(subjects []*subject, text string) bool {
		return slices.ContainsFunc(subjects, func(s *subject) bool { return s.isIn(text) })
	}
	number, current := make([]int, len(w.Story)), map[string]int{} // of the invocation, by line and by function
	worksOnOurs := map[int]bool{}
	for place, line := range w.Story {
		function, rest, _ := strings.Cut(line[timeColumns:], ":")
		function = strings.TrimSuffix(function, " log")
		if rest == " invoked" {
			current[function] = place + 1
		}
		number[place] = current[function]
		if number[place] != 0 && names(ours, rest) {
			worksOnOurs[number[place]] = true
		}
	}
	var kept []string
	isKept := false
	for place, line := range w.Story {
		text := line[timeColumns:]
		switch {
		case strings.HasPrefix(text, "VIOLATION"):
			isKept = true
		case strings.Contains(text, deployment.CrowdSign):
			isKept = false
		case names(ours, text):
			isKept = !isRoutine(text)
		case names(others, text):
			isKept = false
		case number[place] != 0:
			isKept = worksOnOurs[number[place]] && !isRoutine(text)
		case strings.Contains(text, ": http "): // the response of the call in the line before
		case strings.HasPrefix(text, "merchant ") || strings.HasPrefix(text, deployment.Engineer):
			isKept = slices.ContainsFunc(ours, func(s *subject) bool { return strings.Contains(text, s.merchant) })
		default:
			isKept = true
		}
		if isKept {
			kept = append(kept, line)
		}
	}
	return withoutRepeats(kept)
}

// isRoutine reports whether a line of an invocation says only that it ran.
func isRoutine(text string) bool {
	return strings.HasSuffix(text, ": invoked") || strings.HasSuffix(text, ": invocation ended, lost false")
}

// withoutRepeats replaces the repeats of a line by their number.
func withoutRepeats(lines []string) (kept []string) {
	form := func(line string) string { return variableParts.ReplaceAllString(line[timeColumns:], "#") }
	total, seen, left := map[string]int{}, map[string]int{}, 0
	for _, line := range lines {
		total[form(line)]++
	}
	note := func() {
		if left > 0 {
			kept = append(kept, fmt.Sprintf("%*s  ... %d lines as before", timeColumns-2, "", left))
		}
		left = 0
	}
	for _, line := range lines {
		seen[form(line)]++
		if seen[form(line)] > maxRepeats && seen[form(line)] < total[form(line)] {
			left++
			continue
		}
		note()
		kept = append(kept, line)
	}
	note()
	return kept
}
