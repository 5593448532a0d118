package pages

import (
	"slices"
	"testing"

	"mobilegateway/shared/operator"
)

// TestUserSMSIsDocumented compares the payer's SMS on the page with the sandbox's template.
func TestUserSMSIsDocumented(t *testing.T) {
	order := "DemoShop_17954728417"
	row, _ := operator.FindCapabilities("sandbox")
	want := row.UserSMSTemplates.Render("fr", operator.UserSMSValues{
		Amount: "1500", Currency: "XOF", Merchant: "DemoShop", OrderID: order,
	})
	p := findPage(t, "docs/getting-started.md")
	if !slices.ContainsFunc(p.blocks, func(b block) bool { return b.text == want+"\n" }) {
		t.Errorf("%s does not show the payer's SMS %q", p.name, want)
	}
}
