package reconcile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/shared/ledger"
)

// document is the document of reconcile --json.
type document struct {
	result.View
	result.Summary
	Differences []result.Row `json:"differences"`
}

const heading = "reference,order_id,amount,currency,status,time,fee,payer\n"

// day is the day of the tests, at noon.
func day() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// books is a tool on the morning after the day, and a folder for statements.
type books struct {
	*gatewayctltest.Tool
	shop   merchants.Onboarding
	folder string
	// chargeID is the id of the charge c1.
	chargeID string
}

func newBooks(t *testing.T) *books {
	t.Helper()
	d, shop := gatewayctltest.NewShop(t)
	d.Now = day().Add(20 * time.Hour)
	return &books{Tool: d, shop: shop, folder: t.TempDir()}
}

// pay stores a successful payment of the day with the reference R<number>, with changes.
func (b *books) pay(number int, changes ...func(*ledger.Entry)) {
	b.AddDeliveredPayment(b.shop, number, day(), append([]func(*ledger.Entry){func(e *ledger.Entry) {
		e.OperatorReference = fmt.Sprintf("R%d", number)
	}}, changes...)...)
}

// charge stores the charge c1 of the day.
func (b *books) charge(state ledger.State) {
	const correlator = "c1"
	key := b.AddUnknownCharge(b.shop, correlator)
	b.chargeID = key.ID
	b.Update(key, func(e *ledger.Entry) {
		e.State, e.CreatedAt, e.Route.Account, e.Route.UpstreamKey = state, day(), "a1", "ShopA."+correlator
	})
}

func state(s ledger.State) func(*ledger.Entry) { return func(e *ledger.Entry) { e.State = s } }

func status(s ledger.Status) func(*ledger.Entry) {
	return func(e *ledger.Entry) {
		if e.Status = s; s == ledger.Pending {
			e.FinalAt = time.Time{}
		}
	}
}

// write writes a file of the folder and returns its path.
func (b *books) write(name, text string) string {
	b.T.Helper()
	path := filepath.Join(b.folder, name)
	gatewayctltest.WriteFile(b.T, path, text)
	return path
}

func (b *books) line(path, flags string) string {
	return strings.TrimSpace("reconcile --platform sandbox --day 2026-03-01 --statement " + path + " " + flags)
}

// run reconciles a statement and returns the result.
func (b *books) run(text, flags string, want int) (found document) {
	b.T.Helper()
	code, out, stderr := b.Exec(b.line(b.write("s.csv", text), "--json "+flags))
	if code != want {
		b.T.Fatalf("exit %d, want %d: %s%s", code, want, out, stderr)
	}
	gatewayctltest.Decode(b.T, out, &found)
	if _, err := os.Stat(filepath.Join(b.folder, "s.csv.work")); !os.IsNotExist(err) {
		b.T.Errorf("the work folder is left: %v", err)
	}
	return found
}

// Each class has a row, with the command that acts on it.
func TestClasses(t *testing.T) {
	const noon = "2026-03-01T12:00:01Z"
	for name, c := range map[string]struct {
		rows    string
		ours    func(b *books)
		class   result.Class
		differs string
		command string // a part of it
		total   string // the difference of all totals
	}{
		"equal by reference": {"R1,,1000,XOF,paid," + noon + ",,\n", func(b *books) { b.pay(1) },
			result.Equal, "", "", "0"},
		"equal by key": {",ShopA_1,1000,XOF,paid," + noon + ",,\n", func(b *books) { b.pay(1) },
			result.Equal, "", "", "0"},
		"equal by order_id": {",ShopA_1,1000,XOF,paid," + noon + ",,\n", func(b *books) {
			b.pay(1, func(e *ledger.Entry) { e.Route.UpstreamKey = "a-uuid" })
		}, result.Equal, "", "", "0"},
		"equal failures": {"R1,,1000,XOF,failed," + noon + ",,\n", func(b *books) { b.pay(1, status(ledger.Failed)) },
			result.Equal, "", "", "0"},
		"both pending": {"R1,,1000,XOF,pending," + noon + ",,\n", func(b *books) { b.pay(1, status(ledger.Pending)) },
			result.Equal, "", "", "0"},
		"a charge": {",ShopA.c1,1.50,USD,paid," + noon + ",,\n", func(b *books) { b.charge(ledger.Done) },
			result.Equal, "", "", "0.00"},
		"amount": {"R1,,999,XOF,paid," + noon + ",,\n", func(b *books) { b.pay(1) },
			result.AmountDiffers, "amount", "gatewayctl payment show ShopA_1", "-1"},
		"currency": {"R1,,1000,XAF,paid," + noon + ",,\n", func(b *books) { b.pay(1) },
			result.CurrencyDiffers, "currency", "payment show ShopA_1", "1000 -1000"},
		"currency, status and day": {"R1,,1000,XAF,refunded,2026-03-02T00:00:00Z,,\n", func(b *books) { b.pay(1) },
			result.CurrencyDiffers, "currency status day", "payment show ShopA_1", "0 -1000"},
		"only theirs": {"R9,ShopA_9,1000,XOF,paid," + noon + ",,\n", func(*books) {},
			result.TheirsAlone, "", "gatewayctl find --since 2026-02-22 -- R9", "1000"},
		"only theirs, ours unknown": {"R9,ShopA_1,1000,XOF,paid," + noon + ",,\n", func(b *books) {
			b.pay(1, status(ledger.Pending), state(ledger.Unknown), func(e *ledger.Entry) { e.OperatorReference = "" })
		}, result.TheirsAlone, "status", "unknown resolve pay ShopA_1 --as successful " +
			"--operator-reference=R9 --yes --reason 'statement s.csv, line 2'", "1000"},
		"only theirs, ours failed": {"R1,,1000,XOF,paid," + noon + ",,\n", func(b *books) {
			b.pay(1, status(ledger.Failed))
		}, result.TheirsAlone, "status", "payment show ShopA_1", "1000"},
		"only theirs, our charge unknown": {"R9,ShopA.c1,1.50,USD,paid," + noon + ",,\n", func(b *books) {
			b.charge(ledger.Unknown)
		}, result.TheirsAlone, "status", "--as applied --operator-reference=R9", "1.50"},
		"only ours": {"", func(b *books) { b.pay(1) }, result.OursAlone, "", "payment show ShopA_1", "-1000"},
		"only ours, pending": {"", func(b *books) { b.pay(1, status(ledger.Pending)) },
			result.OursAlone, "", "unknown resolve pay ShopA_1 --yes --reason REASON", ""},
		"only ours, an unknown charge": {"", func(b *books) { b.charge(ledger.Unknown) },
			result.OursAlone, "", "--as not-applied --yes", ""},
		"only ours, an attempt in flight": {"", func(b *books) {
			b.charge(ledger.Reserved)
			b.Update(ledger.Key{Kind: ledger.Charge, ID: b.chargeID}, func(e *ledger.Entry) { e.LeaseUntil = b.Now })
		}, result.OursAlone, "", "gatewayctl charge show", ""},
		"status, ours successful": {"R1,,1000,XOF,failed," + noon + ",,\n", func(b *books) { b.pay(1) },
			result.StatusDiffers, "status", "payment show ShopA_1", "-1000"},
		"status, ours pending": {"R1,,1000,XOF,failed," + noon + ",,\n", func(b *books) {
			b.pay(1, status(ledger.Pending))
		}, result.StatusDiffers, "status", "unknown resolve pay ShopA_1 --yes --reason REASON", "0"},
		"status, ours pending past its lifetime": {"R1,,1000,XOF,failed," + noon + ",,\n", func(b *books) {
			b.pay(1, status(ledger.Pending), func(e *ledger.Entry) { e.ReservedAt = day().Add(-5 * time.Hour) })
		}, result.StatusDiffers, "status", "--as failed --operator-reference=R1", "0"},
		"only theirs, ours pending": {"R1,,1000,XOF,paid," + noon + ",,\n", func(b *books) {
			b.pay(1, status(ledger.Pending))
		}, result.TheirsAlone, "status", "unknown resolve pay ShopA_1 --yes --reason REASON", "1000"},
		"refunded": {"R1,,1000,XOF,refunded," + noon + ",,\n", func(b *books) { b.pay(1) },
			result.StatusDiffers, "status", "payment show ShopA_1", "-1000"},
		"another day by its time": {"R1,,1000,XOF,paid,2026-03-02T00:00:00Z,,\n", func(b *books) { b.pay(1) },
			result.OtherDay, "day", "payment show ShopA_1", "0"},
		"another day by its creation": {"R1,,1000,XOF,paid," + noon + ",,\n", func(b *books) {
			before := day().AddDate(0, 0, -1)
			b.pay(1, func(e *ledger.Entry) { e.CreatedAt, e.FinalAt = before, before })
		}, result.OtherDay, "day", "reconcile --platform sandbox --day 2026-02-28 --statement FILE", "1000"},
		"another day by its end": {"", func(b *books) {
			b.pay(1, func(e *ledger.Entry) { e.FinalAt = day().Add(12 * time.Hour) })
		}, result.OtherDay, "", "--day 2026-03-02 --statement FILE", "-1000"},
		"another day by its creation, without a row": {"", func(b *books) {
			b.pay(1, func(e *ledger.Entry) { e.CreatedAt, e.FinalAt = day().AddDate(0, 0, -1), day() })
		}, result.OtherDay, "", "reconcile --platform sandbox --day 2026-02-28 --statement FILE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			c.ours(b)
			exit := gatewayctl.ExitFailed
			if c.class == result.Equal {
				exit = gatewayctl.ExitDone
			}
			found := b.run(heading+c.rows, "", exit)
			b.Equal("counts", found.Counts, map[result.Class]int{c.class: 1})
			var totals []string
			for _, total := range found.Totals {
				totals = append(totals, total.Difference)
			}
			b.Equal("differences of the totals", strings.Join(totals, " "), c.total)
			if c.class == result.Equal {
				return
			}
			row := found.Differences[0]
			b.Equal("what differs", strings.Join(row.Differs, " "), c.differs)
			if !strings.Contains(row.Command, c.command) {
				t.Errorf("the command is %q, want %q", row.Command, c.command)
			}
			if decision, _, hasReason := strings.Cut(row.Command, " --reason "); hasReason &&
				strings.Contains(decision, " --as ") {
				b.ExpectExit(strings.TrimPrefix(decision, "gatewayctl ")+" --reason statement", gatewayctl.ExitDone, "")
			}
		})
	}
}

// A payment is listed twice: once more by its reference, by its key under another reference, or without one of ours.
func TestTwice(t *testing.T) {
	const rest = ",1000,XOF,paid,2026-03-01T12:00:01Z,,\n"
	for name, rows := range map[string]string{
		"the same line":                "R1,ShopA_1" + rest + "R1,ShopA_1" + rest,
		"another reference, one key":   "R1,ShopA_1" + rest + "R2,ShopA_1" + rest,
		"one reference, one of them":   "R1," + rest + "R1,ShopA_7" + rest,
		"one reference of another row": "R1," + rest + "R9," + rest + "R9," + rest,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			b.pay(1)
			found := b.run(heading+rows, "", gatewayctl.ExitFailed)
			b.Equal("twice", found.Counts[result.Twice], 1)
			b.Equal("equal", found.Counts[result.Equal], 1)
		})
	}
	t.Run("a refund beside its payment is none", func(t *testing.T) {
		b := newBooks(t)
		b.pay(1)
		found := b.run(heading+"R1,ShopA_1"+rest+"R2,ShopA_1,1000,XOF,refunded,2026-03-01T13:00:00Z,,\n", "",
			gatewayctl.ExitFailed)
		b.Equal("counts", found.Counts, map[result.Class]int{result.Equal: 1, result.StatusDiffers: 1})
		b.Equal("the difference", found.Totals[0].Difference, "-1000")
	})
}

// A refund with a row of its own returns the money of its payment, and its fee. Its place in the file, and what the
// ledger has, do not matter.
func TestRefunds(t *testing.T) {
	const typed = "reference,order_id,amount,currency,status,time,fee,type\n"
	const paid, refund = ",1000,XOF,paid,2026-03-01T12:00:01Z,10,P\n", ",1000,XOF,paid,2026-03-01T13:00:01Z,10,R\n"
	known := func(*ledger.Entry) {}
	unknown := func(e *ledger.Entry) {
		status(ledger.Pending)(e)
		e.State, e.OperatorReference = ledger.Unknown, ""
	}
	for name, c := range map[string]struct {
		rows         string
		ours         func(*ledger.Entry)
		theirs, fees string // sums of all totals
		count        map[result.Class]int
	}{
		"the payment's reference first": {"R1,ShopA_1" + paid + "R2,ShopA_1" + refund, known, "0", "0",
			map[result.Class]int{result.Equal: 1, result.StatusDiffers: 1}},
		"the refund's reference first": {"R1,ShopA_1" + paid + "R0,ShopA_1" + refund, known, "0", "0",
			map[result.Class]int{result.Equal: 1, result.StatusDiffers: 1}},
		"of an unknown payment": {"R1,ShopA_1" + paid + "R0,ShopA_1" + refund, unknown, "0", "0",
			map[result.Class]int{result.TheirsAlone: 1, result.StatusDiffers: 1}},
		"its payment is of another day": {"R0,ShopA_1" + refund, unknown, "-1000", "-10",
			map[result.Class]int{result.StatusDiffers: 1}},
		"none is ours": {"R1,ShopA_9" + paid + "R0,ShopA_9" + refund, unknown, "0", "0",
			map[result.Class]int{result.TheirsAlone: 2, result.OursAlone: 1}},
		"none is ours, one reference": {"R1,ShopA_9" + paid + "R1," + refund, unknown, "0", "0",
			map[result.Class]int{result.TheirsAlone: 2, result.OursAlone: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			b.pay(1, c.ours)
			mapping := b.write("m.json", `{"types":{"column":"type","payments":["P"],"refunds":["R"]}}`)
			found := b.run(typed+c.rows, "--mapping "+mapping, gatewayctl.ExitFailed)
			b.Equal("counts", found.Counts, c.count)
			b.Equal("theirs", found.Totals[0].Theirs, c.theirs)
			b.Equal("fees", found.Totals[0].Fees, c.fees)
		})
	}
	t.Run("by its status", func(t *testing.T) {
		b := newBooks(t)
		found := b.run(heading+"R1,ShopA_9,1000,XOF,paid,2026-03-01T12:00:01Z,,\n"+
			"R1,,1000,XOF,refunded,2026-03-01T13:00:01Z,,\n", "", gatewayctl.ExitFailed)
		b.Equal("counts", found.Counts, map[result.Class]int{result.TheirsAlone: 2})
		b.Equal("theirs", found.Totals[0].Theirs, "0")
	})
}

// Rows without a common key are proposed by amount, payer and time. They stay differences.
func TestProposals(t *testing.T) {
	for name, c := range map[string]struct {
		row  string
		want bool
	}{
		"the same minute":  {"R9,,1000,XOF,paid,2026-03-01T12:01:30Z,,**2000\n", true},
		"another payer":    {"R9,,1000,XOF,paid,2026-03-01T12:00:30Z,,**2001\n", false},
		"another amount":   {"R9,,1001,XOF,paid,2026-03-01T12:00:30Z,,**2000\n", false},
		"ten minutes late": {"R9,,1000,XOF,paid,2026-03-01T12:10:30Z,,**2000\n", false},
		"no payer":         {"R9,,1000,XOF,paid,2026-03-01T12:00:30Z,,\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			b.pay(1)
			found := b.run(heading+c.row, "", gatewayctl.ExitFailed)
			b.Equal("counts", found.Counts, map[result.Class]int{result.TheirsAlone: 1, result.OursAlone: 1})
			b.Equal("proposed", found.Differences[0].Proposal == "pay#ShopA_1", c.want)
			b.Equal("proposed to ours", found.Differences[1].Proposal == "line 2 R9", c.want)
		})
	}
}

// The fee of each paid row is compared with the contract's terms.
func TestFees(t *testing.T) {
	for name, c := range map[string]struct {
		fee  string
		want result.Class
	}{
		"the contract's": {"11", result.Equal}, "less": {"10", result.FeeDiffers},
		"none": {"", result.FeeDiffers},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			b.pay(1)
			mapping := b.write("m.json", `{"fee_terms": {"basis_points": 105, "rounding": "up"}}`)
			path := b.write("s.csv", heading+"R1,,1000,XOF,paid,2026-03-01T12:00:00Z,"+c.fee+",\n")
			code, out, stderr := b.Exec(b.line(path, "--json --mapping "+mapping))
			var found document
			gatewayctltest.Decode(t, out, &found)
			if found.Counts[c.want] != 1 {
				t.Errorf("exit %d, counts %v: %s", code, found.Counts, stderr)
			}
		})
	}
}

// The day is that of the statement's offset. Other accounts, platforms and SMS are not compared.
func TestWhatIsCompared(t *testing.T) {
	b := newBooks(t)
	at := func(at time.Time) func(*ledger.Entry) {
		return func(e *ledger.Entry) { e.CreatedAt, e.FinalAt = at, at }
	}
	midnight := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	b.pay(1, at(midnight.Add(-time.Hour)))
	b.pay(2, at(midnight.Add(23*time.Hour)))
	b.pay(3, func(e *ledger.Entry) { e.Route.Account = "a2" })
	b.pay(4, func(e *ledger.Entry) { e.Route.Account = "mtn-momo/a1" })
	b.AddUnknownSMS(b.shop, "m1")
	const rows = heading + "R1,,1000,XOF,paid,2026-03-01T00:30:00+01:00,,\n"
	b.Equal("counts at +01:00", b.run(rows, "--utc-offset +01:00 --account a1", gatewayctl.ExitDone).Counts,
		map[result.Class]int{result.Equal: 1})
	b.Equal("counts in UTC", b.run(rows, "--account a1", gatewayctl.ExitFailed).Counts,
		map[result.Class]int{result.OtherDay: 1, result.OursAlone: 1})
	b.Equal("counts of all accounts", b.run(rows, "", gatewayctl.ExitFailed).Counts,
		map[result.Class]int{result.OtherDay: 1, result.OursAlone: 2})
	b.UseSandboxOperator()
	b.ExpectExit(b.line(b.write("s.csv", rows), "--account a9"), gatewayctl.ExitUsage,
		"the accounts of sandbox are: a1")
	b.Equal("counts without the days beside", b.run(rows, "--account a1 --neighbours 0", gatewayctl.ExitFailed).Counts,
		map[result.Class]int{result.TheirsAlone: 1, result.OursAlone: 1})
}
