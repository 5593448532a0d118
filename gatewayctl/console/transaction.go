package console

import (
	"fmt"
	"slices"
	"time"
)

// showCommands are the words of the command that shows a transaction, by its kind.
var showCommands = map[string]string{"pay": "payment", "charge": "charge", "sms": "sms"}

// transactionPage is the data of the page of one transaction.
type transactionPage struct {
	Kind, ID string
	Result   result
	Summary  map[string]any
	Facts    []fact
	Steps    []step
	Sequence sequence
	States   stateMachine
	Path     []string // the states and statuses in their order
	Final    map[string]any
	Next     map[string]any
	Tables   []table
	Acts     []act
}

// step is one line of the timeline.
type step struct {
	At       time.Time
	Event    string
	Detail   string
	Outcome  string
	Code     string // the operator's
	Count    int64  // how many more there were before; 0 for none
	By       string
	From, To int // lanes of the picture
	Future   bool
}

var transactionFacts = []column{
	{"id", "code"}, {"merchant", "merchant"}, {"amount", "amount"}, {"msisdn", ""}, {"country", ""}, {"operator", ""},
	{"account", ""}, {"channel", ""}, {"failure_reason", "word"}, {"client_correlator", "code"},
	{"reference_code", "code"}, {"upstream_key", "code"}, {"operator_reference", "code"}, {"transaction_id", "code"},
	{"created_at", "time"}, {"first_sent_at", "time"}, {"final_at", "time"}, {"next_lookup_at", "time"},
	{"no_lookup_reason", "detail"}, {"response_status", ""}, {"ever_unknown", "word"}, {"user_sms", "word"},
	{"conflicts", ""}, {"notify_url", "code"},
}

var callColumns = []column{
	{"at", "time"}, {"seconds", ""}, {"outcome", "word"}, {"reason", "word"}, {"operator_status", ""},
	{"response_status", ""},
}

var attemptColumns = []column{
	{"at", "time"}, {"attempt", ""}, {"status", "word"}, {"result", "word"}, {"code", ""}, {"webhook_id", "code"},
}

// loadTransaction shows one transaction with its timeline, its states and its notifications.
func loadTransaction(q *query) any {
	p := transactionPage{Kind: q.form.Get("kind"), ID: q.form.Get("id")}
	command, known := showCommands[p.Kind]
	if !known {
		command, p.Kind = "payment", "pay"
	}
	var sent result
	q.parallel(2, func(i int) {
		if i == 0 {
			p.Result = q.read(command, "show", "--", p.ID)
		} else {
			sent = q.read("deliveries", "show", "--", p.ID)
		}
	})
	order, _ := p.Result.Value.(map[string]any)
	if order == nil {
		return p
	}
	p.Summary, p.Facts = order, facts(order, transactionFacts)
	p.Final, _ = order["final"].(map[string]any)
	p.Next, _ = order["next"].(map[string]any)
	p.Steps = stepsOf(order, q.now())
	p.Sequence = drawSequence(p.Steps)
	p.Path = pathOf(order)
	p.States = drawStates(p.Kind, p.Path)
	p.Tables = []table{
		listing{title: "calls", within: "call_attempts", columns: callColumns}.arrange(p.Result),
		listing{title: "notifications", within: "notifications", columns: notificationColumns[2:]}.arrange(sent),
		listing{title: "attempts", within: "attempts", columns: attemptColumns}.arrange(sent),
	}
	p.Acts = transactionActs(p.Kind, p.ID, order, sent)
	return p
}

// transactionActs are the acts that the tool may accept for a transaction. Its dry run has the decision.
func transactionActs(kind, id string, order map[string]any, sent result) (acts []act) {
	status, state := raw(order["status"]), raw(order["state"])
	if kind == "pay" && status == "pending" {
		acts = append(acts, act{"act.lookup", []string{"unknown", "resolve", "--", kind, id}, "", nil})
	}
	if state == "unknown" || kind == "pay" && status == "pending" {
		acts = append(acts, resolveAct(kind, id))
	}
	seen := map[string]bool{}
	for _, n := range list(field(sent.Value, "notifications")) {
		for _, a := range deliveryActs(id, raw(n["state"])) {
			if !seen[a.Label] {
				seen[a.Label] = true
				acts = append(acts, a)
			}
		}
		if raw(n["state"]) == "dead-letter" {
			seen["close"] = true
		}
	}
	if seen["close"] || number(order["conflicts"]) > 0 {
		acts = append(acts, act{"act.close", []string{"attention", "close", "--", kind, id}, "", nil})
	}
	return acts
}

// stepsOf returns the timeline of a transaction.
func stepsOf(order map[string]any, now time.Time) (steps []step) {
	for _, from := range list(order["timeline"]) {
		s := step{
			At: timeOf(from["at"]), Event: text(from["event"]), Detail: text(from["detail"]),
			Outcome: text(from["outcome"]), Code: text(from["operator_code"]), Count: number(from["count"]),
			By: text(from["by"]),
		}
		s.From, s.To = lanesOf(s.Event)
		s.Future = s.At.After(now)
		steps = append(steps, s)
	}
	return steps
}

// The lanes of the picture, from left to right.
const (
	laneMerchant = iota
	laneGateway
	laneOperator
	lanePerson
)

var laneNames = []string{"lane.merchant", "lane.gateway", "lane.operator", "lane.person"}

// eventLanes are the ends of the arrow of each event. An event without a row is the gateway's own.
var eventLanes = map[string][2]int{
	"request": {laneMerchant, laneGateway},
	"call":    {laneGateway, laneOperator}, "lookup": {laneGateway, laneOperator},
	"payer-sms": {laneGateway, laneOperator},
	"callback":  {laneOperator, laneGateway}, "receipt": {laneOperator, laneGateway},
	"claim": {laneOperator, laneGateway}, "conflict": {laneOperator, laneGateway},
	"response": {laneGateway, laneMerchant}, "delivery": {laneGateway, laneMerchant},
	"replay": {lanePerson, laneGateway}, "resolution": {lanePerson, laneGateway},
}

func lanesOf(event string) (from, to int) {
	ends, known := eventLanes[event]
	if !known {
		return laneGateway, laneGateway
	}
	return ends[0], ends[1]
}

// pathOf lists the states and statuses that a transaction went through, as far as its entry shows them.
func pathOf(order map[string]any) []string {
	path := []string{"reserved"}
	state, status := raw(order["state"]), raw(order["status"])
	if unknown, _ := order["ever_unknown"].(bool); unknown || state == "unknown" {
		path = append(path, "unknown")
	}
	if !slices.Contains(path, state) {
		path = append(path, state)
	}
	switch {
	case status == "":
	case raw(order["kind"]) == "pay" && status != "pending":
		path = append(path, "pending", status)
	case status == "DeliveredToTerminal" || status == "DeliveredToNetwork":
		path = append(path, "MessageWaiting")
		if status == "DeliveredToTerminal" {
			path = append(path, "DeliveredToNetwork")
		}
		path = append(path, status)
	default:
		path = append(path, status)
	}
	return slices.Compact(path)
}

// sequence is a picture of the steps: a lane for each party, and an arrow for each step.
type sequence struct {
	Width, Height int
	Lanes         []lane
	Arrows        []arrow
}

type lane struct {
	X    int
	Name string
}

type arrow struct {
	X1, X2, Y int
	Head      string // the points of the arrow's head; "" for a dot
	Label     string
	Future    bool
	Number    int
}

// The measures of the pictures, in units of their view boxes.
const (
	laneGap, laneStart, rowGap, headSize = 90, 45, 26, 5
	maxArrows                            = 60
)

func drawSequence(steps []step) sequence {
	s := sequence{Width: laneGap * len(laneNames)}
	for i, name := range laneNames {
		s.Lanes = append(s.Lanes, lane{laneStart + i*laneGap, name})
	}
	for i, from := range steps[:min(len(steps), maxArrows)] {
		y := 36 + i*rowGap
		a := arrow{
			X1: laneStart + from.From*laneGap, X2: laneStart + from.To*laneGap, Y: y, Label: from.Event, Number: i + 1,
			Future: from.Future,
		}
		switch {
		case a.X2 > a.X1:
			a.X2 -= headSize
			a.Head = headOf(a.X2, y, headSize)
		case a.X2 < a.X1:
			a.X2 += headSize
			a.Head = headOf(a.X2, y, -headSize)
		}
		s.Arrows = append(s.Arrows, a)
	}
	s.Height = 36 + len(s.Arrows)*rowGap
	return s
}

// headOf are the corners of an arrow's head at a point. A negative length points to the left.
func headOf(x, y, length int) string {
	return fmt.Sprintf("%d,%d %d,%d %d,%d", x-length, y-headSize, x+length, y, x-length, y+headSize)
}

// stateMachine is a picture of the states of a kind, with the path that one transaction took.
type stateMachine struct {
	Height int
	Nodes  []node
	Edges  []edge
}

type node struct {
	Name string
	X, Y int
	On   bool
	Last bool
}

type edge struct {
	X1, Y1, X2, Y2 int
	On             bool
}

// stateNodes are the places of the states: those of our call, and below them the statuses of each kind.
var stateNodes = map[string][]node{
	"": {
		{Name: "reserved", X: 45, Y: 60}, {Name: "unknown", X: 150, Y: 20}, {Name: "done", X: 270, Y: 20},
		{Name: "refused", X: 270, Y: 60}, {Name: "released", X: 270, Y: 100},
	},
	"pay": {
		{Name: "pending", X: 150, Y: 170}, {Name: "successful", X: 270, Y: 140}, {Name: "failed", X: 270, Y: 170},
		{Name: "cancelled", X: 270, Y: 200}, {Name: "expired", X: 270, Y: 230},
	},
	"sms": {
		{Name: "MessageWaiting", X: 60, Y: 150}, {Name: "DeliveredToNetwork", X: 200, Y: 150},
		{Name: "DeliveredToTerminal", X: 200, Y: 190}, {Name: "DeliveryImpossible", X: 60, Y: 190},
		{Name: "DeliveryUncertain", X: 60, Y: 230}, {Name: "DeliveryNotificationNotSupported", X: 200, Y: 230},
	},
}

// stateEdges are the transitions that the picture shows, by the names of their ends.
var stateEdges = map[string][][2]string{
	"": {
		{"reserved", "unknown"}, {"reserved", "done"}, {"reserved", "refused"}, {"reserved", "released"},
		{"unknown", "done"}, {"unknown", "refused"}, {"unknown", "released"},
	},
	"pay": {
		{"pending", "successful"}, {"pending", "failed"}, {"pending", "cancelled"}, {"pending", "expired"},
	},
	"sms": {
		{"MessageWaiting", "DeliveredToNetwork"}, {"DeliveredToNetwork", "DeliveredToTerminal"},
		{"MessageWaiting", "DeliveryImpossible"},
	},
}

func drawStates(kind string, path []string) stateMachine {
	m := stateMachine{Height: 120}
	nodes := map[string]node{}
	for _, group := range []string{"", kind} {
		for _, n := range stateNodes[group] {
			n.On = slices.Contains(path, n.Name)
			n.Last = n.On && path[len(path)-1] == n.Name
			nodes[n.Name] = n
			m.Nodes, m.Height = append(m.Nodes, n), max(m.Height, n.Y+20)
		}
	}
	for _, group := range []string{"", kind} {
		for _, ends := range stateEdges[group] {
			from, to := nodes[ends[0]], nodes[ends[1]]
			at := slices.Index(path, ends[0])
			isTaken := at >= 0 && at+1 < len(path) && path[at+1] == ends[1]
			m.Edges = append(m.Edges, edge{from.X, from.Y, to.X, to.Y, isTaken})
		}
	}
	slices.SortStableFunc(m.Edges, func(a, b edge) int { // those of the path are drawn over the others
		switch {
		case a.On == b.On:
			return 0
		case a.On:
			return 1
		}
		return -1
	})
	return m
}
