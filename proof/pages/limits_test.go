package pages

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/oneapi"
)

// constantOf returns a constant of a source file: a whole number.
func constantOf(t *testing.T, file, name string) int {
	t.Helper()
	found := regexp.MustCompile(`(?m)^\s*(?:const )?` + name + ` += (\d+)`).FindStringSubmatch(readFile(t, file))
	if found == nil {
		t.Fatalf("%s has no constant %s", file, name)
	}
	value, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestLimitsAreDocumented compares the merchants' table of limits with the constants of the functions. Those of one row
// must be equal.
func TestLimitsAreDocumented(t *testing.T) {
	const charge, pay, sms = "functions/charge/request.go", "functions/pay/request.go", "functions/sms/request.go"
	type constant struct{ file, name string }
	rows := map[string]string{}
	for _, row := range tableRows(t, merchantsPage, "Limits") {
		rows[row[0]] = strings.ReplaceAll(row[1], ",", "")
	}
	for part, c := range map[string]struct {
		unit      string
		constants []constant
	}{
		"`order_id`, `reference`": {" characters", []constant{{pay, "maxOrderLength"}, {pay, "maxReferenceLength"}}},
		"`referenceCode`, `clientCorrelator`, names": {" characters", []constant{
			{charge, "maxIdentifierLength"}, {sms, "maxCorrelatorLength"},
		}},
		"`description`, `callbackData`": {" characters", []constant{
			{charge, "maxDescriptionLength"}, {sms, "maxCallbackDataLength"},
		}},
		"`state`": {" bytes", []constant{{pay, "maxStateBytes"}}},
		"URLs, header values": {" characters", []constant{
			{pay, "maxURLLength"}, {sms, "maxURLLength"}, {"shared/validate/validate.go", "maxHeaderBytes"},
		}},
		"SMS text, sender name": {
			fmt.Sprintf(" characters; %d", constantOf(t, sms, "maxSenderNameLength")),
			[]constant{{sms, "maxMessageCharacters"}},
		},
	} {
		for _, constant := range c.constants {
			want := strconv.Itoa(constantOf(t, constant.file, constant.name)) + c.unit
			if rows[part] != want {
				t.Errorf("%s has %q for %s; by %s in %s it is %q",
					merchantsPage, rows[part], part, constant.name, constant.file, want)
			}
		}
	}
}

// TestStatusesAreRetried checks that the merchants' table of retries has a row for each HTTP status of an error.
func TestStatusesAreRetried(t *testing.T) {
	var got []string
	for _, row := range tableRows(t, merchantsPage, "What may I retry?")[1:] {
		got = append(got, regexp.MustCompile(`\b[245]\d\d\b`).FindAllString(row[0], -1)...)
	}
	for _, kind := range fault.Kinds() {
		status := strconv.Itoa(oneapi.Render(&fault.Fault{
			Kind: kind, OperatorException: &fault.OperatorException{MessageID: "SVC0270"},
		}).Status)
		if !slices.Contains(got, status) {
			t.Errorf("%s has no row of %s, which %v renders", merchantsPage, status, kind)
		}
	}
}
