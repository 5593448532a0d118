package pages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
)

func has[ability any](driver operator.Driver) bool {
	_, found := driver.(ability)
	return found
}

// abilities are the optional interfaces of a driver.
var abilities = map[string]func(operator.Driver) bool{
	"Charger": has[operator.Charger], "PaymentSender": has[operator.PaymentSender],
	"MessageSender": has[operator.MessageSender], "StatusLookup": has[operator.StatusLookup],
	"PaymentCallbackReader":  has[operator.PaymentCallbackReader],
	"StaticCallbackVerifier": has[operator.StaticCallbackVerifier], "ReceiptReader": has[operator.ReceiptReader],
	"AccountDescriber": has[operator.AccountDescriber], "AccountChecker": has[operator.AccountChecker],
	"PaymentChecker": has[operator.PaymentChecker], "MessageChecker": has[operator.MessageChecker],
	"Preparer": has[operator.Preparer], "UserSMSSender": has[operator.UserSMSSender],
}

// TestInterfacesAreDocumented compares the guide's table of a driver's optional interfaces with those that the package
// operator declares, and with the drivers that have them.
func TestInterfacesAreDocumented(t *testing.T) {
	want, got := map[string]string{}, map[string]string{}
	for _, name := range declaredInterfaces(t) {
		ability, known := abilities[name]
		if !known {
			t.Errorf("operator.%s is not in this test's table of optional interfaces", name)
			continue
		}
		want["`"+name+"`"] = driversWith(ability)
	}
	for _, row := range tableRows(t, "docs/adding-an-operator.md", "3. Write the driver") {
		if len(row) == 3 && strings.HasPrefix(row[1], "`") {
			got[row[1]] = row[2]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("interfaces and the drivers that have them (-code +page):\n%s", diff)
	}
}

// declaredInterfaces returns the interfaces of the package operator that a driver may leave out.
func declaredInterfaces(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(rootDir, "shared", "operator", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if named, isType := n.(*ast.TypeSpec); isType && named.Name.IsExported() {
				if _, isInterface := named.Type.(*ast.InterfaceType); isInterface {
					names = append(names, named.Name.Name)
				}
			}
			return true
		})
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "Driver" || name == "RouteReader" })
}

// driversWith names the folders of the drivers that have an ability, as the guide does: "all but `orangesms`".
func driversWith(ability func(operator.Driver) bool) string {
	directory := drivers.NewDirectory(nil, nil, nil)
	var with, without []string
	for _, platform := range operator.Platforms() {
		driver, _, _ := directory.Driver(platform)
		folder := "`" + path.Base(reflect.TypeOf(driver).Elem().PkgPath()) + "`"
		switch {
		case slices.Contains(with, folder) || slices.Contains(without, folder):
		case ability(driver):
			with = append(with, folder)
		default:
			without = append(without, folder)
		}
	}
	switch {
	case len(without) == 0:
		return "all"
	case len(with) > len(without):
		return "all but " + strings.Join(without, ", ")
	}
	return strings.Join(with, ", ")
}

// TestCapabilitiesAreAsked checks that the guide has a question for each column of a platform's row.
func TestCapabilitiesAreAsked(t *testing.T) {
	var asked string
	for _, row := range tableRows(t, "docs/adding-an-operator.md", "1. Get the facts") {
		asked += row[1]
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[operator.Capabilities]()) {
		isName := field.Name == "Platform" || field.Name == "DriverName"
		if !isName && !strings.Contains(asked, "`"+field.Name+"`") {
			t.Errorf("docs/adding-an-operator.md has no question for %s", field.Name)
		}
	}
}

// platformsThat names the platforms whose rows fit, as a list in a sentence.
func platformsThat(fits func(operator.Capabilities) bool) string {
	var names []string
	for _, platform := range operator.Platforms() {
		if row, _ := operator.FindCapabilities(platform); fits(row) {
			names = append(names, "`"+platform+"`")
		}
	}
	return strings.Join(names, ", ")
}

// TestOperatorsWithoutRepeatAreNamed compares the operators on the merchants' page whose lost page nothing finds again
// with the rows of the platforms on the web channel.
func TestOperatorsWithoutRepeatAreNamed(t *testing.T) {
	var names []string
	for _, platform := range operator.Platforms() {
		row, _ := operator.FindCapabilities(platform)
		if slices.Contains(row.Channels, "web") && row.ResendWindow == 0 && row.LookupNeedsDriverData {
			for _, reach := range row.Reach {
				names = append(names, "`"+reach.Operator+"`")
			}
		}
	}
	want := "no safe repeat under the same key: " + strings.Join(names, " and ") + " on `web`"
	if !strings.Contains(readFile(t, merchantsPage), want) {
		t.Errorf("%s does not say %q", merchantsPage, want)
	}
}

// TestPlatformsAreNamed compares the lists of platforms in the pages' sentences with the rows of the platforms.
func TestPlatformsAreNamed(t *testing.T) {
	directory := drivers.NewDirectory(nil, nil, nil)
	hasFixedToken := func(row operator.Capabilities) bool {
		fields, _ := directory.AccountFields(row.Platform)
		return slices.ContainsFunc(fields, func(f operator.AccountField) bool { return f.Path == "access_token" })
	}
	for _, c := range []struct {
		page, sentence string
		fits           func(operator.Capabilities) bool
	}{
		{architecturePage, "what the lost response brought (%s)", func(row operator.Capabilities) bool {
			return row.LookupNeedsDriverData && !row.Prepares
		}},
		{architecturePage, "one address for each account (%s)", func(row operator.Capabilities) bool {
			return row.StaticCallbacks
		}},
		{architecturePage, "for the specification's protocol and %s, else never", func(row operator.Capabilities) bool {
			return row.ResendWindow > 0 && row.DriverName != "gateway"
		}},
		{architecturePage, `one whose "not found" proves nothing (%s)`, func(row operator.Capabilities) bool {
			return row.HasStatusLookup && !row.LookupNeedsDriverData && row.NeverSentAfter == 0 && !row.ExpiresPending
		}},
		{operationsPage, "a platform with a fixed token (%s)", hasFixedToken},
		{operationsPage, "no resend window for messages (%s)", func(row operator.Capabilities) bool {
			return slices.Contains(row.Operations, operator.AccountSMS) && row.ResendWindow == 0
		}},
		{operationsPage, "no resend window for payments (%s)", func(row operator.Capabilities) bool {
			return slices.Contains(row.Operations, operator.AccountPay) && row.ResendWindow == 0
		}},
		{"docs/adding-a-country.md", "all countries (%s)", func(row operator.Capabilities) bool {
			return len(row.Countries()) == len(market.All())
		}},
	} {
		want := fmt.Sprintf(c.sentence, platformsThat(c.fits))
		if text := strings.Join(strings.Fields(readFile(t, c.page)), " "); !strings.Contains(text, want) {
			t.Errorf("%s does not say %q", c.page, want)
		}
	}
}
