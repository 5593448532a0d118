package sandbox

// behaviour is one row of the outcomes on demand: how the first call under a key is answered, and what happens then.
type behaviour struct {
	// First is the manner of the first call's answer, a word of the manners table; "" answers well.
	First string
	// Refusal is the message id of a refusal at once (charge, SMS); "" for none.
	Refusal string
	// Final is the status a payment comes to: "" is successful, pending stays so for ever. Why is its statusDescription.
	Final string
	Why   string
	// Tell are the statuses of the callbacks, in the order in which they are sent.
	Tell []string
	// Early sends the callbacks before the operator's own answer.
	Early bool
	// NoEffect is an SMS that is accepted and never sent.
	NoEffect bool
}

// Statuses of a payment and of an SMS's delivery as the sandbox says them.
const (
	pending    = "pending"
	successful = "successful"
	failed     = "failed"
	cancelled  = "cancelled"

	toNetwork  = "DeliveredToNetwork"
	toTerminal = "DeliveredToTerminal"
	impossible = "DeliveryImpossible"
	waiting    = "MessageWaiting"
)

// The statusDescriptions of payments that fail, which the page has words for.
const (
	whyRefused = "Payment operation refused by user"
	whyFunds   = "User has insufficient credit for transaction"
)

// row is the behaviours of one ending, by operation; nil behaves as any other number.
type row struct {
	digits           string
	pay, charge, sms *behaviour
}

// rows are the outcomes on demand, in the order of the table that is the contract (decision "sandbox"). A row names only
// what differs from an ordinary number: see usual.
func rows() []row {
	three := []string{successful, successful, successful}
	first := func(manner string) *behaviour { return &behaviour{First: manner} }
	return []row{
		{"1001", &behaviour{Final: failed, Why: whyRefused, Tell: []string{failed}},
			&behaviour{Refusal: "POL0253"},
			&behaviour{Tell: []string{impossible}, NoEffect: true}},
		{"1002", &behaviour{Final: failed, Why: whyFunds, Tell: []string{failed}},
			&behaviour{Refusal: "POL1000"},
			&behaviour{Refusal: "POL0001"}},
		{"1003", &behaviour{Final: pending, Tell: []string{}}, nil, &behaviour{Tell: []string{}}},
		{"1004", first("slow"), first("slow"), first("slow")},
		{"1005", first("cut"), first("cut"), first("cut")},
		{"1006", &behaviour{Tell: three}, nil,
			&behaviour{Tell: []string{toNetwork, toNetwork, toNetwork, toTerminal, toTerminal, toTerminal}}},
		{"1007", &behaviour{Tell: []string{successful, failed}}, nil, &behaviour{Tell: []string{toTerminal, toNetwork}}},
		{"1008", &behaviour{Early: true}, nil, &behaviour{Early: true}},
		{"1009", first("down"), first("down"), first("down")},
		{"1010", first("garbage"), first("garbage"), first("garbage")},
		{"1011", &behaviour{Tell: []string{}}, nil, nil},
	}
}

// behaviourOf is what happens to the paying party with these last four digits.
func behaviourOf(kind, digits string) behaviour {
	for _, r := range rows() {
		if r.digits != digits {
			continue
		}
		found := map[string]*behaviour{kindPayment: r.pay, kindCharge: r.charge, kindSMS: r.sms}[kind]
		if found != nil {
			return usual(kind, *found)
		}
	}
	return usual(kind, behaviour{})
}

// usual fills what a row leaves open with what happens to any other number.
func usual(kind string, b behaviour) behaviour {
	switch kind {
	case kindPayment:
		if b.Final == "" {
			b.Final = successful
		}
		if b.Tell == nil {
			b.Tell = []string{b.Final}
		}
	case kindSMS:
		if b.Tell == nil {
			b.Tell = []string{toNetwork, toTerminal}
		}
	}
	if b.Why == "" && b.Final == successful {
		b.Why = "Payment was successful"
	}
	return b
}
