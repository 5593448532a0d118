package console

import "slices"

// deliveriesPage is the data of the page of deliveries.
type deliveriesPage struct {
	Merchants []string
	Merchant  string
	State     string
	States    []string
	Tables    []table
}

// loadDeliveries shows the endpoints and the notifications of one merchant, and without one what waits for a person.
func loadDeliveries(q *query) any {
	d := deliveriesPage{Merchant: q.form.Get("merchant"), State: q.form.Get("state"),
		States: []string{"waiting", "dead-letter", "parked", "delivered", "all"}}
	names := q.read(merchantList.line...)
	for _, m := range list(names.Value) {
		d.Merchants = append(d.Merchants, text(m["name"]))
	}
	if !slices.Contains(d.States, d.State) {
		d.State = d.States[0]
	}
	if d.Merchant == "" {
		waiting := attentionList
		waiting.keep = func(row map[string]any) bool {
			return raw(row["what"]) == "dead-letter" || raw(row["what"]) == "endpoint-disabled"
		}
		d.Tables = []table{q.table(waiting)}
		return d
	}
	all := []listing{{
		title: "endpoints", line: []string{"endpoint", "list", "--", d.Merchant}, survey: true, columns: endpointList,
		acts: func(row map[string]any) []act {
			change, label := "disable", "act.endpoint-disable"
			if enabled, _ := row["enabled"].(bool); !enabled || number(row["parked"]) > 0 {
				change, label = "enable", "act.endpoint-enable"
			}
			return []act{{label, []string{"endpoint", change, "--url=" + raw(row["url"]), "--", d.Merchant}, "", nil}}
		},
	}, {
		title: "notifications", line: []string{"deliveries", "list", "--state=" + d.State, "--", d.Merchant},
		survey: true, columns: notificationColumns, newest: true,
		acts: func(row map[string]any) []act { return deliveryActs(raw(row["id"]), raw(row["state"])) },
	}}
	d.Tables = lists(all...)(q).([]table)
	return d
}

// deliveryActs send the notifications of a transaction again, or now.
func deliveryActs(id, state string) []act {
	if state == "waiting" || state == "parked" {
		return []act{{"act.send", []string{"deliveries", "send", "--", id}, "", nil}}
	}
	return []act{{"act.replay", []string{"deliveries", "replay", "--", id}, "", nil}}
}

// merchantPage is the data of the page of one merchant.
type merchantPage struct {
	Name   string
	Result result
	Facts  []fact
	Tables []table
	Acts   []act
}

// fact is a line of facts. Its label has the text key c.<Field>.
type fact struct {
	Field string
	Cell  cell
}

var merchantFacts = []column{
	{"id", "code"}, {"status", "word"}, {"created", "time"}, {"updated", "time"}, {"operations", ""}, {"countries", ""},
	{"home_country", ""}, {"operators", ""}, {"on_behalf_of", ""}, {"sender_names", ""}, {"notif_url", "code"},
	{"notification_hosts", ""}, {"charge_notif", "word"}, {"requests_per_second", ""}, {"burst", ""},
	{"daily_amounts", ""}, {"day_shards", ""}, {"generation", ""},
}

var credentialColumns = []column{{"number", ""}, {"created", "time"}, {"expires", "time"}, {"live", "word"}}

// loadMerchant shows a merchant's profile. No command of the tool returns a secret without --yes.
func loadMerchant(q *query) any {
	name := q.form.Get("name")
	m := merchantPage{Name: name, Result: q.read("merchant", "show", "--", name)}
	m.Facts = facts(m.Result.Value, merchantFacts)
	for _, l := range []listing{
		{title: "tokens", within: "tokens", columns: credentialColumns},
		{title: "client-secrets", within: "client_secrets", columns: credentialColumns},
		{title: "webhook-secrets", within: "webhook_secrets", columns: []column{
			{"version", ""}, {"key_number", ""}, {"created", "time"},
		}},
	} {
		m.Tables = append(m.Tables, l.arrange(m.Result))
	}
	switch raw(field(m.Result.Value, "status")) {
	case "active":
		m.Acts = []act{{"act.suspend", []string{"merchant", "suspend", "--", name}, "", nil}}
	case "suspended":
		m.Acts = []act{{"act.resume", []string{"merchant", "resume", "--", name}, "", nil}}
	}
	return m
}
