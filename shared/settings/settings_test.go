package settings_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/settings"
)

// newEnvironment makes an environment of texts "NAME=value".
func newEnvironment(pairs ...string) *settings.Environment {
	values := map[string]string{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return settings.FromEnv(func(name string) string { return values[name] })
}

func TestDefaults(t *testing.T) {
	env := newEnvironment()
	want := map[string]time.Duration{
		settings.ProfileCacheTTL:      30 * time.Second,
		settings.SecretCacheTTL:       5 * time.Minute,
		settings.AccessTokenLifetime:  time.Hour,
		settings.OperatorTimeout:      12 * time.Second,
		settings.PaymentLifetime:      24 * time.Hour,
		settings.ClaimRecheckInterval: 5 * time.Second,
		settings.SMSRetention:         90 * 24 * time.Hour,
		settings.TransactionRetention: 0,
		settings.WebhookTimeout:       15 * time.Second,
		settings.SweepInterval:        time.Minute,
	}
	for name, d := range want {
		if got := env.Duration(name); got != d {
			t.Errorf("%s is %s, want %s", name, got, d)
		}
	}
	for name, want := range map[string]string{
		settings.PollSchedule:     "[1m0s 2m0s 5m0s 15m0s 30m0s 1h0m0s]",
		settings.DeliverySchedule: "[0s 5s 5m0s 30m0s 2h0m0s 5h0m0s 10h0m0s 14h0m0s 20h0m0s 24h0m0s]",
	} {
		if got := fmt.Sprint(env.Durations(name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if url := env.URL(settings.BaseURL); url != "" {
		t.Errorf("BASE_URL is %q by default", url)
	}
	if env.LoopbackAllowed() {
		t.Error("loopback is allowed by default")
	}
	if err := env.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestSpeedScalesAllButTimeoutsAndLeases(t *testing.T) {
	env := newEnvironment("SPEED=60", "CLAIM_RECHECK_INTERVAL=1s", "POLL_SCHEDULE=1m, 10m")
	checks := []struct {
		name string
		got  time.Duration
		want time.Duration
	}{
		{"a lifetime", env.Duration(settings.PaymentLifetime), 24 * time.Minute},
		{"a timeout", env.Duration(settings.OperatorTimeout), 12 * time.Second},
		{"zero stays", env.Duration(settings.TransactionRetention), 0},
		{"a short one", env.Duration(settings.ClaimRecheckInterval), time.Second / 60},
		{"a list", env.Durations(settings.PollSchedule)[1], 10 * time.Second},
		{"a lease", newEnvironment("SPEED=60", "SOME_LEASE=5s").Duration("SOME_LEASE"), 5 * time.Second},
		{"never to zero", newEnvironment("SPEED=3600", "SOME_WAIT=1ms").Duration("SOME_WAIT"), time.Millisecond},
	}
	for _, c := range checks {
		if c.got != c.want {
			t.Errorf("%s is scaled to %s, want %s", c.name, c.got, c.want)
		}
	}
	if err := env.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestInvalidValues(t *testing.T) {
	type env = *settings.Environment
	duration := func(name string) func(env) { return func(e env) { e.Duration(name) } }
	url, loopback := func(e env) { e.URL(settings.BaseURL) }, func(e env) { e.LoopbackAllowed() }
	secure := func(e env) { e.SecureURL(settings.CallbackBaseURL) }
	cases := []struct {
		name  string
		pairs string // NAME=value, separated by spaces
		read  func(env)
		want  string
	}{
		{"required", "", func(e env) { e.Required(settings.LedgerTable) }, "LEDGER_TABLE is not set"},
		{"not a duration", "PROFILE_CACHE_TTL=30", duration(settings.ProfileCacheTTL),
			"PROFILE_CACHE_TTL is not a duration"},
		{"negative", "SOME_WAIT=-1s", duration("SOME_WAIT"), "SOME_WAIT must be from 0s"},
		{"too long", "PROFILE_CACHE_TTL=61s", duration(settings.ProfileCacheTTL),
			"PROFILE_CACHE_TTL must be from 0s to 1m0s"},
		{"too short", "TRANSACTION_RETENTION=24h", duration(settings.TransactionRetention),
			"TRANSACTION_RETENTION must be at least 9600h"},
		{"zero without a meaning", "OPERATOR_TIMEOUT=0s", duration(settings.OperatorTimeout),
			"OPERATOR_TIMEOUT must be at least 1s"},
		{"list", "POLL_SCHEDULE=1m,,5m", func(e env) { e.Durations(settings.PollSchedule) },
			"POLL_SCHEDULE is not a duration"},
		{"flag", "ALLOW_LOOPBACK=yes", loopback, "ALLOW_LOOPBACK must be"},
		{"loopback with AWS's own ledger", "ALLOW_LOOPBACK=true AWS_LAMBDA_FUNCTION_NAME=charge", loopback,
			"ALLOW_LOOPBACK is true in a deployed function"},
		{"loopback in a deployment",
			"ALLOW_LOOPBACK=true AWS_ENDPOINT_URL=http://127.0.0.1:1 AWS_EXECUTION_ENV=AWS_Lambda_go1.x",
			loopback, "ALLOW_LOOPBACK is true in a deployed function"},
		{"loopback with AWS's own ledger by name",
			"ALLOW_LOOPBACK=true AWS_ENDPOINT_URL_DYNAMODB=https://dynamodb.eu-west-1.amazonaws.com",
			loopback, "ALLOW_LOOPBACK is true in a deployed function"},
		{"loopback with a ledger elsewhere", "ALLOW_LOOPBACK=true AWS_ENDPOINT_URL=http://8.8.8.8:8000",
			loopback, "ALLOW_LOOPBACK is true in a deployed function"},
		{"loopback with the ledger here and the other services elsewhere",
			"ALLOW_LOOPBACK=true AWS_ENDPOINT_URL_DYNAMODB=http://ledger.example AWS_ENDPOINT_URL=http://127.0.0.1:1",
			loopback, "ALLOW_LOOPBACK is true in a deployed function"},
		{"http", "CALLBACK_BASE_URL=http://pay.example.com", secure, "CALLBACK_BASE_URL is not an https address"},
		{"http in capitals", "CALLBACK_BASE_URL=HTTP://pay.example.com", secure,
			"CALLBACK_BASE_URL is not an https address"},
		{"http to a private network", "CALLBACK_BASE_URL=http://10.0.0.1", secure,
			"CALLBACK_BASE_URL is not an https address"},
		{"http to a private network of a deployment",
			"CALLBACK_BASE_URL=http://10.0.0.1 ALLOW_LOOPBACK=true AWS_ENDPOINT_URL=https://dynamodb.example", secure,
			"CALLBACK_BASE_URL is not an https address"},
		{"http to the metadata of a machine",
			"CALLBACK_BASE_URL=http://169.254.169.254 ALLOW_LOOPBACK=true AWS_ENDPOINT_URL=http://127.0.0.1:1", secure,
			"CALLBACK_BASE_URL is not an https address"},
		{"URL", "BASE_URL=ftp://x", url, "BASE_URL is not an absolute"},
		{"URL with a query", "BASE_URL=https://x/?a=1", url, "BASE_URL is not an absolute"},
		{"number", "OPERATOR_SHARE=4.5", func(e env) { e.WholeNumber(settings.OperatorShare, 100) },
			"OPERATOR_SHARE must be a whole number from 1 to 100"},
		{"number below 1", "OPERATOR_SHARE=0", func(e env) { e.WholeNumber(settings.OperatorShare, 100) },
			"OPERATOR_SHARE must be a whole number from 1 to 100"},
		{"number above", "OPERATOR_SHARE=101", func(e env) { e.WholeNumber(settings.OperatorShare, 100) },
			"OPERATOR_SHARE must be a whole number from 1 to 100"},
		{"speed", "SPEED=0", func(env) {}, "SPEED must be a whole number"},
		{"speed with a point", "SPEED=1.5", func(env) {}, "SPEED must be a whole number"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			env := newEnvironment(strings.Fields(c.pairs)...)
			c.read(env)
			if err := env.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestErrorsNameEveryVariableAndNoValue(t *testing.T) {
	env := newEnvironment("PROFILE_CACHE_TTL=hunter2", "BASE_URL=hunter2", "ALLOW_LOOPBACK=hunter2", "SPEED=hunter2")
	env.Required(settings.MerchantTable)
	env.Duration(settings.ProfileCacheTTL)
	env.URL(settings.BaseURL)
	if env.LoopbackAllowed() {
		t.Error("an invalid ALLOW_LOOPBACK allows loopback")
	}
	text := env.Err().Error()
	for _, name := range []string{"MERCHANT_TABLE", "PROFILE_CACHE_TTL", "BASE_URL", "ALLOW_LOOPBACK", "SPEED"} {
		if !strings.Contains(text, name) {
			t.Errorf("%s is not named in %q", name, text)
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("the error quotes a value: %q", text)
	}
}

func TestSecureURL(t *testing.T) {
	private := "CALLBACK_BASE_URL=http://10.0.0.1:1 ALLOW_LOOPBACK=true AWS_ENDPOINT_URL=http://10.0.0.2"
	for pairs, want := range map[string]string{
		"": "",
		"CALLBACK_BASE_URL=https://pay.example.com/": "https://pay.example.com",
		"CALLBACK_BASE_URL=http://127.0.0.1:3000":    "http://127.0.0.1:3000",
		"CALLBACK_BASE_URL=http://[::1]:3000":        "http://[::1]:3000",
		private:                                      "http://10.0.0.1:1",
	} {
		env := newEnvironment(strings.Fields(pairs)...)
		if got := env.SecureURL(settings.CallbackBaseURL); got != want || env.Err() != nil {
			t.Errorf("%s: got %q, want %q, %v", pairs, got, want, env.Err())
		}
	}
}

func TestURLAndLoopback(t *testing.T) {
	env := newEnvironment(
		"BASE_URL=https://pay.example.com/gateway/", "ALLOW_LOOPBACK=true",
		"AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:1")
	if got := env.URL(settings.BaseURL); got != "https://pay.example.com/gateway" {
		t.Errorf("got %q", got)
	}
	if !env.LoopbackAllowed() {
		t.Error("ALLOW_LOOPBACK=true does not allow loopback")
	}
	if err := env.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestWholeNumber(t *testing.T) {
	env := newEnvironment("ACCOUNT_CONCURRENCY=100000", "SOME_NUMBER=1")
	for name, want := range map[string]int64{
		settings.AccountConcurrency: 100000, settings.OperatorShare: 40, "SOME_NUMBER": 1, "NONE": 0,
	} {
		if got := env.WholeNumber(name, 100000); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if err := env.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestReadsTheProcessEnvironment(t *testing.T) {
	t.Setenv(settings.LedgerTable, "ledger")
	if got := settings.FromEnv(os.Getenv).Required(settings.LedgerTable); got != "ledger" {
		t.Fatalf("got %q", got)
	}
}
