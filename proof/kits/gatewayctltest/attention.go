package gatewayctltest

import (
	"testing"

	"mobilegateway/gatewayctl/attention"
	"mobilegateway/gatewayctl/merchants"
)

// NewQuiet returns a deployment in which nothing waits for a person.
func NewQuiet(t *testing.T) (*Tool, merchants.Onboarding) {
	t.Helper()
	d, shop := NewShop(t)
	d.Apply("keys add tokens", "keys add callbacks")
	d.UseSandboxOperator()
	return d, shop
}

// Line is a line without its time.
type Line struct{ What, Merchant, Subject, Detail, Command string }

// Attend runs attention, which must end with a code, and returns its lines.
func Attend(d *Tool, line string, want int) []Line {
	d.T.Helper()
	code, out, stderr := d.Exec(line + " --json")
	if code != want {
		d.T.Fatalf("%s: exit %d, want %d: %s%s", line, code, want, out, stderr)
	}
	var views []attention.View
	Decode(d.T, out, &views)
	var lines []Line
	for i, v := range views {
		if i > 0 && v.Since.Before(views[i-1].Since) {
			d.T.Errorf("%s: line %d is older than the one before it: %s", line, i, out)
		}
		lines = append(lines, Line{v.What, v.Merchant, v.Subject, v.Detail, v.Command})
	}
	return lines
}
