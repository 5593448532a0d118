package contract_test

import (
	"encoding/json"
	"slices"
	"strings"

	"mobilegateway/proof/contract"
	"mobilegateway/shared/market"
	"mobilegateway/shared/operator"
)

// absent is the candidate that removes a field or header.
type absent struct{}

// textCandidates are strings that people and programs send by mistake.
var textCandidates = []string{
	"", " ", "x", "X", "17", "0", "é", "日本", "a b", " x", "x ", "null", "a\nb", "a\tb", "a\x00b", "a\x7fb",
	"a\u0085b", "%", "%zz", "%C3%A9", "%E9", "a+b", "<&>\"'\\",
	// amounts
	"1", "1.0", "1.00", "1.5", "1.25", "1.250", "1.2345", "0.00", "0.01", "-1", "+1", "1e3", "1.", ".5", "1,5",
	"000001", "999999999999", "1000000000000",
	"1.0000000000000", "1." + strings.Repeat("0", 48), "1." + strings.Repeat("0", 49), "0x10", " 1",
	// identifiers
	"DemoShop_1", "DemoShop_1a", "DemoShop-1", "DemoShop_", "_1", "Demo Shop_1", "DemoShop_1_2", "démo_1",
	// numbers
	"+2250700002000", "002250700002000", "2250700002000", "0700002000", "00700002000", "+225070000200",
	"+22507000020000", "+21620002000", "20002000", "020002000",
	"0020002000", "+33612345678", "++2250700002000", "07 00 00 20 00", "243812342000", "0812342000", "812342000", "12",
	// addresses
	"tel:+2250000", "tel:+225", "tel:+2251", "tel:+33612345678", "tel:2250000", "TEL:+2250000",
	"tel:+225000000000000", "tel:+2250000000000000", "tel%3A%2B2250000",
	"acr:X-Operator-ISE2", "acr:OperatorAPIToken",
	// URLs
	"https://shop.example.com", "https://shop.example.com/a?b=c&d=%20", "https://shop.example.com:443/",
	"https://shop.example.com:8443/", "https://shop.example.com/#top",
	"http://shop.example.com/", "HTTPS://shop.example.com/", "ftp://shop.example.com/", "//shop.example.com/",
	"shop.example.com", "javascript:alert(1)",
	"https://user@shop.example.com/", "https://shop/", "https://localhost/", "https://-shop.example.com/",
	"https://shop_.example.com/", "https://shop..example.com/",
	"https://shop.example.com:0/", "https://shop.example.com:65535/", "https://shop.example.com:65536/",
	"https://shop.example.com:x/", "https://shop.example.com:/",
	"https://shop.example.com/ ", "https://shop.example.com/é", "https://shop.example.com\\a",
	"https://shop.example.com/%zz", "https://shop.example.com/%41", "https://xn--bcher-kva.example.com/",
	"https://10.0.0.1/", "https://[::1]/", "https://0x7f.1/", "https://EXAMPLE.COM/", "https://", "https:///a",
}

// otherCandidates are candidates of other JSON types, and numbers in different forms.
var otherCandidates = []any{
	nil, true, false, json.Number("0"), json.Number("1"), json.Number("-1"), json.Number("17"), json.Number("1.5"),
	json.Number("1.25"), json.Number("1.250"), json.Number("1.2345"),
	json.Number("0.001"), json.Number("999999999999"), json.Number("1000000000000"), json.Number("500.00"), []any{},
	[]any{"x"}, []any{nil}, contract.Object{}, contract.Object{"x": 1},
	[]any{"acr:X-Operator-ISE2"}, []any{"acr:X-Operator-ISE2", "acr:X-Operator-ISE2"}, []any{"tel:+2250700002000"},
}

// fillText returns a string of a length that breaks no other rule of the field.
func fillText(path string, length int, letter string) string {
	begin, letter := "", letter
	switch {
	case strings.HasSuffix(path, "url") || strings.HasSuffix(path, "URL"):
		begin, letter = "https://shop.example.com/", "x"
	case strings.HasSuffix(path, "order_id"):
		begin, letter = "DemoShop_", "1"
	case strings.HasSuffix(path, "user_msisdn"):
		letter = "1"
	}
	return begin + strings.Repeat(letter, max(0, length-len(begin)))
}

// candidates returns the values to try in a field: all of the above, strings and lists around its limits, and variants
// of its own values.
func candidates(path string, schema contract.Object) []any {
	found := []any{absent{}}
	found = append(found, otherCandidates...)
	for _, text := range slices.Concat(textCandidates, operator.Names()) {
		found = append(found, text)
	}
	for _, country := range market.All() {
		found = append(found, country.Alpha2, country.MCO, "O"+country.Alpha2, country.Currency)
		found = append(found, country.SenderPrefix()+"0000")
	}
	walk(schema, "", func(_ string, node contract.Object) {
		for _, rule := range []string{"minLength", "maxLength", "x-max-bytes"} {
			limit, isNumber := node[rule].(int)
			if !isNumber {
				continue
			}
			for _, length := range []int{limit - 1, limit, limit + 1} {
				found = append(found, fillText(path, length, "x"), fillText(path, length, "é"))
			}
			found = append(found, fillText(path, limit/2, "é"), fillText(path, limit/2+1, "é"))
		}
		for _, word := range append(asList(node["enum"]), node["const"]) {
			if text, isText := word.(string); isText {
				found = append(found, text, strings.ToLower(text), strings.ToUpper(text), text+"x", " "+text)
			}
		}
		if limit, has := node["maxItems"].(int); has {
			item := any("acr:X-Operator-ISE2")
			if strings.HasSuffix(path, "deliveryInfo") {
				item = contract.Object{"deliveryStatus": "DeliveredToNetwork"}
			}
			found = append(found, slices.Repeat([]any{item}, limit), slices.Repeat([]any{item}, limit+1), item)
		}
	})
	// The longest messages: 160 characters unescaped, escaped, and escaped to four bytes each.
	for _, letter := range []string{"%20", "%C3%A9", "%F0%9F%98%80", "😀", "%"} {
		found = append(found, strings.Repeat(letter, 160), strings.Repeat(letter, 161))
	}
	return append(found, strings.Repeat("b", 253-len(".com"))+".com", longHost(253), longHost(254))
}

// longHost returns a URL whose host has a length.
func longHost(length int) string {
	host := strings.Repeat(strings.Repeat("a", 49)+".", 4) + "com"
	return "https://" + strings.Repeat("b", length-len(host)-1) + "." + host + "/"
}
