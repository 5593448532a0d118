// Package engineers runs the engineers: the commands of gatewayctl, by the runbooks and at any time.
package engineers

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"time"

	"mobilegateway/gatewayctl"
	control "mobilegateway/gatewayctl/deployment"
	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/merchants"
	"mobilegateway/proof/simulate/operators"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/limit"
	limitdynamo "mobilegateway/shared/limit/dynamo"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	webhookdynamo "mobilegateway/shared/webhook/dynamo"
)

// Observer learns what engineers get.
type Observer interface {
	// Confide receives texts that no log line may contain.
	Confide(texts ...string)
	// AuditFailed receives what a failed verification of the audit records says.
	AuditFailed(output []byte)
	// Exported receives how often an export of all days of a merchant has a transaction.
	Exported(e *ledger.Entry, times int)
}

// Engineers run gatewayctl.
type Engineers struct {
	*deployment.Deployment
	merchants *merchants.Merchants
	operators *operators.Operators
	observer  Observer
	audit     auditRecords
	// Exported is the merchant whose days are exported at the last round, nil for none.
	Exported *fixture.Shop
}

// New makes the engineers.
func New(m *merchants.Merchants, o *operators.Operators, observer Observer) *Engineers {
	return &Engineers{Deployment: m.Deployment, merchants: m, operators: o, observer: observer}
}

// Do runs commands of gatewayctl, one after the other.
func (e *Engineers) Do(commands ...[]string) {
	if len(commands)+len(e.audit.items) == 0 {
		return
	}
	e.start(func(i *deployment.Instance) {
		for _, command := range commands {
			e.Run(i, command...)
		}
		e.verifyAudit(i)
	})
}

// start runs a task of an engineer, in an instance of its own.
func (e *Engineers) start(task func(i *deployment.Instance)) {
	i := e.NewProgram(deployment.Engineer)
	i.Start(func() { task(i) })
}

// At schedules a task of an engineer.
func (e *Engineers) At(at time.Time, name string, task func(i *deployment.Instance)) {
	e.Kernel.At(at, name, func() { e.start(task) })
}

// tools are those of gatewayctl that no command uses: to make one takes longer than a command.
var tools = sync.OnceValue(func() *sync.Pool {
	return &sync.Pool{New: func() any { return fixture.Must(gatewayctl.NewTool()) }}
})

// Run runs gatewayctl over the models. It returns the standard output, and whether the command succeeded.
func (e *Engineers) Run(i *deployment.Instance, arguments ...string) (output []byte, done bool) {
	return e.RunWith(i, "", arguments...)
}

// RunWith is Run with a standard input.
func (e *Engineers) RunWith(i *deployment.Instance, input string, arguments ...string) (output []byte, done bool) {
	tool := tools().Get().(*gatewayctl.Tool)
	defer tools().Put(tool) // also after a crash: the next command sets everything again
	var out, messages bytes.Buffer
	code := tool.Run(context.Background(), append(arguments, "--yes", "--reason", "simulated"), control.System{
		Stdin: strings.NewReader(input), Stdout: &out, Stderr: &messages, Getenv: e.Environment,
		Now: i.Now, Rand: i,
		Connect: func(control.System, control.Names) (*control.Stores, error) { return e.storesOf(i), nil },
	})
	e.Counts.Commands++
	if e.HasStory {
		e.Logf("engineer: gatewayctl %s: exit %d: %s", strings.Join(arguments, " "), code,
			strings.ReplaceAll(strings.TrimSpace(messages.String()+out.String()), "\n", " | "))
	}
	return out.Bytes(), code == gatewayctl.ExitDone
}

// storesOf are the stores of one run of gatewayctl.
func (e *Engineers) storesOf(i *deployment.Instance) *control.Stores {
	client, audit := e.Client(i), auditLog{&e.audit, e.Gate, i}
	limits := limitdynamo.New(client, fixture.LimitTable)
	return &control.Stores{
		Merchants:      merchantdynamo.NewRegistry(client, fixture.MerchantTable),
		Ledger:         ledgerdynamo.New(client, fixture.LedgerTable),
		Batches:        ledgerdynamo.NewBatchReader(client, fixture.LedgerTable),
		EndpointHealth: webhookdynamo.New(client, fixture.LedgerTable, i.Now),
		DailyAmounts:   &dailyamount.Counter{Store: limits, Now: i.Now, Rand: i, Sleep: i.Sleep},
		LookupRates:    limit.NewRateLimiter(limits, i.Now),
		Sleep:          i.Sleep,
		Secrets:        secretStore{e.Outside, i}, Audit: audit, AuditCopies: audit,
		Caller: func(context.Context) (string, error) { return "local:engineer", nil },
	}
}

// verifyAudit checks that the audit records are complete, unless the last command has crashed.
func (e *Engineers) verifyAudit(i *deployment.Instance) {
	if !e.audit.isCopied() {
		return
	}
	if output, done := e.Run(i, "audit", "verify", "--json"); !done {
		e.observer.AuditFailed(output)
	}
}
