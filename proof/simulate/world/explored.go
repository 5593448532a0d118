package world

import (
	"time"

	"mobilegateway/proof/simulate/check"
	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	model "mobilegateway/world/dynamodb"
)

// Explored is a world whose order of events a search decides.
type Explored struct {
	world *World
	*check.Checker
}

// NewExplored makes a world without a tape. Call it in a bubble of testing/synctest.
func NewExplored() (*deployment.Deployment, Explored) {
	w := New(tape.FromChoices(nil))
	return w.Deployment, Explored{w, w.Check}
}

// Shop is the merchant of the order.
func (e Explored) Shop() *fixture.Shop { return e.world.Merchants.Shops[0] }

// Add makes an order.
func (e Explored) Add(s *fixture.Shop, function string, number int) *merchants.Order {
	return e.world.Merchants.Add(s, function, number)
}

// Take takes in an order that was made before.
func (e Explored) Take(o *merchants.Order) *merchants.Order { return e.world.Merchants.Take(o) }

// Operator is the model of an operator's host, nil for none.
func (e Explored) Operator(host string) *outside.Operator { return e.world.Operators.OfHost(host) }

// Server is a merchant's server, nil for none.
func (e Explored) Server(host string) *outside.MerchantServer { return e.world.Merchants.Servers[host] }

// Follow follows the changes since the last step.
func (e Explored) Follow(wake func(*model.Change)) { e.world.Stream.Follow(wake) }

// Observe also lets the stream and the schedule continue.
func (e Explored) Observe() error { return e.world.Observe() }

// Resume lets everything continue.
func (e Explored) Resume(
	records []*model.Change, o *outside.Operator, callbacks []outside.Callback, hasAllRounds bool,
) {
	w := e.world
	if hasAllRounds {
		w.PlanRounds()
	} else {
		w.Kernel.At(w.LastRound, "round of the engineer", w.Engineers.Round)
	}
	for _, record := range records {
		w.Stream.Queue(record)
	}
	for _, callback := range callbacks {
		w.Operators.CallBack(o, callback)
	}
	if o != nil {
		w.Operators.Schedule(o)
	}
	w.Schedule.Next()
}

// Retry requests an order again after a wait.
func (e Explored) Retry(o *merchants.Order, wait time.Duration) {
	e.world.Kernel.At(time.Now().Add(wait), "retry", func() { e.world.Merchants.Request(o, merchants.OwnBody) })
}
