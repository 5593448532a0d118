package deployment

import (
	"context"
	"time"

	"mobilegateway/proof/simulate/outside"
	"mobilegateway/shared/secret"
	"mobilegateway/shared/wiring"
)

// Outside are the models around the functions.
type Outside struct {
	*Tables
	Secrets *outside.Secrets
	// Operators and Merchants serve the requests of functions.
	Operators, Merchants Serve
}

// outsideOf connects an instance with the models.
func (s *Outside) outsideOf(i *Instance) wiring.Outside {
	client, start := s.Client(i), i.Start
	if s.AccountConcurrency > 0 && (i.Is(Charge) || i.Is(Pay) || i.Is(SMS)) {
		start = i.Begin // circuits start tasks under a lock
	}
	return wiring.Outside{
		DynamoDB:          func() wiring.DynamoDB { return client },
		SecretSource:      func() secret.Source { return secretSource{s, i} },
		OpenDynamoDB:      func(context.Context) error { return nil },
		OperatorTransport: network{s.Gate, i, s.Operators, true},
		MerchantTransport: network{s.Gate, i, s.Merchants, false},
		Now:               i.Now,
		Rand:              i,
		Sleep:             i.Sleep,
		Await:             i.Await,
		Start:             start,
		After:             i.After,
		Log:               logWriter{s.Observer, i},
	}
}

// secretSource reads secrets for one instance.
type secretSource struct {
	*Outside
	instance *Instance
}

// Fetch implements secret.Source.
func (s secretSource) Fetch(ctx context.Context, id string) ([]byte, error) {
	s.Pass(s.instance, "secret "+id)
	value, err := s.Secrets.Fetch(time.Now(), id, s.Tape)
	if err == context.DeadlineExceeded { //nolint:errorlint // the model's own value
		_ = s.instance.Sleep(ctx, time.Hour)
	}
	return value, err
}

// logWriter passes the log lines of one instance on.
type logWriter struct {
	observer Observer
	instance *Instance
}

// Write implements io.Writer. It drops what the deferred functions of a crashed instance write: its process has ended.
func (l logWriter) Write(line []byte) (int, error) {
	if !l.instance.Crashed() {
		l.observer.Logged(l.instance.Name, line)
	}
	return len(line), nil
}
