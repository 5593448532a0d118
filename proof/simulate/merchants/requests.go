package merchants

import (
	"encoding/json"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
)

// retryWaits are the waits of a client between two requests.
var retryWaits = []time.Duration{
	2 * time.Second, 0, 30 * time.Second, 5 * time.Minute, time.Hour, 20 * time.Hour, 26 * time.Hour,
}

// maxRequests bounds the requests of one order.
const maxRequests = 6

// newEvent makes the event of a request. Every second request has the merchant's new token, if there is one.
func (m *Merchants) newEvent(o *Order, body int) (event []byte, token string) {
	token = m.Account(o.Shop).Token
	switch {
	case token != "" && len(o.Calls)%2 == 0 && body == OwnBody:
		return o.Wanted.Event(token), token
	case body == OwnBody:
		return o.event, o.Shop.Token
	}
	return o.otherBody, o.Shop.Token
}

// Request sends a request of an order. The merchant repeats it until it knows the outcome, or gives up.
func (m *Merchants) Request(o *Order, body int) {
	if o.isDropped {
		return
	}
	m.Counts.Requests++
	own := body == OwnBody
	m.Logf("%s requests %s %d (own body: %v)", o.Shop.Name, o.Function, o.Number, own)
	made := &Call{Body: body, Start: m.Kernel.Steps(), IsLost: true}
	o.Calls = append(o.Calls, made)
	event, token := m.newEvent(o, body)
	refusal := m.refusalSince(o.Shop, token)
	m.Invoke(o.Function, event, func(r deployment.Result) {
		lost := r.Lost || m.HappensNow("response lost", m.Rates.LostResponse)
		response, _ := m.ResponseOf(o.Function, r)
		if lost && !r.Lost {
			m.Count("response lost")
		}
		m.Logf("%s %s %d: response %d %s, lost %v", o.Shop.Name, o.Function, o.Number, response.Status,
			response.MessageID, lost)
		made.End, made.HasCome, made.IsLost, made.Response = m.Kernel.Steps(), !r.Lost, lost, response
		made.Refusal, made.By = refusal(), r.By
		m.observer.Responded(o, made)
		if !lost && own {
			o.Responses = append(o.Responses, response)
			if m.Visit != nil {
				m.Visit(o.Wanted.Payer, response.Body)
			}
		}
		if own && (lost || needsRetry(response)) && len(o.Calls) < maxRequests {
			wait := tape.Draw(m.Tape, "wait before the retry", retryWaits...)
			m.Kernel.At(time.Now().Add(wait), "retry", func() { m.Request(o, body) })
		}
	})
}

// needsRetry reports whether a client sends the request again: the outcome is unknown, or the gateway requests it.
func needsRetry(r outside.Response) bool {
	return r.Status >= 500 || r.Status == 429 || r.Status == 409 && r.RetryAfter != ""
}

// RequestToken lets a merchant get a short-lived token, which half of its next requests then have.
func (m *Merchants) RequestToken(s *fixture.Shop) {
	refusal := m.refusalSince(s, s.ClientSecret)
	m.Invoke(deployment.Token, outside.TokenEvent(s.Profile.ID, s.ClientSecret), func(r deployment.Result) {
		response, _ := m.ResponseOf(deployment.Token, r)
		if response.Status != 200 {
			return
		}
		var issued struct {
			AccessToken string `json:"access_token"`
		}
		if err := json.Unmarshal([]byte(response.Body), &issued); err != nil {
			m.Fail("read a token: %s", err)
			return
		}
		m.observer.Confide(issued.AccessToken)
		m.observer.GotToken(s, refusal())
		m.useShortLived(s, issued.AccessToken)
	})
}
