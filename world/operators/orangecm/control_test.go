package orangecm_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/stubtest"
)

// A long order id is not the orderId, which then is a digest of it: only the callback's address has it.
func TestControlFindsTheOrderOfTheCallback(t *testing.T) {
	const order = "DemoShop_an-order-id-of-more-than-20-characters"
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		script := `{"key":"` + order + `","operation":"pay","calls":["429"]}`
		stubtest.Do(t, b, "POST", "/stub/v1/script", script)
		body := strings.Replace(b.body(ordinary), "/cb/token", "/callbacks/v1/payments/orange-cm/"+order+"/token", 1)
		for _, want := range []int{429, 200} {
			if status, text := stubtest.Do(t, b, "POST", base+"pay", body, b.headers()...); status != want {
				t.Errorf("%d %s, want %d", status, text, want)
			}
		}
		time.Sleep(time.Minute)
		for _, key := range []string{order, "ORDER-1", b.payToken} {
			_, calls := stubtest.Do(t, b, "GET", "/stub/v1/calls?key="+key, "")
			if pays := strings.Count(calls, `"operation":"pay"`); b.effects(key) != 1 || pays != 2 {
				t.Errorf("%s: %d effects and %d calls of pay, want 1 and 2", key, b.effects(key), pays)
			}
		}
		if b.effects("token") != 0 {
			t.Error("the secret of the callback's address finds the effect")
		}
	})
}
