package merchants

import (
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/tape"
)

// Draw draws an order, and schedules its first request and its duplicates.
func (m *Merchants) Draw(number int, length time.Duration) {
	m.DrawOf(tape.Draw(m.Tape, "kind of order", deployment.Charge, deployment.Pay, deployment.SMS), number, length)
}

// DrawOf draws an order of one function.
func (m *Merchants) DrawOf(function string, number int, length time.Duration) {
	m.DrawOfShop(tape.Draw(m.Tape, "shop", m.Shops...), function, number, length)
}

// DrawOfShop draws an order of one function and merchant.
func (m *Merchants) DrawOfShop(s *fixture.Shop, function string, number int, length time.Duration) {
	if m.HasDeniedAddresses && m.Tape.Choose("denied address", 2) == 1 {
		denied, addresses := *s, deniedAddresses
		if function == deployment.Pay {
			addresses = append(addresses, foreignAddresses...)
		}
		denied.NotifyURL = tape.Draw(m.Tape, "address", addresses...)
		s = &denied
	}
	o := m.Add(s, function, 10*number+m.Tape.Choose("content", 10))
	o.Start = history.Start.Add(tape.Draw(m.Tape, "start", 0, length/4, length/2, length*3/4))
	o.Start = o.Start.Add(m.DrawSecond())
	m.Schedule(o, "order")
	if m.Kinds.SharedKeys && function != deployment.Pay && o.Number%10 >= firstSharedKey {
		twin := m.Add(m.other(s), function, o.Number)
		twin.Start = o.Start
		m.Schedule(twin, "order under the same key")
	}
	m.DrawDuplicates(o, OwnBody, OwnBody, OwnBody, AnotherBody)
}

// DrawSecond draws the second within a minute at which an order starts.
func (m *Merchants) DrawSecond() time.Duration {
	return time.Duration(m.Tape.Choose("second of the start", 60)) * time.Second
}

// Schedule schedules the first request of an order.
func (m *Merchants) Schedule(o *Order, name string) {
	m.Kernel.At(o.Start, name, func() { m.Request(o, OwnBody) })
}

// DrawDuplicates draws when an order is requested once more, each time with one of some bodies.
func (m *Merchants) DrawDuplicates(o *Order, bodies ...int) {
	for range m.Tape.Choose("duplicates", 3) {
		body := tape.Draw(m.Tape, "another body", bodies...)
		at := o.Start.Add(tape.Draw(m.Tape, "time of the duplicate", retryWaits...))
		m.Kernel.At(at, "duplicate", func() { m.Request(o, body) })
	}
}

// firstSharedKey is the last digit of an order's number from which another merchant has a charge or an SMS under the
// same clientCorrelator and referenceCode. A charge with the digit 9 has no clientCorrelator.
const firstSharedKey = 8

// deniedAddresses are addresses to which the gateway must never send a notification. foreignAddresses are those to
// which it must send no notification of a payment: their hosts are not registered.
var (
	deniedAddresses = []string{
		"https://169.254.169.254/latest/meta-data", "https://127.0.0.1/", "https://[::1]/n", "https://10.0.0.7/n",
		"http://OpenShop.example.com/notify", "https://OpenShop.example.com@10.0.0.7/n", "https://localhost/n",
		"https://[::ffff:10.0.0.7]/n", "https://OpenShop.example.com:8443/notify", "https://2130706433/n",
	}
	foreignAddresses = []string{
		"https://other.example.com/n", "https://OpenShop.example.com.evil.example.net/n",
	}
)
