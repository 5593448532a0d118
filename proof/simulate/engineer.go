package simulate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/auditlog"
	control "mobilegateway/gatewayctl/deployment"
	"mobilegateway/proof/simulate/history"
	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	limitdynamo "mobilegateway/shared/limit/dynamo"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/shared/webhook"
	webhookdynamo "mobilegateway/shared/webhook/dynamo"
)

// functionEngineer is the name of the instances that run gatewayctl.
const functionEngineer = "gatewayctl"

// engineerRound lets the engineer do what docs/operations.md says about everything that waits for a person.
func (w *World) engineerRound() {
	if !time.Now().Before(w.LastRound) {
		w.restoreItem()
	}
	w.engineer(w.findCommands())
}

// engineer runs commands of gatewayctl, one after the other.
func (w *World) engineer(commands [][]string) {
	if len(commands)+len(w.auditItems) == 0 {
		return
	}
	w.runEngineer(func(i *instance) {
		for _, command := range commands {
			w.runCommand(i, command...)
		}
		w.verifyAudit(i)
	})
}

// runEngineer runs a task of the engineer, in an instance of its own.
func (w *World) runEngineer(task func(i *instance)) {
	i := &instance{Instance: w.Kernel.NewInstance(functionEngineer), function: functionEngineer}
	i.Start(func() { task(i) })
}

// engineerAt schedules a task of the engineer.
func (w *World) engineerAt(at time.Time, name string, task func(i *instance)) {
	w.Kernel.At(at, name, func() { w.runEngineer(task) })
}

// runCommand runs gatewayctl over the models. It returns the standard output, and whether the command succeeded.
func (w *World) runCommand(i *instance, arguments ...string) (output []byte, done bool) {
	tool := w.tools.Get().(*gatewayctl.Tool)
	defer w.tools.Put(tool) // also after a crash: the next command sets everything again
	var out, messages bytes.Buffer
	code := tool.Run(context.Background(), append(arguments, "--yes", "--reason", "simulated"), control.System{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &messages, Getenv: w.environment,
		Now: i.Now, Rand: i,
		Connect: func(control.System, control.Names) (*control.Stores, error) {
			return w.storesOf(i), nil
		},
	})
	w.Counts.Commands++
	if w.HasStory {
		w.Logf("engineer: gatewayctl %s: exit %d: %s", strings.Join(arguments, " "), code,
			strings.ReplaceAll(strings.TrimSpace(messages.String()+out.String()), "\n", " | "))
	}
	return out.Bytes(), code == gatewayctl.ExitDone
}

// storesOf are the stores of one run of gatewayctl.
func (w *World) storesOf(i *instance) *control.Stores {
	client := w.tableClient(i)
	return &control.Stores{
		Merchants: merchantdynamo.NewRegistry(client, merchantTable), Ledger: ledgerdynamo.New(client, ledgerTable),
		EndpointHealth: webhookdynamo.New(client, ledgerTable, i.Now),
		DailyAmounts: &dailyamount.Counter{
			Store: limitdynamo.New(client, limitTable), Now: i.Now, Rand: i, Sleep: i.Sleep,
		},
		Secrets: controlSecrets{w, i}, Audit: auditLog{w, i}, AuditCopies: auditLog{w, i},
		Caller: func(context.Context) (string, error) { return "local:engineer", nil },
	}
}

// controlSecrets is the secret store of gatewayctl.
type controlSecrets struct {
	world    *World
	instance *instance
}

// Get implements control.SecretStore.
func (s controlSecrets) Get(_ context.Context, name string) (control.StoredSecret, error) {
	s.world.gate(s.instance, "secret "+name)
	value, err := s.world.secrets.Fetch(time.Now(), name, s.world.Tape)
	return control.StoredSecret{Name: name, Value: value, Revision: revision(value)}, err
}

// errSecretChanged is the error of a Put after another change.
var errSecretChanged = errors.New("the secret was changed meanwhile: run the command again")

// revision identifies a version of a secret.
func revision(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:])
}

// Put implements control.SecretStore.
func (s controlSecrets) Put(_ context.Context, current control.StoredSecret, value []byte) error {
	s.world.gate(s.instance, "put secret "+current.Name)
	if stored, _ := s.world.secrets.Current(current.Name); revision(stored) != current.Revision {
		return errSecretChanged
	}
	s.world.secrets.Set(time.Now(), current.Name, value)
	return nil
}

// auditLog stores audit records and their copies.
type auditLog controlSecrets

// Append implements auditlog.Log.
func (a auditLog) Append(_ context.Context, r auditlog.Record) (auditlog.Item, error) {
	a.world.gate(a.instance, "audit record")
	items := a.world.auditItems
	if r.Sequence = int64(len(items)) + 1; r.Sequence > 1 {
		r.Previous = revision([]byte(items[len(items)-1].Document))
	}
	document, err := json.Marshal(r)
	item := auditlog.Item{Key: fmt.Sprintf("audit#%012d", r.Sequence), Document: string(document)}
	a.world.auditItems, a.instance.isAudited = append(items, item), true
	return item, err
}

// Items implements auditlog.Log.
func (a auditLog) Items(context.Context) ([]auditlog.Item, error) {
	return a.world.auditItems, nil
}

// Write implements auditlog.Copies.
func (a auditLog) Write(_ context.Context, _ time.Time, document string) error {
	a.world.gate(a.instance, "audit copy")
	a.world.auditCopies = append(a.world.auditCopies, document)
	return nil
}

// Documents implements auditlog.Copies.
func (a auditLog) Documents(context.Context) ([]string, error) { return a.world.auditCopies, nil }

// verifyAudit checks that the audit records are complete (invariant 10), unless the last command has crashed.
func (w *World) verifyAudit(i *instance) {
	at := len(w.auditItems) - 1
	if at < 0 || !slices.Contains(w.auditCopies, w.auditItems[at].Document) {
		return
	}
	if output, done := w.runCommand(i, "audit", "verify", "--json"); !done {
		w.checker.fail(10, "the audit records have faults: %s", output)
	}
}

// findCommands returns the documented commands for all that is listed, disabled, parked or dead.
func (w *World) findCommands() [][]string {
	var commands [][]string
	for e := range w.checker.all() {
		if !w.checker.isListed(e) {
			continue
		}
		if as := w.truth(e); as != "" {
			commands = append(commands, []string{"unknown", "resolve", string(e.Kind), e.ID, "--as", as})
		}
	}
	for _, s := range w.shops {
		for _, address := range []string{s.NotifyURL, s.profile.NotifURL, s.profile.NotifURL + newAddress} {
			if !w.isEnabled(s.profile.ID, address) {
				commands = append(commands, []string{"endpoint", "enable", s.Name, "--url", address})
			}
		}
	}
	for _, s := range w.shops {
		if since := w.checker.undeliveredSince(s); !since.IsZero() {
			commands = append(commands, []string{
				"deliveries", "replay", "--merchant", s.Name, "--from", since.Format(time.DateOnly),
				"--to", time.Now().Format(time.DateOnly), "--dead-letters",
			})
		}
	}
	return commands
}

// isListed reports whether an entry was listed for a person lately, and its outcome is still uncertain.
func (c *checker) isListed(e *ledger.Entry) bool {
	at, listed := c.listed[e.ID]
	uncertain := e.OutcomeUncertain(time.Now()) || e.Kind == ledger.Payment && !e.StatusFinal()
	return listed && time.Since(at) <= listedBound && uncertain
}

// undeliveredSince returns the time of the earliest status of a merchant whose notification is dead or parked, zero for
// none.
func (c *checker) undeliveredSince(s *shop) time.Time {
	var first time.Time
	for e := range c.all() {
		for _, n := range e.Outbox.Waiting {
			isWaiting := e.Merchant.ID == s.profile.ID && (n.DeadReason != "" || n.Parked)
			if isWaiting && (first.IsZero() || n.At.Before(first)) {
				first = n.At
			}
		}
	}
	return first
}

// isEnabled reports whether an endpoint is enabled.
func (w *World) isEnabled(merchantID, address string) bool {
	store := webhookdynamo.New(w.bareClient, ledgerTable, time.Now)
	health, err := store.Health(context.Background(), webhook.Endpoint{MerchantID: merchantID, URL: address})
	if err != nil {
		w.Fail("read the health of %s: %s", address, err)
	}
	return health.Enabled()
}

// truth is the value of --as that agrees with the operator's books, "" while the operator itself may still decide.
func (w *World) truth(e *ledger.Entry) string {
	applied := w.checker.hasEffect(e)
	if row, _ := platformRowOf(e); row.name == smsPlatform && e.ID[0]%2 == 0 {
		return ledger.ManuallyUnknowable // the operator did not find the message
	}
	if w.platformOf(e) != nil && e.Kind == ledger.Payment {
		return string(map[bool]ledger.Status{true: ledger.Successful, false: ledger.Failed}[applied])
	}
	if w.platformOf(e) == nil &&
		w.operators[operatorHost(e.Route.Operator)].IsDelayed(effectKinds[e.Kind], e.Route.UpstreamKey) {
		return ""
	}
	if e.Kind != ledger.Payment {
		return map[bool]string{true: ledger.ManuallyApplied, false: ledger.ManuallyNotApplied}[applied]
	}
	if applied {
		return string(ledger.Successful)
	}
	status, at, found := w.operators[operatorHost(e.Route.Operator)].FinalStatus(e.Route.UpstreamKey)
	switch {
	case found && at.After(time.Now()):
		return ""
	case found && status == string(ledger.Cancelled):
		return status
	}
	return string(ledger.Failed)
}

// hasEffect reports whether an operator has applied an entry: since it was created, because an operator may know its
// key from an entry before.
func (c *checker) hasEffect(e *ledger.Entry) bool {
	effect, found := c.effectOf(e)
	return found && !effect.LastAt.Before(e.CreatedAt.Add(-history.MaxSkew))
}

// effectOf returns the effect of an entry's key.
func (c *checker) effectOf(e *ledger.Entry) (outside.Effect, bool) {
	if p := c.world.platformOf(e); p != nil {
		effect, found := p.effects[e.Route.UpstreamKey]
		return effect, found
	}
	o := c.world.operators[operatorHost(e.Route.Operator)]
	if o == nil {
		return outside.Effect{}, false
	}
	return o.EffectOf(effectKinds[e.Kind], e.Route.UpstreamKey)
}
