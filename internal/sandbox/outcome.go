package sandbox

import "cmp"

// behaviour is one cell of the table of outcomes on demand.
type behaviour struct {
	// FirstResponse names the response mode of the first call under a key; "" is the correct response.
	FirstResponse string
	// RefusalID is the message id of a refusal of a charge or an SMS, or "".
	RefusalID string
	// FinalStatus is the status that a payment gets. A payment with pending stays pending.
	FinalStatus       string
	StatusDescription string
	// CallbackStatuses are the statuses of the callbacks, in the order in which they are sent.
	CallbackStatuses []string
	// CallbacksFirst sends the callbacks before the response.
	CallbacksFirst bool
	// NeverSent is an SMS that is accepted and never sent.
	NeverSent bool
}

// The statusDescriptions of payments that fail. The page has texts for them.
const (
	descriptionRefused    = "Payment operation refused by user"
	descriptionLowBalance = "User has insufficient credit for transaction"
)

// outcomes are the outcomes on demand by the payer's last four digits and the kind (decision "sandbox"). They contain
// only the differences from an ordinary number: see behaviourFor.
var outcomes = map[string]map[string]behaviour{
	"1001": {
		kindPayment: {FinalStatus: failed, StatusDescription: descriptionRefused},
		kindCharge:  {RefusalID: "POL0253"},
		kindSMS:     {CallbackStatuses: []string{deliveryImpossible}, NeverSent: true},
	},
	"1002": {
		kindPayment: {FinalStatus: failed, StatusDescription: descriptionLowBalance},
		kindCharge:  {RefusalID: "POL1000"},
		kindSMS:     {RefusalID: "POL0001"},
	},
	"1003": {
		kindPayment: {FinalStatus: pending, CallbackStatuses: []string{}},
		kindSMS:     {CallbackStatuses: []string{}},
	},
	"1004": firstResponse("slow"),
	"1005": firstResponse("cut"),
	"1006": {
		kindPayment: {CallbackStatuses: []string{successful, successful, successful}},
		kindSMS: {CallbackStatuses: []string{
			deliveredToNetwork, deliveredToNetwork, deliveredToNetwork,
			deliveredToTerminal, deliveredToTerminal, deliveredToTerminal,
		}},
	},
	"1007": {
		kindPayment: {CallbackStatuses: []string{successful, failed}},
		kindSMS:     {CallbackStatuses: []string{deliveredToTerminal, deliveredToNetwork}},
	},
	"1008": {
		kindPayment: {CallbacksFirst: true},
		kindSMS:     {CallbacksFirst: true},
	},
	"1009": firstResponse("down"),
	"1010": firstResponse("garbage"),
	"1011": {
		kindPayment: {CallbackStatuses: []string{}},
	},
}

func firstResponse(mode string) map[string]behaviour {
	b := behaviour{FirstResponse: mode}
	return map[string]behaviour{kindPayment: b, kindCharge: b, kindSMS: b}
}

// behaviourFor returns the outcome of a payer with these last four digits.
func behaviourFor(kind, digits string) behaviour {
	b := outcomes[digits][kind]
	var ordinaryStatuses []string
	switch kind {
	case kindPayment:
		b.FinalStatus = cmp.Or(b.FinalStatus, successful)
		ordinaryStatuses = []string{b.FinalStatus}
	case kindSMS:
		ordinaryStatuses = []string{deliveredToNetwork, deliveredToTerminal}
	}
	if b.CallbackStatuses == nil {
		b.CallbackStatuses = ordinaryStatuses
	}
	if b.FinalStatus == successful {
		b.StatusDescription = "Payment was successful"
	}
	return b
}
