package hazards

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/proof/simulate/deployment"
	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/tape"
	"mobilegateway/proof/simulate/world"
)

// platform has the accounts of one operator in the operators' secret.
type platform struct {
	Current  string                    `json:"current"`
	Accounts map[string]map[string]any `json:"accounts"`
}

// changeAccounts changes the operators' accounts in their secret, as they are now.
func changeAccounts(w *world.World, change func(name string, p *platform)) {
	w.Logf("operators: a person changes their accounts")
	w.Secrets.Set(time.Now(), fixture.OperatorSecret, changedAccounts(w, change))
}

// changedAccounts is the secret of the operators' accounts as it is now, with a change.
func changedAccounts(w *world.World, change func(name string, p *platform)) []byte {
	current, _ := w.Secrets.Current(fixture.OperatorSecret)
	var all map[string]*platform
	if err := json.Unmarshal(current, &all); err != nil {
		w.Fail("read the operators' accounts: %s", err)
	}
	for name, p := range all {
		change(name, p)
	}
	return fixture.Must(json.Marshal(all))
}

// copyAccount stores an account as another one of its operator, with the address of that one.
func (p *platform) copyAccount(from, to, address string) {
	p.Accounts[to] = maps.Clone(p.Accounts[from])
	p.Accounts[to]["base_url"] = "https://" + address
}

// planRemovedAccount makes another account of each operator current while orders have the first one, and removes that
// one. gatewayctl must refuse that while an order needs it. Else a person removes it manually and adds it again.
func planRemovedAccount(w *world.World, length time.Duration) {
	at := w.DrawStart(length).Add(time.Duration(w.Tape.Choose("seconds to another account", 300)) * time.Second)
	removed := at.Add(tape.Draw(w.Tape, "time of the removal", 10*time.Second, 10*time.Minute, 2*time.Hour))
	if w.Tape.Choose("account removed manually", 2) == 0 {
		w.Engineers.At(at, "another account", func(i *deployment.Instance) { setAccounts(w, i, addSecond) })
		for _, wait := range []time.Duration{0, 10 * time.Minute, 2 * time.Hour} {
			w.Engineers.At(removed.Add(wait), "removal", func(i *deployment.Instance) { dropFirst(w, i) })
		}
		return
	}
	w.Kernel.At(at, "another account", func() { changeAccounts(w, addSecond) })
	w.Kernel.At(removed, "removal", func() { changeAccounts(w, removeFirst) })
	back := removed.Add(tape.Draw(w.Tape, "time without an account", 10*time.Minute, 3*time.Hour, 26*time.Hour))
	w.BrokenUntil(back)
	w.Kernel.At(back, "the account again", func() {
		changeAccounts(w, func(name string, p *platform) {
			p.copyAccount(fixture.SecondAccount, fixture.FirstAccount, fixture.OperatorHost(name))
		})
	})
}

func addSecond(name string, p *platform) {
	p.copyAccount(fixture.FirstAccount, fixture.SecondAccount, fixture.SecondAccount+"."+fixture.OperatorHost(name))
	p.Current = fixture.SecondAccount
}

func removeFirst(_ string, p *platform) { delete(p.Accounts, fixture.FirstAccount) }

// setAccounts lets gatewayctl change the operators' accounts, and reports whether it did.
func setAccounts(w *world.World, i *deployment.Instance, change func(string, *platform)) bool {
	_, done := w.Engineers.RunWith(i, string(changedAccounts(w, change)), "operator", "set", "-", "--replace")
	return done
}

// dropFirst lets gatewayctl drop the first account of each operator, once there is a second one. It must not while an
// order needs it. An entry without a timer needs no account: its status is final, or its retention ends before the next
// call.
func dropFirst(w *world.World, i *deployment.Instance) {
	current, _ := w.Secrets.Current(fixture.OperatorSecret)
	if !bytes.Contains(current, []byte(fixture.SecondAccount)) || !setAccounts(w, i, removeFirst) {
		return
	}
	for e := range w.Entries.All() {
		if e.Route.Account == fixture.FirstAccount && !e.DueAt.IsZero() && entries.MayCallOperator(e) {
			w.Check.AccountDropped(e)
		}
	}
}
