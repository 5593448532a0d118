package deployment

import (
	"cmp"
	"time"

	"mobilegateway/functions/charge"
	"mobilegateway/functions/notif"
	"mobilegateway/functions/pay"
	"mobilegateway/functions/receipt"
	"mobilegateway/functions/relay"
	"mobilegateway/functions/resend"
	"mobilegateway/functions/sms"
	"mobilegateway/functions/status"
	"mobilegateway/functions/sweep"
	"mobilegateway/functions/token"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/shared/wiring"
)

// The functions, and the program of engineers.
const (
	Charge   = "charge"
	Pay      = "pay"
	SMS      = "sms"
	Notif    = "notif"
	Receipt  = "receipt"
	Status   = "status"
	Token    = "token"
	Resend   = "resend"
	Relay    = "relay"
	Sweep    = "sweep"
	Engineer = "gatewayctl"
)

// DefaultTimeout is the timeout of most functions.
const DefaultTimeout = 20 * time.Second

// timeouts are those of template.yaml.
var timeouts = map[string]time.Duration{Sweep: time.Minute}

// Timeout is the timeout of a function.
func Timeout(function string) time.Duration { return cmp.Or(timeouts[function], DefaultTimeout) }

// constructors build the functions as they ship.
var constructors = map[string]func(*wiring.Dependencies) (wiring.Handler, error){
	Charge: charge.New, Pay: pay.New, SMS: sms.New, Notif: notif.New, Receipt: receipt.New, Status: status.New,
	Token: token.New, Resend: resend.New, Relay: relay.New, Sweep: sweep.New,
}

// NewHandler builds a function.
func NewHandler(function string, parts *wiring.Dependencies) wiring.Handler {
	return fixture.Must(constructors[function](parts))
}
