package sandbox

// behaviour is one row of the outcomes on demand: how the first call under a key is answered, and what happens then.
type behaviour struct {
	// FirstResponse is the manner of the first call's answer, a word of the manners table; "" answers well.
	FirstResponse string
	// RefusalID is the message id of a refusal at once (charge, SMS); "" for none.
	RefusalID string
	// FinalStatus is the status a payment comes to: "" is successful, pending stays so for ever. Why is its statusDescription.
	FinalStatus       string
	StatusDescription string
	// CallbackStatuses are the statuses of the callbacks, in the order in which they are sent.
	CallbackStatuses []string
	// CallbacksFirst sends the callbacks before the operator's own answer.
	CallbacksFirst bool
	// NeverSent is an SMS that is accepted and never sent.
	NeverSent bool
}

// Statuses of a payment and of an SMS's delivery as the sandbox says them.
const (
	pending    = "pending"
	successful = "successful"
	failed     = "failed"
	cancelled  = "cancelled"

	deliveredToNetwork  = "DeliveredToNetwork"
	deliveredToTerminal = "DeliveredToTerminal"
	deliveryImpossible  = "DeliveryImpossible"
	messageWaiting      = "MessageWaiting"
)

// The statusDescriptions of payments that fail, which the page has words for.
const (
	descriptionRefused  = "Payment operation refused by user"
	descriptionNoCredit = "User has insufficient credit for transaction"
)

// outcomeRow is the behaviours of one ending, by operation; nil behaves as any other number.
type outcomeRow struct {
	digits           string
	pay, charge, sms *behaviour
}

// outcomeTable are the outcomes on demand, in the order of the table that is the contract (decision "sandbox"). A row names only
// what differs from an ordinary number: see usual.
func outcomeTable() []outcomeRow {
	three := []string{successful, successful, successful}
	first := func(manner string) *behaviour { return &behaviour{FirstResponse: manner} }
	return []outcomeRow{
		{"1001", &behaviour{FinalStatus: failed, StatusDescription: descriptionRefused, CallbackStatuses: []string{failed}},
			&behaviour{RefusalID: "POL0253"},
			&behaviour{CallbackStatuses: []string{deliveryImpossible}, NeverSent: true}},
		{"1002", &behaviour{FinalStatus: failed, StatusDescription: descriptionNoCredit, CallbackStatuses: []string{failed}},
			&behaviour{RefusalID: "POL1000"},
			&behaviour{RefusalID: "POL0001"}},
		{"1003", &behaviour{FinalStatus: pending, CallbackStatuses: []string{}}, nil, &behaviour{CallbackStatuses: []string{}}},
		{"1004", first("slow"), first("slow"), first("slow")},
		{"1005", first("cut"), first("cut"), first("cut")},
		{"1006", &behaviour{CallbackStatuses: three}, nil,
			&behaviour{CallbackStatuses: []string{deliveredToNetwork, deliveredToNetwork, deliveredToNetwork, deliveredToTerminal, deliveredToTerminal, deliveredToTerminal}}},
		{"1007", &behaviour{CallbackStatuses: []string{successful, failed}}, nil, &behaviour{CallbackStatuses: []string{deliveredToTerminal, deliveredToNetwork}}},
		{"1008", &behaviour{CallbacksFirst: true}, nil, &behaviour{CallbacksFirst: true}},
		{"1009", first("down"), first("down"), first("down")},
		{"1010", first("garbage"), first("garbage"), first("garbage")},
		{"1011", &behaviour{CallbackStatuses: []string{}}, nil, nil},
	}
}

// behaviourFor is what happens to the paying party with these last four digits.
func behaviourFor(kind, digits string) behaviour {
	for _, r := range outcomeTable() {
		if r.digits != digits {
			continue
		}
		found := map[string]*behaviour{kindPayment: r.pay, kindCharge: r.charge, kindSMS: r.sms}[kind]
		if found != nil {
			return completeBehaviour(kind, *found)
		}
	}
	return completeBehaviour(kind, behaviour{})
}

// completeBehaviour fills what a row leaves open with what happens to any other number.
func completeBehaviour(kind string, b behaviour) behaviour {
	switch kind {
	case kindPayment:
		if b.FinalStatus == "" {
			b.FinalStatus = successful
		}
		if b.CallbackStatuses == nil {
			b.CallbackStatuses = []string{b.FinalStatus}
		}
	case kindSMS:
		if b.CallbackStatuses == nil {
			b.CallbackStatuses = []string{deliveredToNetwork, deliveredToTerminal}
		}
	}
	if b.StatusDescription == "" && b.FinalStatus == successful {
		b.StatusDescription = "Payment was successful"
	}
	return b
}
