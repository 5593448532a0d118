package credentials_test

import (
	"net/http"
	"testing"
	"time"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/secret"
)

// FuzzReader reads any secret. It must not panic, and an account that it returns has a usable address.
func FuzzReader(f *testing.F) {
	f.Add(`{"sandbox":{"current":"a1","accounts":{"a1":{"base_url":"http://127.0.0.1:1","access_token":"t"}}}}`)
	f.Add(`{"sandbox":{"current":"a1","accounts":{"a1":{"base_url":"https://op.example/x/","access_token":"t"}}},` +
		`"routes":{"mtn":[{"country":"CI","operation":"pay","to":"mtn-momo/ci"}]}}`)
	f.Add(`{"sandbox":null,"routes":[]}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, raw string) {
		reader := credentials.NewReader(secret.Static(raw), time.Now, operator.CheckBaseURL)
		_, routesErr := reader.Routes(t.Context())
		found, err := reader.Find(t.Context(), "sandbox", "")
		if err != nil {
			return
		}
		if routesErr != nil {
			t.Errorf("an account without routes: %v", routesErr)
		}
		if _, err := http.NewRequest(http.MethodGet, found.BaseURL()+"/path", nil); err != nil {
			t.Errorf("a request to the base URL %q is impossible", found.BaseURL())
		}
	})
}
