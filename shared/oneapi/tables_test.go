package oneapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mobilegateway/shared/oneapi"
)

func TestMessagesAreConsistent(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range oneapi.Messages() {
		if seen[m.ID] {
			t.Errorf("%s is in the table twice", m.ID)
		}
		seen[m.ID] = true
		want := oneapi.PolicyException
		if strings.HasPrefix(m.ID, "SVC") {
			want = oneapi.ServiceException
		}
		if m.Exception != want || m.Text == "" || m.Status < 400 || m.Status > 599 {
			t.Errorf("row %+v", m)
		}
		if strings.Contains(m.Text, "%2") && !strings.Contains(m.Text, "%1") {
			t.Errorf("%s has %%2 without %%1", m.ID)
		}
	}
	oneapi.Messages()[0].ID = "changed"
	if oneapi.Messages()[0].ID != "SVC0001" {
		t.Error("Messages() gives the table itself away")
	}
}

// Specification, Errors: the table of internal codes in its order, with %1.
func TestPDKTableAgainstTheSpecification(t *testing.T) {
	want := []string{
		"PDK_SMSW_0001|Internal error|SVC0001|PDK_SMSW_0001",
		"PDK_SMSW_0002|Integration error|SVC0001|PDK_SMSW_0002",
		"PDK_SMSW_0003|Unavailable country|SVC0004|senderAddress value",
		"PDK_SMSW_0004|Duplicate client correlator|SVC0005|clientCorrelator value",
		"PDK_SMSW_0005|Missing input value|SVC0002|message part",
		"PDK_SMSW_0006|Invalid sender address|SVC0004|senderAddress value",
		"PDK_SMSW_0007|Invalid recipient address|SVC0004|address value",
		"PDK_SMSW_0008|Message too long|SVC0280|maximum message length",
		"PDK_SMSW_0009|Invalid input value|SVC0002|message part",
		"PDK_SMSW_0011|Backend API is unresponsive|SVC0001|PDK_SMSW_0011",
		"PDK_SMSW_0013|Service delivery platform is unresponsive|SVC0001|PDK_SMSW_0013",
		"PDK_SMSW_1000|Backend API internal error|SVC0001|PDK_SMSW_1000",
		"PDK_SMSW_1001|Resource consumption failure: not authorized|POL0001|Not enough credit",
		"PDK_SMSW_1002|Resource consumption failure: invalid parameter|POL0001|" +
			"No contract found for the given country / service / contact",
		"PDK_SMSW_1003|Resource consumption failure: not authorized|POL0001|Expired contract",
		"PDK_SMSW_1004|Resource consumption failure: unknown transaction ID|SVC0001|PDK_SMSW_1004",
		"PDK_SMSW_3000|Service delivery platform internal error|SVC0001|PDK_SMSW_3000",
		"PDK_SMSW_3001|Service delivery platform SLA error|SVC0001|PDK_SMSW_3001",
	}
	var got []string
	for _, row := range oneapi.PDKCodes() {
		got = append(got, fmt.Sprintf("%s|%s|%s|%s", row.Code, row.Description, row.MessageID, row.Variable))
		if !slices.ContainsFunc(oneapi.Messages(), func(m oneapi.Message) bool { return m.ID == row.MessageID }) {
			t.Errorf("%s maps to %s, which is not a message", row.Code, row.MessageID)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
