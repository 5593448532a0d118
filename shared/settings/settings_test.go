package settings_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/settings"
)

// newEnvironment makes an environment of pairs.
func newEnvironment(pairs ...string) *settings.Environment {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
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
			t.Errorf("%s is %s", name, got)
		}
	}
	const minute, hour = time.Minute, time.Hour
	polls := []time.Duration{minute, 2 * minute, 5 * minute, 15 * minute, 30 * minute, hour}
	if got := env.Durations(settings.PollSchedule); !slices.Equal(got, polls) {
		t.Errorf("polls: %v", got)
	}
	deliveries := []time.Duration{0, 5 * time.Second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour}
	if got := env.Durations(settings.DeliverySchedule); !slices.Equal(got, deliveries) {
		t.Errorf("deliveries: %v", got)
	}
	if env.URL(settings.BaseURL) != "" || env.LoopbackAllowed() {
		t.Error("texts")
	}
	if err := env.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestSpeedScalesAllButTimeoutsAndLeases(t *testing.T) {
	env := newEnvironment(settings.Speed, "60", settings.ClaimRecheckInterval, "1s", settings.PollSchedule, "1m, 10m")
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
		{"a lease", newEnvironment(settings.Speed, "60", "SOME_LEASE", "5s").Duration("SOME_LEASE"), 5 * time.Second},
		{"never to zero", newEnvironment(settings.Speed, "3600", "SOME_WAIT", "1ms").Duration("SOME_WAIT"), time.Millisecond},
	}
	for _, c := range checks {
		if c.got != c.want {
			t.Errorf("%s: %s", c.name, c.got)
		}
	}
	if err := env.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestInvalidValues(t *testing.T) {
	cases := []struct {
		name  string
		pairs []string
		read  func(*settings.Environment)
		want  string
	}{
		{"required", nil, func(e *settings.Environment) { e.Required(settings.LedgerTable) }, "LEDGER_TABLE is not set"},
		{"not a duration", []string{"PROFILE_CACHE_TTL", "30"}, func(e *settings.Environment) { e.Duration(settings.ProfileCacheTTL) }, "PROFILE_CACHE_TTL is not a duration"},
		{"negative", []string{"SOME_WAIT", "-1s"}, func(e *settings.Environment) { e.Duration("SOME_WAIT") }, "SOME_WAIT must be from 0s"},
		{"too long", []string{"PROFILE_CACHE_TTL", "61s"}, func(e *settings.Environment) { e.Duration(settings.ProfileCacheTTL) }, "PROFILE_CACHE_TTL must be from 0s to 1m0s"},
		{"too short", []string{"TRANSACTION_RETENTION", "24h"}, func(e *settings.Environment) { e.Duration(settings.TransactionRetention) }, "TRANSACTION_RETENTION must be at least 9600h"},
		{"zero where it means nothing", []string{"OPERATOR_TIMEOUT", "0s"}, func(e *settings.Environment) { e.Duration(settings.OperatorTimeout) }, "OPERATOR_TIMEOUT must be at least 1s"},
		{"list", []string{"POLL_SCHEDULE", "1m,,5m"}, func(e *settings.Environment) { e.Durations(settings.PollSchedule) }, "POLL_SCHEDULE is not a duration"},
		{"flag", []string{"ALLOW_LOOPBACK", "yes"}, func(e *settings.Environment) { e.LoopbackAllowed() }, "ALLOW_LOOPBACK must be"},
		{"loopback on AWS's own ledger", []string{"ALLOW_LOOPBACK", "true", "AWS_LAMBDA_FUNCTION_NAME", "charge"}, func(e *settings.Environment) { e.LoopbackAllowed() }, "ALLOW_LOOPBACK is true in a deployed function"},
		{"loopback deployed", []string{"ALLOW_LOOPBACK", "true", "AWS_ENDPOINT_URL", "http://127.0.0.1:1", "AWS_EXECUTION_ENV", "AWS_Lambda_provided.al2023"}, func(e *settings.Environment) { e.LoopbackAllowed() }, "ALLOW_LOOPBACK is true in a deployed function"},
		{"URL", []string{"BASE_URL", "ftp://x"}, func(e *settings.Environment) { e.URL(settings.BaseURL) }, "BASE_URL is not an absolute"},
		{"URL with a query", []string{"BASE_URL", "https://x/?a=1"}, func(e *settings.Environment) { e.URL(settings.BaseURL) }, "BASE_URL is not an absolute"},
		{"speed", []string{"SPEED", "0"}, func(*settings.Environment) {}, "SPEED must be a whole number"},
		{"speed with a point", []string{"SPEED", "1.5"}, func(*settings.Environment) {}, "SPEED must be a whole number"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			env := newEnvironment(c.pairs...)
			c.read(env)
			err := env.Err()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestErrorsNameEveryVariableAndNoValue(t *testing.T) {
	env := newEnvironment("PROFILE_CACHE_TTL", "hunter2", "BASE_URL", "hunter2", "ALLOW_LOOPBACK", "hunter2", "SPEED", "hunter2")
	env.Required(settings.MerchantTable)
	env.Duration(settings.ProfileCacheTTL)
	env.URL(settings.BaseURL)
	if env.LoopbackAllowed() {
		t.Error("loopback is on")
	}
	text := env.Err().Error()
	for _, name := range []string{"MERCHANT_TABLE", "PROFILE_CACHE_TTL", "BASE_URL", "ALLOW_LOOPBACK", "SPEED"} {
		if !strings.Contains(text, name) {
			t.Errorf("%s is not named in %q", name, text)
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("a value is in %q", text)
	}
}

func TestURLAndLoopback(t *testing.T) {
	env := newEnvironment(settings.BaseURL, "https://pay.example.com/gateway/", settings.AllowLoopback, "true", "AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
	if got := env.URL(settings.BaseURL); got != "https://pay.example.com/gateway" {
		t.Errorf("got %q", got)
	}
	if !env.LoopbackAllowed() {
		t.Error("loopback is off")
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
