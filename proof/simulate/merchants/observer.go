// Package merchants runs the merchants: the clients that request, retry and read, and the servers that get
// notifications.
package merchants

import (
	"net/url"

	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/outside"
)

// Observer learns what merchants do and get.
type Observer interface {
	// Confide receives texts, and ConfideNumber telephone numbers, that no log line may contain.
	Confide(texts ...string)
	ConfideNumber(number string)
	// Responded receives the end of each request of an order, before the order has its response.
	Responded(o *Order, made *Call)
	// HasRead receives the end of each read of a status.
	HasRead(o *Order, read Read)
	// HasResent receives the response to a resend of a notification.
	HasResent(o *Order, made Resend)
	// RespondedToOther receives the response to a request for an order with the token of another merchant.
	RespondedToOther(o *Order, response outside.Response)
	// GotToken receives a merchant that got a token. reason is why it had to be refused, "" if it had not.
	GotToken(s *fixture.Shop, reason string)
	// Notified receives each notification that reached a merchant's server. NotifiedDenied receives the address of one
	// that went elsewhere.
	Notified(s *fixture.Shop, receipt outside.Receipt)
	NotifiedDenied(address *url.URL)
}
