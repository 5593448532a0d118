package pages

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/market"
	"mobilegateway/shared/oneapi"
	"mobilegateway/shared/operator"
)

const merchantsPage = "docs/merchants.md"

// tableRows returns the rows of the tables in a section of a page, until the next heading of any level, without the
// rules below the headings.
func tableRows(t *testing.T, name, title string) [][]string {
	t.Helper()
	text := readFile(t, name)
	_, section, found := strings.Cut(text, "# "+title+"\n")
	if !found {
		t.Fatalf("%s has no section %q", name, title)
	}
	section, _, _ = strings.Cut(section, "\n#")
	var rows [][]string
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// TestErrorsAreDocumented compares the page's table of errors with the table that renders errors: each id, all its
// statuses, and an action.
func TestErrorsAreDocumented(t *testing.T) {
	want, got := map[string][]string{}, map[string][]string{}
	add := func(to map[string][]string, id, status string) {
		if !slices.Contains(to[id], status) {
			to[id] = append(to[id], status)
		}
	}
	for _, kind := range fault.Kinds() {
		response := oneapi.Render(&fault.Fault{Kind: kind,
			OperatorException: &fault.OperatorException{MessageID: "SVC0270"}})
		add(want, response.MessageID, strconv.Itoa(response.Status))
	}
	for _, message := range oneapi.Messages() {
		if want[message.ID] == nil {
			add(want, message.ID, strconv.Itoa(message.Status))
		}
	}
	for _, row := range tableRows(t, merchantsPage, "Errors")[1:] {
		if len(row) != 4 || row[2] == "" || row[3] == "" {
			t.Errorf("row %q: want an id, its statuses, its meaning and an action", row)
			continue
		}
		for status := range strings.SplitSeq(row[1], ", ") {
			add(got, row[0], status)
		}
	}
	for id, statuses := range want {
		slices.Sort(statuses)
		slices.Sort(got[id])
		if !slices.Equal(got[id], statuses) {
			t.Errorf("%s has the statuses %v, the page says %v", id, statuses, got[id])
		}
	}
	for id := range got {
		if want[id] == nil {
			t.Errorf("the page has %s, which is not an error of the gateway", id)
		}
	}
}

// TestRulesOfFieldsAreDocumented compares the parts that have a rule on the page with those that the functions read.
func TestRulesOfFieldsAreDocumented(t *testing.T) {
	documented, read := map[string]bool{"gw-token": true, "gw-alias": true}, map[string]bool{}
	for _, row := range tableRows(t, merchantsPage, "The rule of each field") {
		for _, part := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[0], -1) {
			documented[part[1]] = true
		}
	}
	for _, function := range []string{"charge", "pay", "sms"} {
		source := readFile(t, "functions/"+function+"/request.go")
		for _, part := range regexp.MustCompile(`(?m)^\tpart\w+ += "([^"]+)"`).FindAllStringSubmatch(source, -1) {
			name := strings.TrimPrefix(part[1], "amountTransaction.")
			read[strings.TrimPrefix(name, "outboundSMSMessageRequest.")] = true
		}
	}
	if len(read) < 30 {
		t.Fatalf("found only %d parts in the functions", len(read))
	}
	for part := range read {
		if !documented[part] {
			t.Errorf("docs/merchants.md has no rule of %s", part)
		}
	}
	for part := range documented {
		if !read[part] && !strings.HasPrefix(part, "gw-") {
			t.Errorf("docs/merchants.md has a rule of %s, which no function reads", part)
		}
	}
}

// TestCountriesAreDocumented compares the page's countries with the country table.
func TestCountriesAreDocumented(t *testing.T) {
	text := "| Country | country-code | X-Operator-MCO | Currency | Decimals | SMS sender begins with |\n" +
		"|---|---|---|---|---|---|\n"
	for _, c := range market.All() {
		decimals := strconv.Itoa(c.Exponent)
		if c.ChargesInMinorUnits {
			decimals += "; a **charge** counts units, 100 to one: `\"15\"` is 0.15 " + c.Currency
		}
		text += fmt.Sprintf("| %s | %s | %s | %s | %s | `%s` |\n", c.Name, c.Alpha2, c.MCO, c.Currency, decimals,
			c.SenderPrefix())
	}
	comparePrinted(t, merchantsPage, "countries", text)
}

// TestContractListsCountries checks that docs/openapi.yaml lists all countries if it lists any: in the values of
// the headers and in the rules per country.
func TestContractListsCountries(t *testing.T) {
	text := readFile(t, "docs/openapi.yaml")
	contract := text
	for _, list := range [][]string{market.Alpha2s(), market.MCOs()} {
		if !strings.Contains(contract, "enum: ["+strings.Join(list, ", ")) {
			t.Errorf("no header has the values %v", list)
		}
		rules := func(code string) int { return len(regexp.MustCompile(`[ {]`+code+`: `).FindAllString(contract, -1)) }
		for _, code := range list {
			if n := rules(code); n == 0 || n != rules(list[0]) {
				t.Errorf("%s has %d rules, %s has %d", code, n, list[0], rules(list[0]))
			}
		}
	}
	for _, c := range market.All() {
		for _, line := range regexp.MustCompile(`enum: \[XOF, [^]]*\]`).FindAllString(contract, -1) {
			if !strings.Contains(line, c.Currency) {
				t.Errorf("%s lacks %s", line, c.Currency)
			}
		}
	}
}

// TestTestNumbersAreDocumented compares the page's test numbers with the operators' table of outcomes.
func TestTestNumbersAreDocumented(t *testing.T) {
	source := readFile(t, "world/operators/kit/outcome.go")
	documented := map[string]bool{}
	for _, row := range tableRows(t, merchantsPage, "Test numbers")[1:] {
		documented[row[0]] = true
	}
	count := 0
	for _, row := range regexp.MustCompile(`(?m)^\t"(\d{4})": `).FindAllStringSubmatch(source, -1) {
		count++
		if !documented[row[1]] {
			t.Errorf("the page lacks the test number %s", row[1])
		}
	}
	if count < 11 || len(documented) != count+1 {
		t.Errorf("the sandbox has %d outcomes, the page %d rows", count, len(documented))
	}
}

// TestOperatorsAreDocumented compares the merchants' table of operators with what their own platforms reach. The table
// also marks where a payment needs a one-time code. Operators of equal services that follow each other share a row.
func TestOperatorsAreDocumented(t *testing.T) {
	countries := market.Alpha2s()
	text := "| | " + strings.Join(countries, " | ") + " |\n|---|" + strings.Repeat("---|", len(countries)) + "\n"
	var names []string
	var before string
	for _, name := range append(operator.Names(), "") {
		var services string
		for _, country := range countries {
			cell := servicesOf(name, country)
			if needsOTP(t, name, country) {
				cell = strings.Replace(cell, "ussd", "ussd with `otp_code`", 1)
			}
			services += " | " + cell
		}
		if len(names) > 0 && (services != before || name == "") {
			text += "| " + strings.Join(names, ", ") + before + " |\n"
			names = nil
		}
		if before = services; name != "sandbox" { // no operator's own platform
			names = append(names, "`"+name+"`")
		}
	}
	comparePrinted(t, merchantsPage, "operators", text)
}

// TestPlatformsAreDocumented compares the list of the operators' platforms with their rows, and each with its page.
func TestPlatformsAreDocumented(t *testing.T) {
	text := "| Page | Platform | Operators | Countries | Serves |\n|---|---|---|---|---|\n"
	for _, platform := range operator.Platforms() {
		row, _ := operator.FindCapabilities(platform)
		if row.DriverName == "gateway" {
			continue
		}
		var names []string
		for _, reach := range row.Reach {
			names = append(names, reach.Operator)
		}
		serves := slices.Clone(row.Channels)
		if slices.Contains(row.Operations, operator.AccountSMS) {
			serves = append(serves, "SMS")
		}
		text += fmt.Sprintf("| [%s](%s.md) | `%s` | %s | %s | %s |\n", row.DriverName, row.DriverName, platform,
			strings.Join(names, ", "), strings.Join(row.Countries(), ", "), strings.Join(serves, ", "))
	}
	comparePrinted(t, "docs/operators/README.md", "platforms", text)
}

// TestShortCodesAreDocumented compares the merchants' table of short codes with the platforms' rows. A code has a
// condition if another platform of the operator sends a push.
func TestShortCodesAreDocumented(t *testing.T) {
	text := "| Operator | Country | The customer dials |\n|---|---|---|\n"
	for _, name := range operator.Names() {
		for _, country := range market.Alpha2s() {
			dials, hasPush := "", false
			for _, platform := range operator.Platforms() {
				row, _ := operator.FindCapabilities(platform)
				if row.DriverName == "gateway" || !row.Offers(operator.Service{
					Operator: name, Country: country, Operation: operator.AccountPay, Channel: "ussd",
				}) {
					continue
				}
				if code := row.ShortCode(name, country); code != "" {
					dials = code
				} else {
					hasPush = true
				}
			}
			if dials == "" {
				continue
			}
			cell := "`" + dials + "`"
			if hasPush {
				cell += ", if no push comes"
			}
			text += fmt.Sprintf("| `%s` | %s | %s |\n", name, country, cell)
		}
	}
	comparePrinted(t, merchantsPage, "short codes", text)
}

// needsOTP reports whether an operator's own platform requires otp_code on tpe and ussd: by its row, or, if some of its
// operators need one, by its driver.
func needsOTP(t *testing.T, name, country string) bool {
	t.Helper()
	for _, platform := range operator.Platforms() {
		row, _ := operator.FindCapabilities(platform)
		if row.DriverName == "gateway" || row.OTPRule == operator.OTPUnused || !row.Offers(operator.Service{
			Operator: name, Country: country, Operation: operator.AccountPay, Channel: "ussd",
		}) {
			continue
		}
		checker, checks := sampleDriver(t, platform, nil).(operator.PaymentChecker)
		if row.OTPRule == operator.OTPRequired {
			return true
		}
		if checks {
			pay := samplePayment(platform, name, country)
			without := checker.CheckPayment(t.Context(), pay)
			pay.OTP = "914263"
			if with := checker.CheckPayment(t.Context(), pay); with != nil {
				t.Errorf("%s refuses a payment of %s in %s with a code: %v", platform, name, country, with)
			}
			if without != nil && without.Part == "otp_code" {
				return true
			}
		}
	}
	return false
}

// servicesOf returns what the operators' own platforms offer, as a cell has it: "web, tpe; SMS", or "-".
func servicesOf(name, country string) string {
	offers := func(operation, channel string) bool {
		return slices.ContainsFunc(operator.Platforms(), func(platform string) bool {
			row, _ := operator.FindCapabilities(platform)
			return row.DriverName != "gateway" && row.Offers(operator.Service{
				Operator: name, Country: country, Operation: operation, Channel: channel,
			})
		})
	}
	var cell []string
	channels := slices.DeleteFunc(operator.Channels(), func(c string) bool { return !offers(operator.AccountPay, c) })
	if len(channels) > 0 {
		cell = append(cell, strings.Join(channels, ", "))
	}
	if offers(operator.AccountSMS, "") {
		cell = append(cell, "SMS")
	}
	if len(cell) == 0 {
		return "-"
	}
	return strings.Join(cell, "; ")
}
