package counts_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/counts"
	"mobilegateway/gatewayctl/counts/daycount"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/proof/kits/gatewayctltest"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
)

// yesterday is a closed day of ShopA with two partitions and of ShopB. ShopA has 240 payments, and one of them waits.
// ShopB has an unknown charge.
func yesterday(t *testing.T) (d *gatewayctltest.Tool, shop merchants.Onboarding) {
	t.Helper()
	d, shop = gatewayctltest.NewShop(t)
	other := d.Onboard("ShopB")
	d.Apply("merchant change ShopA --day-shards 2")
	const payments = 240
	for i := range payments {
		d.AddDeliveredPayment(shop, i, d.Now.Add(time.Duration(i)*time.Second), func(e *ledger.Entry) {
			e.Merchant.DayShard = ledger.DayShardAmong(e.Key, 2)
			if i == 0 {
				e.Status = ledger.Pending
			}
		})
	}
	d.AddUnknownCharge(other, "c1")
	d.Now = d.Now.Add(session.Day)
	d.AddDeliveredPayment(shop, payments, d.Now)
	return d, shop
}

// A closed day is counted from the ledger, and stored with --yes only. A rerun stores nothing, and a later change is
// counted by the next one.
func TestCountDay(t *testing.T) {
	d, shop := yesterday(t)
	d.ExpectOutput("counts --day yesterday", "With --yes this would be:", "MERCHANT", "SUCCEEDED", "AMOUNTS",
		"ShopA", "sandbox", "CI", "pay", "240", "239", "0", "0", "1", "239000 XOF", "new",
		"ShopB", "charge", "1", "0", "0", "1", "new")
	d.ExpectExit("counts --day yesterday", gatewayctl.ExitDone, "Dry run: this would count the transactions of a day, "+
		"2026-03-01 of all merchants: 241 transactions of 2 merchants: 2 new, 0 changed, 0 same, 0 kept")
	d.Equal("stored by a dry run", d.Counts.Saves, 0)

	d.Apply("counts --day 2026-03-01")
	first := maps.Clone(d.Counts.Forms)
	d.Equal("stored", d.Counts.Saves, 2)
	d.ExpectOutput("counts --day yesterday --yes --reason again", "same", "same")
	d.Equal("stored by a rerun", d.Counts.Saves, 2)
	d.Equal("forms after a rerun", d.Counts.Forms, first)

	d.Update(ledger.Key{Kind: ledger.Payment, ID: "ShopA_0"}, func(e *ledger.Entry) { e.Status = ledger.Successful })
	day := gatewayctltest.Change[counts.Day](d, "counts --day yesterday --merchant shopa")
	d.Equal("changed", day.Merchants, []counts.MerchantCount{{
		Merchant: "ShopA", ID: shop.ID, Change: "changed",
		Total: daycount.Numbers{Number: 240, Succeeded: 240, Amounts: map[string]int64{"XOF": 240000}},
		Rows: []daycount.Row{{Operator: "sandbox", Country: "CI", Operation: ledger.Payment, Numbers: daycount.Numbers{
			Number: 240, Succeeded: 240, Amounts: map[string]int64{"XOF": 240000},
		}}},
	}})
	d.ExpectOutput("audit list", "count the transactions of a day", "2026-03-01 of all merchants",
		"2026-03-01 of ShopA")
}

// A count stays if the ledger does not have some of its transactions any more.
func TestCountOutlivesRetention(t *testing.T) {
	d, shop := yesterday(t)
	key := daycount.KeyOf(shop.ID, d.Now.Add(-session.Day))
	var before daycount.Count
	for range 250 {
		before.Add(&ledger.Entry{
			Key: ledger.Key{Kind: ledger.SMS}, Route: ledger.Route{Operator: "sandbox", Country: "CI"},
		})
	}
	d.Counts.Forms[key] = before.Encode()
	d.ExpectOutput("counts --day yesterday --yes --reason daily", "ShopA", "sms", "250", "kept", "ShopB", "new")
	d.Equal("stored", d.Counts.Forms[key], before.Encode())
}

// Today is computed and shown, and never stored.
func TestTodayIsPartial(t *testing.T) {
	d, _ := yesterday(t)
	today := gatewayctltest.Query[counts.Day](d, "counts --day today")
	d.Equal("partial", today.Partial, true)
	d.Equal("counted so far", today.Merchants[0].Total.Number, 1)
	d.ExpectOutput("counts --day today", "2026-03-02", "ShopA", "partial")
	d.ExpectExit("counts --day today --yes --reason now", gatewayctl.ExitUsage, "has not ended")
	d.ExpectExit("counts --day 2026-03-03", gatewayctl.ExitUsage, "has not begun")
	d.ExpectExit("counts --day today --since today", gatewayctl.ExitUsage, "--day excludes")
	d.Equal("stored", d.Counts.Saves, 0)
}

// A range shows what is stored, and which days are not counted. A merchant has no day before it was added.
func TestStoredCounts(t *testing.T) {
	d, shop := yesterday(t)
	d.Apply("counts --day yesterday --merchant ShopB")
	days := gatewayctltest.Query[[]counts.Day](d, "counts --since 2026-02-27 --until 2026-03-02")
	var lines []string
	for _, day := range days {
		line := day.Day
		for _, m := range day.Merchants {
			line += " " + m.Merchant
		}
		if day.Partial {
			line += " partial"
		}
		lines = append(lines, line+" without "+strings.Join(day.Missing, " "))
	}
	d.Equal("days", lines, []string{"2026-02-27 without ", "2026-02-28 without ", "2026-03-01 ShopB without ShopA",
		"2026-03-02 partial without ShopA ShopB"})
	d.ExpectOutput("counts", "2026-03-01", "ShopB", "charge", "ShopA", "not counted", "2026-03-02",
		"partial, not counted")
	d.ExpectExit("counts --since 2026-03-02 --until 2026-03-01", gatewayctl.ExitUsage, "the range is empty")
	d.ExpectExit("counts --since 2024-03-02", gatewayctl.ExitUsage, "at most 400 at once")

	d.Counts.Forms[daycount.KeyOf(shop.ID, d.Now.Add(-session.Day))] = `{"v":9}`
	d.ExpectExit("counts", gatewayctl.ExitFailed,
		"2026-03-01 of ShopA: a newer version of gatewayctl stored this count")
	d.ExpectBoth("counts --day yesterday", gatewayctl.ExitFailed, "a newer version of gatewayctl stored this count")
	d.Counts.Forms[daycount.KeyOf(shop.ID, d.Now.Add(-session.Day))] = `{"v":1,"ro`
	d.ExpectExit("counts", gatewayctl.ExitFailed, "the stored count is damaged: count the day again")
	d.Apply("counts --day yesterday")
	d.ExpectOutput("counts", "ShopA", "239000 XOF")
}

// A table that throttles is read again, and one that stays so is an error. A failed write leaves the other counts.
func TestCountsOverFailingTables(t *testing.T) {
	d, _ := yesterday(t)
	waits := 0
	batches := throttledBatches{d.Ledger, 70}
	d.ChangeStores(func(s *deployment.Stores) {
		s.Batches = batches
		s.Sleep = func(context.Context, time.Duration) error { waits++; return nil }
	})
	d.Counts.Unread = true
	d.Apply("counts --day yesterday")
	d.Equal("waited", waits > 2, true)
	forms := slices.Collect(maps.Values(d.Counts.Forms))
	d.Equal("whole in spite of it", strings.Contains(strings.Join(forms, ""), `"number":240`), true)
	d.ChangeStores(func(s *deployment.Stores) {
		s.Batches = throttledBatches{d.Ledger, 0}
		s.Sleep = func(context.Context, time.Duration) error { return nil }
	})
	d.ExpectBoth("counts --day yesterday", gatewayctl.ExitFailed, "the table throttles reads")
	d.ChangeStores(func(s *deployment.Stores) { s.Counts = nil })
	d.ExpectExit("counts --day yesterday", gatewayctl.ExitUsage, "LIMIT_TABLE is not set")
}

// throttledBatches reads only the first keys of each batch.
type throttledBatches struct {
	*storetest.Ledger
	read int
}

func (b throttledBatches) GetBatch(
	ctx context.Context, keys []ledger.Key,
) (map[ledger.Key]*ledger.Entry, []ledger.Key, error) {
	count := min(b.read, len(keys))
	found, _, err := b.Ledger.GetBatch(ctx, keys[:count])
	return found, keys[count:], err
}

// The real table keeps the bytes, and refuses to replace a newer form.
func TestTable(t *testing.T) {
	d, client, _ := gatewayctltest.NewOnLocalAWS(t)
	table := daycount.Table{Client: client.DynamoDB(), Name: "limits"}
	keys := []daycount.Key{{MerchantID: "m#1", Day: "2026-03-01"}, {MerchantID: "m#1", Day: "2026-03-02"}}
	form := daycount.Count{}.Encode()
	for range 2 {
		if err := table.Save(t.Context(), keys[0], form); err != nil {
			t.Fatal(err)
		}
	}
	forms, unread, err := table.Load(t.Context(), keys)
	d.Equal("loaded", forms, map[daycount.Key]string{keys[0]: form})
	if err != nil || len(unread) > 0 {
		t.Errorf("unread %v, %v", unread, err)
	}
	newer := dynamoitem.Key("counts#m#1#2026-03-02")
	newer["counts_version"], newer["counts"] = dynamoitem.Number(9), dynamoitem.Text(`{"v":9}`)
	_, err = client.DynamoDB().PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("limits"), Item: newer,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Save(t.Context(), keys[1], form); !errors.Is(err, daycount.ErrVersion) {
		t.Errorf("over a newer form: %v", err)
	}
}
