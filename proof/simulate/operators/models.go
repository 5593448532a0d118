package operators

import (
	"net/http"
	"strings"
	"time"

	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/shared/operator"
)

// Models are the operators that speak the gateway's own protocol.
type Models struct {
	*gateway
	// LosesRefusals lets some refusals make the ledger's table read-only for a time.
	LosesRefusals bool

	// Names are the operators' names.
	Names []string

	byHost  map[string]*outside.Operator
	account string               // of the request that is served; "" in a small world
	next    map[string]time.Time // when an operator does something by itself, by name
}

func newModels(g *gateway) *Models {
	m := &Models{
		gateway: g, Names: operator.NamesWithPlatform(), byHost: map[string]*outside.Operator{},
		next: map[string]time.Time{},
	}
	for _, name := range m.Names {
		o := &outside.Operator{Name: name, Faults: m.Faults, Trace: m.LogText, OnOtherContent: m.observer.OtherContent}
		o.AccessTokens = []string{fixture.AccessToken(fixture.OperatorToken, name)}
		o.OnEffect = func(effect outside.Effect) { m.observer.Applied(name, effect) }
		o.OnCall = m.called
		m.byHost[fixture.OperatorHost(name)] = o
	}
	return m
}

// Model is the model of an operator, nil for one that has none.
func (m *Models) Model(name string) *outside.Operator { return m.byHost[fixture.OperatorHost(name)] }

// OfHost is the model of a host, nil for none.
func (m *Models) OfHost(host string) *outside.Operator { return m.byHost[host] }

// Each calls a function with each model.
func (m *Models) Each(use func(*outside.Operator)) {
	for _, name := range m.Names {
		use(m.Model(name))
	}
}

// SetAccessTokens changes the valid access tokens at every operator.
func (m *Models) SetAccessTokens(tokens ...string) {
	m.Each(func(o *outside.Operator) {
		o.AccessTokens = nil
		for _, token := range tokens {
			o.AccessTokens = append(o.AccessTokens, fixture.AccessToken(token, o.Name))
		}
	})
}

// called passes a call on. A refusal may be lost: the ledger's table is then read-only for some seconds.
func (m *Models) called(kind, key string, response outside.Exchange) {
	m.observer.Called(kind, key, response)
	e := m.Entries.AtOperator(kind, key)
	if kind == outside.KindPayerSMS {
		e = m.Entries.Payment(key)
	}
	if e != nil && m.account != "" && e.Route.Account != m.account {
		m.observer.OtherAccount(e, m.account)
	}
	if response.Status == http.StatusForbidden && m.LosesRefusals && m.HappensNow("refusal lost", 300) {
		m.ReadOnly.From, m.ReadOnly.To = time.Now(), time.Now().Add(10*time.Second)
	}
}

// serve passes a request to the operator of its host.
func (m *Models) serve(request *http.Request, body []byte) outside.Exchange {
	host, isSecond := strings.CutPrefix(request.URL.Host, fixture.SecondAccount+".")
	o := m.byHost[host]
	m.account = fixture.FirstAccount
	if isSecond {
		m.account = fixture.SecondAccount
	}
	if o == nil {
		m.Fail("a request to the unknown operator %s", request.URL.Host)
		return outside.Exchange{Failure: outside.ConnectionRefused}
	}
	m.observer.Received(o.Name, body)
	response := o.Serve(time.Now(), request, body, m.Tape)
	if m.HasStory {
		m.Logf("operator %s: %s: %s", o.Name, deployment.CallOf(request), deployment.Describe(response))
	}
	m.Schedule(o)
	return response
}

// Schedule schedules the next own event of an operator.
func (m *Models) Schedule(o *outside.Operator) {
	next, found := o.Next()
	planned := m.next[o.Name]
	if !found || next.After(m.End) || !planned.IsZero() && !planned.After(next) {
		return
	}
	m.next[o.Name] = next
	m.Kernel.At(next, "operator", func() {
		if !m.next[o.Name].Equal(next) {
			return
		}
		m.next[o.Name] = time.Time{}
		for _, callback := range o.Due(time.Now()) {
			m.CallBack(o, callback)
		}
		m.Schedule(o)
	})
}

// CallBack sends a callback or a receipt to the gateway, and reports the response to the operator.
func (m *Models) CallBack(o *outside.Operator, callback outside.Callback) {
	payload, err := outside.CallbackEvent(callback.URL, callback.Body)
	if err != nil {
		m.Fail("%s", err)
		return
	}
	function := deployment.Notif
	if strings.Contains(callback.URL, "/receipts/") {
		function = deployment.Receipt
	}
	callback.SentAt = time.Now()
	m.Invoke(function, payload, func(r deployment.Result) {
		response, _ := m.ResponseOf(function, r)
		status := response.Status
		m.observer.CalledBack(callback, status)
		if m.HappensNow("response to the operator lost", m.Rates.LostResponse) {
			m.Count("response to the operator lost")
			status = 0
		}
		o.Report(time.Now(), callback, status)
		m.Schedule(o)
	})
}

// outageKinds and outageFaults are the kinds of calls that an outage concerns, "" for all, and what happens to them.
var (
	outageKinds = []string{
		outside.KindPayerSMS, outside.KindLookup, outside.KindSMS, outside.KindCharge, outside.KindPayment, "",
	}
	outageFaults = []outside.Fault{
		outside.HangBefore, outside.HangAfter, outside.ServerErrorBefore, outside.SlowAfter,
	}
)

// DrawOutage lets the calls of one kind at an operator fail for days, or seldom for a week.
func (m *Models) DrawOutage(operatorName string, length time.Duration) {
	broken := m.DrawWindow(length, time.Hour, 24*time.Hour, 3*24*time.Hour)
	if m.Tape.ChooseApart("an outage of a week", 24) == 23 {
		broken.To = broken.From.Add(7 * 24 * time.Hour)
		m.BrokenUntil(broken.To)
	}
	o := m.Model(operatorName)
	o.Outages = append(o.Outages, outside.Outage{
		Window: broken, Kind: tape.Draw(m.Tape, "kind of outage", outageKinds...),
		Fault: tape.Draw(m.Tape, "fault of outage", outageFaults...),
	})
}
