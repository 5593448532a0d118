package operators

import (
	"net/http"
	"slices"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/mirror"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/ledger"
)

// Operators are all operators of a history.
type Operators struct {
	*Models
	// Platforms is nil but in a history of platforms.
	Platforms *Platforms
}

// New makes the operators, and lets them serve the deployment's requests.
func New(d *deployment.Deployment, observer Observer) *Operators {
	o := &Operators{Models: newModels(&gateway{d, observer})}
	d.Operators = o.serve
	return o
}

// AddPlatforms adds the platforms. rate is that of their faults, per mille.
func (o *Operators) AddPlatforms(rate int, isSmooth bool) {
	o.Platforms = newPlatforms(o.gateway, rate, isSmooth)
}

func (o *Operators) serve(request *http.Request, body []byte) outside.Exchange {
	if o.Platforms != nil && request.URL.Host == platformHost {
		return o.Platforms.serve(request, body)
	}
	return o.Models.serve(request, body)
}

// Visit lets a payer use the page of a platform that the merchant got in a response, if there is one.
func (o *Operators) Visit(payer, response string) {
	if o.Platforms != nil {
		o.Platforms.visit(payer, response)
	}
}

// IsSmooth reports whether this is a history of platforms without faults.
func (o *Operators) IsSmooth() bool { return o.Platforms != nil && o.Platforms.IsSmooth }

// EffectOf returns the effect of an entry's key.
func (o *Operators) EffectOf(e *ledger.Entry) (outside.Effect, bool) {
	if o.isPlatformOf(e) {
		effect, found := o.Platforms.requests.effects[e.Route.UpstreamKey]
		return effect, found
	}
	m := o.Model(e.Route.Operator)
	if m == nil {
		return outside.Effect{}, false
	}
	return m.EffectOf(mirror.EffectKind(e), e.Route.UpstreamKey)
}

// isPlatformOf reports whether an entry is pinned to a platform.
func (o *Operators) isPlatformOf(e *ledger.Entry) bool {
	_, found := RowOf(e)
	return found && o.Platforms != nil
}

// HasEffect reports whether an operator has applied an entry: since it was created, because an operator may know its
// key from an entry before.
func (o *Operators) HasEffect(e *ledger.Entry) bool {
	effect, found := o.EffectOf(e)
	return found && !effect.LastAt.Before(e.CreatedAt.Add(-history.MaxSkew))
}

// HasLied reports whether an operator has lied about a key.
func (o *Operators) HasLied(key string) bool {
	return slices.ContainsFunc(o.Names, func(name string) bool { return o.Model(name).LiedAbout(key) })
}

// FinalStatus returns the true final status of a payment and its time, also if the time is in the future. It returns
// false if there is none.
func (o *Operators) FinalStatus(e *ledger.Entry) (status string, at time.Time, found bool) {
	return o.Model(e.Route.Operator).FinalStatus(e.Route.UpstreamKey)
}

// IsPayersRefusal reports whether a payment fails because its payer refuses it.
func (o *Operators) IsPayersRefusal(e *ledger.Entry) bool {
	return !o.isPlatformOf(e) && o.Model(e.Route.Operator).IsPayersRefusal(e.Route.UpstreamKey)
}

// Truth is the value of --as that agrees with the operator's books, "" while the operator itself may still decide.
func (o *Operators) Truth(e *ledger.Entry) string {
	applied, isPlatform := o.HasEffect(e), o.isPlatformOf(e)
	if row, _ := RowOf(e); row.Name == SMSPlatform && e.ID[0]%2 == 0 {
		return ledger.ManuallyUnknowable // the operator did not find the message
	}
	if isPlatform && e.Kind == ledger.Payment {
		return string(map[bool]ledger.Status{true: ledger.Successful, false: ledger.Failed}[applied])
	}
	if !isPlatform && o.Model(e.Route.Operator).IsDelayed(mirror.EffectKind(e), e.Route.UpstreamKey) {
		return ""
	}
	if e.Kind != ledger.Payment {
		return map[bool]string{true: ledger.ManuallyApplied, false: ledger.ManuallyNotApplied}[applied]
	}
	if applied {
		return string(ledger.Successful)
	}
	status, at, found := o.FinalStatus(e)
	switch {
	case found && at.After(time.Now()):
		return ""
	case found && status == string(ledger.Cancelled):
		return status
	}
	return string(ledger.Failed)
}
