package pawapay_test

import (
	"strings"
	"testing"

	"mobilegateway/proof/kits/operatortest"
	"mobilegateway/proof/kits/stubtest"
	"mobilegateway/shared/operator"
	"mobilegateway/world/operators/kit"
	stub "mobilegateway/world/operators/pawapay"
)

// conf is the active configuration of the stub's account.
func conf(t *testing.T) string {
	t.Helper()
	h := stub.New(kit.Config{}, stub.DefaultCredentials()).Handler()
	status, body := stubtest.To(t, h).Do("GET", "/v2/active-conf?operationType=DEPOSIT", "",
		"Authorization", "Bearer stub-pawapay-token")
	if status != 200 {
		t.Fatal(status, body)
	}
	return body
}

func allServices() (services []operator.Service) {
	row, _ := operator.FindCapabilities(platform)
	for _, r := range row.Reach {
		for _, country := range r.Countries {
			services = append(services, operator.Service{Operator: r.Operator, Country: country})
		}
	}
	return services
}

func TestCheckAccount(t *testing.T) {
	all := conf(t)
	cases := []struct {
		name, old, new string
		status         int
		want           string // "" for an account that fits
	}{
		{"fits", "", "", 200, ""},
		{"push instead of the short code", `"pinPrompt":"MANUAL"`, `"pinPrompt":"AUTOMATIC"`, 200,
			"MOOV_BFA: the payer's approval is PROVIDER_AUTH AUTOMATIC, and PROVIDER_AUTH MANUAL in the row"},
		{"another short code", "*133#", "*134#", 200, "MTN_MOMO_CIV: the payer does not dial *133#"},
		{"short code instead of the push", `"AUTOMATIC"`, `"MANUAL"`, 200,
			"approval is PROVIDER_AUTH MANUAL, and PROVIDER_AUTH AUTOMATIC in the row"},
		{"no code before the payment", `"PREAUTH"`, `"PROVIDER_AUTH"`, 200, "and PREAUTH in the row"},
		{"no decimals", `"TWO_PLACES"`, `"NONE"`, 200, "AIRTEL_COD takes no decimals in USD"},
		{"only Congolese francs", `"USD"`, `"GBP"`, 200, "VODACOM_MPESA_COD takes no deposits in USD"},
		{"no deposits", `"DEPOSIT"`, `"PAYOUT"`, 200, "FREE_SEN takes no deposits in XOF"},
		{"signed requests", `"companyName"`, `"signatureConfiguration":{"signedRequestsOnly":true},"x"`, 200,
			"takes only signed requests"},
		{"token", "", "", 403, "403"},
		{"HTML", all, html, 200, "the active configuration responded 200"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := all
			if c.old != "" {
				body = strings.ReplaceAll(all, c.old, c.new)
			}
			server := operatortest.NewStubOperator(t, respond(c.status, body))
			call := operator.Call{Platform: platform, AccountID: "a1", OrderID: "o", DriverData: "o"}
			notes, err := newDriver(t, server.URL).CheckAccount(t.Context(), call, allServices())
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if c.name == "fits" && (len(notes) != len(allServices()) ||
				notes[0] != "MTN_MOMO_CIV takes 1 to 2000000 XOF, is OPERATIONAL, and the payer's approval is "+
					"PROVIDER_AUTH MANUAL *133#") {
				t.Errorf("notes %q", notes)
			}
			suite(t).CheckPrivate(t, err)
		})
	}
}

// The page lists what the payer of each wallet sees, as the row has it.
func TestPageHasShortCodes(t *testing.T) {
	row, _ := operator.FindCapabilities(platform)
	for line := range strings.Lines(operatortest.ReadFile(t, "../../../../docs/operators/pawapay.md")) {
		cells := strings.Split(line, "|")
		if len(cells) != 8 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		country := map[string]string{
			"Ivory Coast": "CI", "Cameroon": "CM", "DR Congo": "CD", "Senegal": "SN", "Burkina Faso": "BF",
		}[strings.TrimSpace(cells[2])]
		want := row.ShortCode(strings.Trim(cells[1], " `"), country)
		if got := strings.Contains(cells[6], "dials `"+want+"`"); got != (want != "") {
			t.Errorf("%s: the row has the short code %q", strings.TrimSpace(line), want)
		}
	}
}
