package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

type endpointCommands struct {
	Show   endpointShow   `cmd:"" help:"Show whether a merchant's URL is disabled, and its server's health."`
	Enable endpointEnable `cmd:"" help:"Enable a disabled URL, and queue its parked notifications."`
}

type endpointArguments struct {
	merchantArgument
	URL string `name:"url" placeholder:"URL" help:"The exact URL; the merchant's own notif_url if not given."`
}

// endpoint is a merchant's URL with its health.
type endpoint struct {
	webhook.Health
	merchant *merchant.Profile
}

// ProvideEndpoint returns the endpoint for the Run methods below endpoint (kong's provider).
func (c endpointArguments) ProvideEndpoint(s *session) (endpoint, error) {
	p, err := s.findMerchant(c.Name)
	if err != nil {
		return endpoint{}, err
	}
	address := cmp.Or(c.URL, p.NotifURL)
	if address == "" {
		return endpoint{}, fmt.Errorf("%s has no notif_url of its own: name the URL with --url", p.Name)
	}
	health, err := s.stores.EndpointHealth.Health(s, webhook.Endpoint{MerchantID: p.ID, URL: address})
	return endpoint{health, p}, err
}

type endpointView struct {
	Merchant   string    `json:"merchant" row:"merchant"`
	URL        string    `json:"url" row:"url"`
	Server     string    `json:"server" row:"server"`
	Enabled    bool      `json:"enabled" row:"enabled"`
	FastPath   bool      `json:"fast_path" row:"fast path"`
	Failures   int       `json:"failures" row:"server's failures in a row"`
	LastError  string    `json:"last_error,omitempty" row:"last error"`
	LastStatus int       `json:"last_status,omitempty" row:"last status"`
	ChangedAt  time.Time `json:"changed_at,omitzero" row:"changed"`
	DisabledAt time.Time `json:"disabled_at,omitzero" row:"disabled"`
}

func showEndpoint(s *session, at endpoint) error {
	return s.showView(endpointView{
		Merchant: at.merchant.Name, URL: at.URL, Server: at.Server().Origin, Enabled: at.Enabled(),
		FastPath: at.AllowsFastPath(), Failures: at.Failures, LastError: at.LastReason, LastStatus: at.LastStatus,
		ChangedAt: at.ChangedAt, DisabledAt: at.DisabledAt,
	})
}

type endpointShow struct{ endpointArguments }

// Run shows the endpoint.
func (c *endpointShow) Run(s *session, at endpoint) error { return showEndpoint(s, at) }

type endpointEnable struct{ endpointArguments }

// Run enables the endpoint first, so that queued notifications are not parked again. Then it queues what is parked, of
// transactions of any age. After an interrupt a second run queues the rest.
func (c *endpointEnable) Run(s *session, at endpoint) error {
	enabled := at
	if !at.Enabled() {
		enabled.Health = at.AfterEnable(s.Now())
	}
	return s.executeAndShow("enable an endpoint", at.merchant.Name+" "+at.URL, func() (string, error) {
		if !at.Enabled() {
			saved, err := s.stores.EndpointHealth.SaveDisabled(s, enabled.Health)
			if err == nil && !saved {
				err = errors.New("the endpoint was changed meanwhile: run the command again")
			}
			if err != nil {
				return "nothing", err
			}
		}
		queued, err := queueParked(s, at.Endpoint, firstDay(at.merchant, s.Now()))
		return plural(queued, "notification") + " queued", err
	}, func() error { return showEndpoint(s, enabled) })
}

// queueParked queues the endpoint's parked notifications of transactions since a time.
func queueParked(s *session, endpoint webhook.Endpoint, since time.Time) (int, error) {
	queued := 0
	for e, err := range s.entriesBetween(endpoint.MerchantID, since, s.Now()) {
		if err = cmp.Or(err, s.Err()); err != nil {
			return queued, err
		}
		if head := e.OutboxHead(); e.NotifyURL != endpoint.URL || head == nil || !head.Parked {
			continue
		}
		_, err := s.changeEntry(e.Key, changeIf(func(e *ledger.Entry) bool {
			return e.Unpark(ledger.Timestamp(s.Now()))
		}))
		if err != nil {
			return queued, fmt.Errorf("%s: %w", e.Key, err)
		}
		queued++
		if queued%progressEvery == 0 {
			fmt.Fprintf(s.Stderr, "%d queued\n", queued)
		}
	}
	return queued, nil
}
