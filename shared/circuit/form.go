package circuit

import (
	"strconv"
	"strings"

	"mobilegateway/shared/logsafe"
)

// formVersion is the first number of a stored state.
const formVersion = 1

var (
	// ErrUnreadable means that a stored state is torn. It counts as closed, and the next write replaces it.
	ErrUnreadable = logsafe.New("circuit: the stored state is not complete")
	// ErrNewer means that a newer version of the gateway wrote the state. It counts as closed, and this version does
	// not write it.
	ErrNewer = logsafe.New("circuit: the stored state is of a version that this program does not know")
)

// head are the numbers of a stored state after its version: those that each state has, in their order.
func (s *State) head() [7]*int64 {
	return [...]*int64{&s.writer, &s.SuspectUntil, &s.OpenedAt, &s.ProbesAt, &s.EndsAt, &s.ByPerson, &s.Successes}
}

// resultNumbers is how many numbers a slot of the results has.
const resultNumbers = 4

// Encode returns the stored form of a state: whole numbers and a point at the end, with spaces between them. The
// version comes first, then the head, the number of probes, the probes, and the results.
func (s *State) Encode() string {
	numbers := []int64{formVersion}
	for _, number := range s.head() {
		numbers = append(numbers, *number)
	}
	numbers = append(append(numbers, int64(len(s.Probes))), s.Probes...)
	for _, r := range s.Results {
		numbers = append(numbers, r.Slot, r.Failures, r.Successes, r.Slow)
	}
	var text []byte
	for _, number := range numbers {
		text = append(strconv.AppendInt(text, number, 10), ' ')
	}
	return string(append(text, '.'))
}

// Decode reads the stored form of a state, "" for none. After ErrUnreadable and ErrNewer the state is the zero value,
// which is closed.
func Decode(text string) (State, error) {
	var s State
	if text == "" || s.decode(text) {
		return s, nil
	}
	version, _, _ := strings.Cut(text, " ")
	if number, err := strconv.Atoi(version); err == nil && number > formVersion {
		return State{}, ErrNewer
	}
	return State{}, ErrUnreadable
}

// decode reads the form of this version; false if it is not complete.
func (s *State) decode(text string) bool {
	var numbers []int64
	rest, isWhole := strings.CutSuffix(text, " .")
	for more := isWhole; more; {
		var field string
		field, rest, more = strings.Cut(rest, " ")
		number, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return false
		}
		numbers = append(numbers, number)
	}
	head := s.head()
	if len(numbers) < len(head)+2 || numbers[0] != formVersion {
		return false
	}
	for i, number := range head {
		*number = numbers[i+1]
	}
	probes, left := numbers[len(head)+1], numbers[len(head)+2:]
	if probes < 0 || probes > maxProbes || int(probes) > len(left) || !s.isUsable() {
		return false
	}
	s.Probes, left = left[:probes], left[probes:]
	for ; len(left) >= resultNumbers; left = left[resultNumbers:] {
		s.Results = append(s.Results, Results{left[0], left[1], left[2], left[3]})
	}
	return len(left) == 0
}
