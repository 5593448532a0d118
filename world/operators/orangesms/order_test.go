package orangesms_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"mobilegateway/proof/kits/stubtest"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/orangesms"
)

// TestSlowReceiverKeepsOrder takes longer for a receipt than the stub waits before the next one.
func TestSlowReceiverKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "")
		credentials := orangesms.DefaultCredentials()
		credentials.ReceiptURL = "https://gateway.test/receipts/secret"
		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(5 * time.Second)
			b.Callbacks.ServeHTTP(w, r)
		})
		b.Handler = orangesms.New(kit.Config{Client: stubtest.Client(slow)}, credentials).Handler()
		b.renewToken()
		b.post(body("2250700001007", "Bonjour"))
		time.Sleep(time.Minute)
		if got := b.words(); got != "N T I" {
			t.Errorf("receipts %s, want N T I", got)
		}
	})
}
