package deployment

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCaller: AWS says who runs the tool. Only tables and secrets of this machine trust the machine's user.
func TestCaller(t *testing.T) {
	const arn = "arn:aws:sts::123456789012:assumed-role/onboarding/ama"
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), "Action=GetCallerIdentity") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>%s</Arn>`+
			`</GetCallerIdentityResult></GetCallerIdentityResponse>`, arn)
	}))
	t.Cleanup(sts.Close)
	for name, c := range map[string]struct{ tables, secrets, user, want string }{
		"local run":             {"http://127.0.0.1:1", "http://localhost:2", "kofi", "local:kofi"},
		"local run by IPv6":     {"http://[::1]:1", "http://127.0.0.1:2", "kofi", "local:kofi"},
		"private tables":        {"http://10.0.0.1:1", "http://127.0.0.1:2", "kofi", arn},
		"private secrets":       {"http://127.0.0.1:1", "http://10.0.0.1:2", "kofi", arn},
		"a name with localhost": {"http://localhost.example", "http://localhost:2", "kofi", arn},
		"secrets of AWS":        {"http://127.0.0.1:1", "", "kofi", arn},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]string{
				"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S",
				"AWS_ENDPOINT_URL_DYNAMODB": c.tables, "AWS_ENDPOINT_URL_SECRETS_MANAGER": c.secrets,
				"AWS_ENDPOINT_URL_STS": sts.URL, auditFileVariable: "copies",
			}
			stores, err := Connect(System{Getenv: func(name string) string { return values[name] }, User: c.user},
				Names{LedgerTable: "l", MerchantTable: "m"})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := stores.Caller(t.Context()); got != c.want || err != nil {
				t.Errorf("caller %q, %v, want %q", got, err, c.want)
			}
			if isLocal := strings.HasPrefix(c.want, "local:"); (stores.AuditCopies != nil) != isLocal {
				t.Errorf("a file has the copies: %v, want %v", stores.AuditCopies != nil, isLocal)
			}
		})
	}
}
