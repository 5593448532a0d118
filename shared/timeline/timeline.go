// Package timeline keeps what an operator last reported on a transaction, in one short text.
//
// The text is for people: nothing is decided by it. It has the last three reports of each kind and the number of the
// earlier ones, so it never has more than about 600 bytes. It is stored as it is, so that a program writes again what
// it does not know. An empty text is not stored: a transaction whose facts are in its other fields has none (decision
// "order-timeline").
//
// The text is a list of words, separated by spaces. The word of a report is the letter of its kind, its time in
// milliseconds after the entry's creation, the letter of its outcome, and a code after a colon. A report at the time of
// the final status has no time of its own. "2l" counts two earlier lookups.
package timeline

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Log is the stored text.
type Log string

// Kind is the kind of a report.
type Kind byte

// The kinds. The letters are stored.
const (
	Lookup       Kind = 'l' // by the functions
	ManualLookup Kind = 'g' // by gatewayctl
	Callback     Kind = 'c'
	Receipt      Kind = 'r'
	Call         Kind = 'o' // the code of a call; its other facts are in the call attempts
)

// Outcome is what a report says.
type Outcome byte

// The outcomes. The letters are stored. NotRecorded is of a lookup whose response no write has recorded.
const (
	NotRecorded   Outcome = 0
	Pending       Outcome = 'p'
	Successful    Outcome = 's'
	Failed        Outcome = 'f'
	Cancelled     Outcome = 'x'
	Expired       Outcome = 'e'
	NotFound      Outcome = 'n' // the operator does not know the transaction
	NoResponse    Outcome = 't'
	Rejected      Outcome = 'j' // the operator refused our credentials
	UnknownStatus Outcome = 'u' // a status that the driver does not know, or a text that it cannot read
	NotMade       Outcome = 'm' // a lookup without time or rate for it
	Waiting       Outcome = 'w' // MessageWaiting
	Network       Outcome = 'k' // DeliveredToNetwork
	Terminal      Outcome = 'd' // DeliveredToTerminal
	Uncertain     Outcome = 'y' // DeliveryUncertain
	Impossible    Outcome = 'i' // DeliveryImpossible
	Unsupported   Outcome = 'z' // DeliveryNotificationNotSupported
)

// UnknownCode is the code of an operator that its driver does not know. The operator's own text is not kept.
const UnknownCode = "?"

// Limits of a text: the last reports of a kind, and the bytes of a code.
const (
	maxLast = 3
	maxCode = 40
)

// Event is one report.
type Event struct {
	Kind    Kind
	At      time.Time
	Outcome Outcome
	Code    string // of the operator, as its driver knows it; UnknownCode for another one, "" for none
}

// Times are the times of an entry that the text refers to.
type Times struct{ Created, Final time.Time }

// Add returns the text with another report. The oldest report of its kind is only counted if there are too many.
func (l Log) Add(t Times, e Event) Log {
	words := append(strings.Fields(string(l)), t.word(e))
	count, before := 0, 0
	for _, word := range words {
		if word[0] == byte(e.Kind) {
			count++
		}
		before += earlier(word, e.Kind)
	}
	if count <= maxLast {
		return Log(strings.Join(words, " "))
	}
	text, isOldest := strconv.Itoa(before+1)+string(rune(e.Kind)), true
	for _, word := range words {
		if word[0] == byte(e.Kind) && isOldest {
			isOldest = false
		} else if earlier(word, e.Kind) == 0 {
			text += " " + word
		}
	}
	return Log(text)
}

// Complete returns the text with the outcome of a report that was added without one. It is unchanged if it has no such
// report.
func (l Log) Complete(t Times, e Event) Log {
	words := strings.Fields(string(l))
	open := Times{Created: t.Created}.word(Event{Kind: e.Kind, At: e.At})
	if i := slices.Index(words, open); i >= 0 {
		words[i] = t.word(e)
		return Log(strings.Join(words, " "))
	}
	return l
}

// word returns the word of a report.
func (t Times) word(e Event) string {
	word := []byte{byte(e.Kind)}
	if e.At.IsZero() || !e.At.Equal(t.Final) {
		word = strconv.AppendInt(word, max(0, e.At.Sub(t.Created).Milliseconds()), 10)
	}
	if e.Outcome != NotRecorded {
		word = append(word, byte(e.Outcome))
	}
	if e.Code != "" && len(e.Code) <= maxCode && !strings.Contains(e.Code, " ") {
		word = append(append(word, ':'), e.Code...)
	}
	return string(word)
}

// earlier returns how many earlier reports of a kind a word counts; 0 for another word.
func earlier(word string, kind Kind) int {
	number, isNumber := strings.CutSuffix(word, string(rune(kind)))
	if count, err := strconv.Atoi(number); isNumber && err == nil && count > 0 {
		return count
	}
	return 0
}

// Events returns the reports in the order in which they were added. A word of a later version is left out.
func (l Log) Events(t Times) []Event {
	var events []Event
	for word := range strings.FieldsSeq(string(l)) {
		if e, ok := t.event(word); ok {
			events = append(events, e)
		}
	}
	return events
}

// Earlier returns how many reports of a kind came before those that Events returns.
func (l Log) Earlier(kind Kind) int {
	for word := range strings.FieldsSeq(string(l)) {
		if count := earlier(word, kind); count > 0 {
			return count
		}
	}
	return 0
}

// event reads the word of a report.
func (t Times) event(word string) (Event, bool) {
	rest, code, _ := strings.Cut(word, ":")
	if rest == "" {
		return Event{}, false
	}
	e := Event{Kind: Kind(rest[0]), At: t.Final, Code: code}
	rest = rest[1:]
	offset := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	if offset != "" {
		milliseconds, err := strconv.ParseInt(offset, 10, 64)
		if err != nil || milliseconds > maxOffset {
			return Event{}, false
		}
		e.At = t.Created.Add(time.Duration(milliseconds) * time.Millisecond)
	}
	if rest = rest[len(offset):]; rest != "" {
		e.Outcome = Outcome(rest[0])
	}
	return e, len(rest) <= 1 && e.Kind > '9'
}

// maxOffset bounds a report's time after the creation, in milliseconds: a hundred years.
const maxOffset = 100 * 366 * 24 * 60 * 60 * 1000
