package ledger

// State is where our call of the operator is.
type State string

// The states. Reserved already means "may have been sent".
const (
	Reserved State = "reserved" // an attempt owns it until LeaseUntil; after that it counts as unknown
	Done     State = "done"     // the operator applied it, or accepted it (payment)
	Refused  State = "refused"  // the operator refused it permanently
	Unknown  State = "unknown"  // it may have been applied
	Released State = "released" // it was certainly not applied; the same request may come again
)

// Status is what the merchant is notified of: a payment's status, or an SMS's delivery status. A charge has none.
type Status string

// Payment statuses (decision "pay-statuses"): pending, then exactly one of the others.
const (
	Pending    Status = "pending"
	Successful Status = "successful"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
	Expired    Status = "expired"
)

// SMS delivery statuses (OMA SMS; decision "sms-receipts").
const (
	MessageWaiting      Status = "MessageWaiting"
	DeliveredToNetwork  Status = "DeliveredToNetwork"
	DeliveredToTerminal Status = "DeliveredToTerminal"
	DeliveryUncertain   Status = "DeliveryUncertain"
	DeliveryImpossible  Status = "DeliveryImpossible"
	NotificationNotSupp Status = "DeliveryNotificationNotSupported"
)

// Statuses lists the statuses of payments and then those of SMS.
func Statuses() []Status {
	return []Status{
		Pending, Successful, Failed, Cancelled, Expired, MessageWaiting, DeliveredToNetwork, DeliveredToTerminal,
		DeliveryUncertain, DeliveryImpossible, NotificationNotSupp,
	}
}

// Final is true for the statuses that never change: a payment's except pending, and the terminal ones of an SMS.
func (s Status) Final() bool { return s.endsPayment() || s.progress() == terminal }

// endsPayment is true for the final statuses of a payment.
func (s Status) endsPayment() bool {
	return s == Successful || s == Failed || s == Cancelled || s == Expired
}

// Transition is one kind of write. The change that Book applies returns which one it was; Row describes it. The tests
// compare each write with its row: proof/kits/ledgertest the entry before and after it, proof/imports its callers.
type Transition uint8

// The writes of an entry. After NoTransition nothing is written.
const (
	NoTransition Transition = iota
	Reserve
	TakeOver
	RecordSuccess
	RecordRefusal
	RecordNotApplied
	RecordUnknown
	ReleaseUncalled
	RespondAfterResolution
	RespondAfterFinal
	StoreDriverData
	Lapse
	LeaseLookup
	RequestLookup
	EndReleasedLookups
	AddClaim
	KeepConflict
	EndPayment
	ExpirePayment
	EndNeverSent
	AddReceipt
	LeaseBinding
	RecordBinding
	LeaseDelivery
	LeaseFastDelivery
	MarkDelivered
	RecordFailedAttempt
	DeadLetter
	Park
	Unpark
	Postpone
	Reschedule
	LeaseUserSMS
	RecordUserSMS
	RecordPostAndUserSMS
	Replay
	SendNow
	Resend
	ResolveManually
	CloseUnknowable
	EndRetention
	RestoreLost
	LoseRelease
	LoseRetry
	// The writes of other items. They do not take their transition: each is the only write of its method, so the call
	// names the row. There is no entry before and after it to compare. proof/imports compares its callers.
	BindReference
	MoveDue
	BindMessage
	FindMessage
)

// Row returns the row of a transition.
func (t Transition) Row() Row { return rows[t] }

// Rows returns the rows of all transitions, in the order of their numbers.
func Rows() []Row { return rows[Reserve:] }

// Row describes one kind of write: who may make it, when, and what it may change.
type Row struct {
	Name      string
	Callers   string // the packages that name the transition, or call the method that makes the write
	Condition string // what the change itself requires, besides a Move that has the entry
	Moves     []Move // the ways of State and Status; without one both stay
	Changes   Parts
}

// Move is a way of State and Status: each is a set of their words. "absent" is before the insert, "none" without a
// Status, "terminal" any final delivery status. A dimension without a word in From may be any, one without a word in To
// stays. No move changes a final Status, or takes a delivery status back.
type Move struct{ From, To string }

// Parts is a set of parts of an entry. State and Status are in Moves. The version, its writer and time, and DueAt
// change with every write.
type Parts uint32

// The parts. OtherItem is a write of an item beside the entry.
const (
	PartRequest  Parts = 1 << iota // with merchant, route and retention
	PartOwner                      // with the lease and the times of the attempts
	PartProof                      // what the attempts proved, such as EverUnknown
	PartAttempts                   // Call.Attempts
	PartOperator                   // the operator's id, the payer, the notif_token
	PartDriverData
	PartResponse
	PartFinal // when Status became final, and why
	PartClaim
	PartConflicts
	PartPoll
	PartAddress // of the notifications
	PartOutbox
	PartDeliveries // the delivered notifications and the failed attempts
	PartReplays
	PartUserSMS
	PartManual
	PartBinding
	PartTimeline // the operator's last reports
	PartAmount
	OtherItem
)

// smsStatuses are the delivery statuses of an SMS.
const smsStatuses = "MessageWaiting DeliveredToNetwork terminal"

// rows are the writes. The table and the picture in docs/architecture.md are printed from them.
var rows = [...]Row{
	Reserve: {"W1 reserve", "shared/operation", "the key is absent, or its entry is past its retention",
		[]Move{{"absent", "reserved none pending"}}, OtherItem - 1},
	TakeOver: {"takeover", "shared/operation",
		"same merchant; no lease in force; released, with the same fingerprint or none; or unknown or lapsed, with " +
			"the same fingerprint, in the resend window. Never an unknown payment with a final Status or a stored " +
			"response, or an unknown SMS with a receipt",
		[]Move{{"reserved unknown released", "reserved"}}, PartRequest | PartAmount | PartOwner | PartProof |
			PartAttempts | PartOperator | PartPoll | PartAddress | PartManual},
	RecordSuccess: {"W2 success", "shared/operation",
		"any owner; after a final refusal only a conflict",
		[]Move{
			{"reserved unknown released done", "done"},
			{"reserved unknown released done none " + smsStatuses, "done " + smsStatuses},
			{"refused", "refused"},
		},
		PartAttempts | PartOperator | PartDriverData | PartResponse | PartFinal | PartConflicts | PartPoll |
			PartAddress | PartOutbox | PartBinding},
	RecordRefusal: {"W2 refusal", "shared/operation",
		"the owner is ours. Against a claimed or reported success it is kept as a conflict: the entry is unknown, " +
			"an SMS with a receipt is done",
		[]Move{
			{"reserved unknown", "refused"},
			{"reserved unknown pending", "refused failed"},
			{"reserved unknown none", "refused terminal"},
			{"reserved unknown", "unknown done"},
		},
		PartProof | PartAttempts | PartResponse | PartFinal | PartClaim | PartConflicts | PartPoll | PartAddress |
			PartOutbox | PartTimeline},
	RecordNotApplied: {"W2 not applied", "shared/operation",
		"the owner is ours. After an unknown attempt, a report or a claim it stays unknown",
		[]Move{{"reserved", "released done"}, {"reserved unknown", "unknown"}}, PartProof | PartAttempts | PartPoll |
			PartTimeline},
	RecordUnknown: {"W2 unknown", "shared/operation",
		"the owner is ours. With a report and a response it is done",
		[]Move{{"reserved unknown", "unknown done"}}, PartProof | PartAttempts | PartResponse | PartPoll |
			PartTimeline},
	ReleaseUncalled: {"release without a call", "shared/operation",
		"the owner is ours. The referenceCode is taken or cannot be stored, the daily amount is over its limit, or " +
			"its table fails. After an unknown attempt only if nothing was ever sent",
		[]Move{{"reserved unknown", "released unknown"}}, PartRequest | PartProof | PartAttempts | PartPoll},
	RespondAfterResolution: {"response after a manual resolution", "functions/charge",
		"on the merchant's retry with the same fingerprint: done without a response",
		[]Move{{"done", "done"}}, PartResponse},
	RespondAfterFinal: {"response after a final status", "functions/pay",
		"on the merchant's retry with the same fingerprint, on tpe and ussd: a final Status without a stored " +
			"response, no lease in force",
		[]Move{{"reserved unknown done", "done"}}, PartResponse},
	StoreDriverData: {"driver's data", "functions/pay",
		"the owner is ours, and its lease is in force ([prepare](unspecified.md#prepare))",
		[]Move{{"reserved", "reserved"}}, PartDriverData},
	Lapse: {"lapse", "functions/sweep",
		"the lease ended a minute ago. If the operator has reported, the entry is done",
		[]Move{{"reserved", "unknown done"}}, PartProof | PartAttempts | PartPoll},
	LeaseLookup: {"lease of a lookup", "functions/sweep",
		"a poll or a claim's check is due, or the listing of an unknown charge or SMS",
		nil, PartClaim | PartPoll | PartTimeline},
	RequestLookup: {"request of a lookup", "functions/notif",
		"a callback that cannot be read, of a payment without a final Status whose lookup is not due",
		[]Move{{"done unknown released pending", "pending"}}, PartPoll | PartTimeline},
	EndReleasedLookups: {"end of requested lookups", "shared/confirm",
		"a released payment without a claim, after a lookup that reported no success",
		[]Move{{"released", "released"}}, PartPoll | PartTimeline},
	AddClaim: {"claim of a status", "functions/notif",
		"a payment without a final Status; after a release only a claim of success; a claim of success is never " +
			"displaced",
		[]Move{{"reserved done unknown released pending", "pending"}}, PartOperator | PartClaim | PartConflicts |
			PartPoll | PartTimeline},
	KeepConflict: {"conflict", "shared/confirm functions/notif",
		"a report or a claim that contradicts a final Status, our amount, a release or a claim of success. Each is " +
			"kept once",
		nil, PartOperator | PartClaim | PartConflicts | PartPoll | PartTimeline},
	EndPayment: {"W3 final status", "shared/confirm functions/notif",
		"nothing final yet; amount and currency are ours, or the operator's for a restored payment without an " +
			"amount; after a release only a success. A lease in force keeps the State",
		[]Move{
			{"reserved pending", "reserved done successful failed cancelled expired"},
			{"done unknown pending", "done successful failed cancelled expired"},
			{"released pending", "done successful"},
		},
		PartOperator | PartFinal | PartClaim | PartConflicts | PartPoll | PartOutbox | PartUserSMS |
			PartTimeline | PartAmount},
	ExpirePayment: {"W3 expiry", "shared/confirm",
		"the platform's row has ExpiresPending, the lookup responded without a final status, 24 hours are over, no " +
			"claim of success",
		[]Move{{"reserved done unknown pending", "done expired"}}, PartOperator | PartFinal | PartClaim |
			PartConflicts | PartPoll | PartOutbox | PartTimeline},
	EndNeverSent: {"never sent", "shared/confirm",
		"an unknown payment without an open claim, whose platform's row says what the lookup proves " +
			"([never-sent](unspecified.md#never-sent), [prepare](unspecified.md#prepare)). Failed if the merchant " +
			"has got 201, else released. gatewayctl requires that it was so 2 minutes ago too",
		[]Move{{"unknown pending", "released"}, {"unknown pending", "done failed"}}, PartProof | PartFinal |
			PartPoll | PartOutbox | PartTimeline},
	AddReceipt: {"receipt", "functions/receipt",
		"an SMS, and the status is further on. It proves the send: an unknown, released or lapsed SMS is done",
		[]Move{
			{"reserved none " + smsStatuses, "reserved done " + smsStatuses},
			{"done unknown released none " + smsStatuses, "done " + smsStatuses},
		},
		PartFinal | PartPoll | PartOutbox | PartTimeline},
	LeaseBinding: {"lease of a binding", "functions/sweep",
		"it is due ([static-callbacks](unspecified.md#static-callbacks))",
		nil, PartBinding},
	RecordBinding: {"binding recorded", "functions/sweep", "not recorded yet; with the receipts that came first",
		[]Move{{"done none " + smsStatuses, "done " + smsStatuses}}, PartFinal | PartOutbox | PartBinding},
	LeaseDelivery: {"lease of an attempt", "functions/sweep",
		"the first notification that is not dead is due, and not parked. After 50 unrecorded attempts it is a dead " +
			"letter instead",
		nil, PartOutbox},
	LeaseFastDelivery: {"lease of a fast post", "functions/relay",
		"only for a status that another one may follow; it was never attempted nor leased, and the fast lease lasts",
		nil, PartOutbox},
	MarkDelivered: {"W4 delivered", "shared/delivery",
		"that notification is still the first, or a dead letter. The next one is due",
		nil, PartOutbox | PartDeliveries},
	RecordFailedAttempt: {"failed attempt", "shared/delivery",
		"still the first, with the same pair of attempts and unrecorded attempts",
		nil, PartOutbox | PartDeliveries},
	DeadLetter: {"dead letter", "shared/delivery",
		"as a failed attempt, and it was the last one. The next notification is due",
		nil, PartOutbox | PartDeliveries},
	Park: {"park", "shared/delivery functions/sweep",
		"after a 410, or at a disabled endpoint: the first notification is neither dead nor parked",
		nil, PartOutbox | PartDeliveries},
	Unpark: {"unpark", "functions/sweep gatewayctl/merchants", "parked, and its endpoint is enabled: due again",
		nil, PartOutbox},
	Postpone: {"postpone", "functions/sweep",
		"it is due, and something that it needs is missing: its data, its endpoint, or a slot of a slow system",
		nil, PartClaim | PartPoll | PartOutbox | PartUserSMS},
	Reschedule: {"reschedule", "functions/sweep",
		"due, although no job is due: only the due time changes, from the timers",
		nil, 0},
	LeaseUserSMS: {"lease of the payer's SMS", "functions/sweep",
		"it is due. After 50 unrecorded attempts it is unknown instead",
		nil, PartUserSMS},
	RecordUserSMS: {"payer's SMS", "shared/delivery",
		"still due, with the same pair of attempts and unrecorded attempts; sent: always",
		nil, PartUserSMS},
	RecordPostAndUserSMS: {"post and payer's SMS", "functions/relay",
		"the relay made both: the write has a result of the post, and that of the payer's SMS",
		nil, PartOutbox | PartDeliveries | PartUserSMS},
	Replay: {"replay", "gatewayctl/deliveries",
		"the entry has the notification; gatewayctl selects delivered, dead and parked ones. All that were " +
			"delivered later follow",
		nil, PartAddress | PartOutbox | PartDeliveries | PartReplays},
	SendNow: {"send now", "gatewayctl/deliveries",
		"the first notification is parked, or its next attempt is more than a minute away, and no attempt can be " +
			"in progress",
		nil, PartAddress | PartOutbox | PartDeliveries | PartReplays},
	Resend: {"resend", "functions/resend",
		"its merchant requests it: the notification is delivered or a dead letter, no other one waits, no later " +
			"status was delivered, and it was not replayed too often ([resend](unspecified.md#resend))",
		nil, PartAddress | PartOutbox | PartDeliveries | PartReplays},
	ResolveManually: {"manual resolution", "gatewayctl/transactions",
		"no lease ran in the last 2 minutes, no later attempt was made since the command read the entry, and the " +
			"outcome is uncertain. Also a payment that is pending for 24 hours, and a released one as `successful` " +
			"([unknown-by-hand](unspecified.md#unknown-by-hand))",
		[]Move{
			{"reserved done unknown released pending", "done successful failed cancelled"},
			{"reserved unknown none", "done refused"},
			{"reserved unknown none " + smsStatuses, "done " + smsStatuses},
			{"released", "released"},
		},
		PartOperator | PartResponse | PartFinal | PartClaim | PartConflicts | PartPoll | PartAddress | PartOutbox |
			PartUserSMS | PartManual},
	CloseUnknowable: {"closed as unknowable", "gatewayctl/transactions",
		"an SMS, as above; no receipt has come, and its merchant's retry is not sent any more",
		[]Move{{"reserved unknown none", "unknown"}}, PartProof | PartAttempts | PartPoll | PartManual},
	EndRetention: {"end of retention", "functions/sweep",
		"past its retention and still due: without timers it leaves the due index",
		nil, PartOwner | PartClaim | PartPoll | PartOutbox | PartUserSMS | PartBinding},
	RestoreLost: {"restored", "gatewayctl/restore",
		"the key is absent, and a log line or a merchant's list after the moment of a restore has it " +
			"([restored](unspecified.md#restored))",
		[]Move{{"absent", "unknown none pending"}}, OtherItem - 1},
	LoseRelease: {"release lost its proof", "gatewayctl/restore",
		"a log line or a merchant's list after the moment of a restore has the key of a released entry",
		[]Move{{"released", "unknown"}}, PartRequest | PartProof | PartPoll},
	LoseRetry: {"retry lost", "gatewayctl/restore",
		"a log line or a merchant's list after the moment of a restore has the key. No final Status, no lease in " +
			"force ([restored](unspecified.md#restored))",
		[]Move{{"reserved", "reserved unknown"}, {"unknown", "unknown"}},
		PartRequest | PartOwner | PartProof | PartPoll},
	BindReference: {"reference", "shared/operation gatewayctl/restore",
		"absent, expired, or it names this charge. The item maps referenceCode to the charge",
		nil, OtherItem},
	MoveDue: {"move away", "functions/sweep",
		"due, and this version cannot decode or process the entry: only `due_at`, an hour later; version and " +
			"writer stay",
		nil, OtherItem},
	BindMessage: {"bind message", "functions/sms functions/sweep",
		"the operator's id names no message yet. The item maps it to the entry",
		nil, OtherItem},
	FindMessage: {"early receipt", "functions/receipt",
		"the operator's id names no message yet. The item keeps the statuses",
		nil, OtherItem},
}

// If is the transition of a change that reports whether it changed the entry.
func (t Transition) If(changed bool) Transition {
	if !changed {
		return NoTransition
	}
	return t
}

// After is the transition of a report, or KeepConflict if the report was only kept.
func (t Transition) After(effect Effect) Transition {
	if effect == Conflicting {
		return KeepConflict
	}
	return t.If(effect == Applied)
}
