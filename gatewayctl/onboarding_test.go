package gatewayctl

import (
	"strings"
	"testing"
)

// The output of merchant add is all that the merchant needs: its credentials, the base address and the constants.
func TestOnboardingHasEverything(t *testing.T) {
	d := newTestTool(t)
	d.apply("keys add webhooks")
	const line = "merchant add ShopA --country ci,sn --operator sandbox --requests-per-second 5 --daily-amount XOF=900"
	code, out, stderr := d.run(line)
	if code != ExitDone || !strings.Contains(stderr, "needs APPLICATION_ID, BASE_URL, CONTACT_ID, SERVICE_ID: ") ||
		!strings.Contains(out, "not known here: the output BaseUrl of the stack") {
		t.Errorf("without the platform's values: exit %d: %s%s", code, out, stderr)
	}
	d.variables["BASE_URL"], d.variables["SERVICE_ID"] = "https://api.example", "SERVICE-1"
	d.variables["APPLICATION_ID"], d.variables["CONTACT_ID"] = "APP-1", "CONTACT-1"
	got := query[onboardingResult](d, line)
	checkEqual(t, "platform", got.platform, platform{"https://api.example", "SERVICE-1", "APP-1", "CONTACT-1"})
	checkEqual(t, "flag over variable",
		query[onboardingResult](d, line+" --base-url https://other.example").BaseURL, "https://other.example")
	code, out, stderr = d.run(line + confirmFlags)
	if code != ExitDone || stderr != "" {
		t.Errorf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{
		"For ShopA: ", "base address ", "https://api.example", "gwl_", "client id ", "gwc_", "whsec_",
		"an order_id: ShopA_ and digits", "SERVICE-1", "APP-1", "CONTACT-1", "onBehalfOf ", "CI, SN", "sandbox",
		"5, and 5 at once", "900 XOF",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the text lacks %q:\n%s", want, out)
		}
	}
}
