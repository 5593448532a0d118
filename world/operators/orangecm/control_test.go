package orangecm_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A long order id is not the orderId, which then is a digest of it: only the callback's address has it.
func TestControlFindsTheOrderOfTheCallback(t *testing.T) {
	const order = "DemoShop_an-order-id-of-more-than-20-characters"
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		b.Script("pay", order, "429")
		body := strings.Replace(b.body(ordinary), "/cb/token", "/callbacks/v1/payments/orange-cm/"+order+"/token", 1)
		for _, want := range []int{429, 200} {
			if status, text := b.Do("POST", base+"pay", body, b.headers()...); status != want {
				t.Errorf("%d %s, want %d", status, text, want)
			}
		}
		time.Sleep(time.Minute)
		for _, key := range []string{order, "ORDER-1", b.payToken} {
			_, calls := b.Do("GET", "/stub/v1/calls?key="+key, "")
			if pays := strings.Count(calls, `"operation":"pay"`); b.Effects(key) != 1 || pays != 2 {
				t.Errorf("%s: %d effects and %d calls of pay, want 1 and 2", key, b.Effects(key), pays)
			}
		}
		if b.Effects("token") != 0 {
			t.Error("the secret of the callback's address finds the effect")
		}
	})
}
