package attention

import (
	"time"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/ledger"
)

// The kinds of things that wait for a person.
const (
	waitsUnknown     = "unknown-outcome"
	waitsConflict    = "conflict"
	waitsDeadLetter  = "dead-letter"
	waitsEndpoint    = "endpoint-disabled"
	waitsLookups     = "lookups-fail"
	waitsCredentials = "credentials"
	waitsKey         = "key-due"
	waitsCallback    = "callback-lost"
)

// View is one thing that waits for a person, and the command that ends it.
type View struct {
	Since    time.Time `json:"since,omitzero" col:"SINCE"`
	What     string    `json:"what" col:"WHAT"`
	Merchant string    `json:"merchant,omitempty" col:"MERCHANT"`
	Subject  string    `json:"subject" col:"SUBJECT"`
	Detail   string    `json:"detail,omitempty" col:"DETAIL"`
	Command  string    `json:"command" col:"COMMAND"`
}

type attention struct {
	*session.Session
	views []View
	// closed is when people closed transactions and changed the operators' credentials, by the audit record's subject.
	closed      map[string]time.Time
	callbacks   *keyring.Ring           // nil without a key
	deadLetters map[string][]deadLetter // by the merchant's name
	parked      map[endpointKey]int
	accounts    map[accounts.Ref]*accountUse
}

// add adds a line. command has the arguments of the command that ends it.
func (a *attention) add(v View, command ...string) {
	v.Command = a.Command(command...)
	a.views = append(a.views, v)
}

// closeAction is the action of an audit record that closes a transaction's conflicts and dead letters.
const closeAction = "close attention"

func closeSubject(e *ledger.Entry) string { return e.Key.String() + " of " + e.Merchant.Name }

type endpointKey struct{ merchantID, url string }

// deadLetter is a dead letter of a transaction, with the time of its status.
type deadLetter struct {
	id string
	at time.Time
}

// accountUse is what the stored transactions show about an account.
type accountUse struct {
	acceptedAt time.Time   // the last call that the operator did not reject, or change of the credentials
	rejected   []time.Time // the calls that it rejected because of our credentials
	workedAt   time.Time   // the last proof that the operator processes calls: one that it decided, or a final status
	failed     []time.Time // the calls that it did not process
	live       int         // as operator route set counts them
	oldest     *ledger.Entry
}
