// Package check checks the invariants of a history. docs/reliability.md lists them.
package check

import (
	"fmt"
	"strings"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/engineers"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/operators"
	"mobilegateway/shared/ledger"
)

// invariant is an invariant: its number and its sentences in docs/reliability.md, with a colon between them.
type invariant string

// base has the parts of a history that the invariants read.
type base struct {
	*deployment.Deployment
	operators *operators.Operators
	merchants *merchants.Merchants
	engineers *engineers.Engineers
}

// fail reports a violation of an invariant, and quotes it.
func (b *base) fail(broken invariant, format string, values ...any) {
	number, sentences, _ := strings.Cut(string(broken), ": ")
	b.Fail("invariant %s: %s (%s)", number, fmt.Sprintf(format, values...), sentences)
}

// reusesKeys reports whether the key of a kind may be used again within the history, because its entry expires.
func (b *base) reusesKeys(function string) bool {
	return function == deployment.SMS && b.SMSRetention != 0
}

// transition is a change of an entry, and the instance that made it.
type transition struct {
	key           string
	before, after *ledger.Entry
	writer        *deployment.Instance
}

// isLapse reports whether the sweep marked a reservation as unknown.
func (t transition) isLapse() bool {
	return t.before.State == ledger.Reserved && t.after.State == ledger.Unknown && t.writer.Is(deployment.Sweep)
}

// isTaken reports whether a retry took a reservation over.
func (t transition) isTaken() bool {
	return t.before.State == ledger.Reserved && t.after.State == ledger.Reserved && t.before.Owner != t.after.Owner
}
