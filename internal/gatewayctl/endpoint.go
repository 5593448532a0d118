package gatewayctl

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

type endpointCommands struct {
	Show   endpointShow   `cmd:"" help:"Show whether a merchant's URL is disabled, and its server's health."`
	Enable endpointEnable `cmd:"" help:"Enable a URL that was disabled, and queue what was parked."`
}

type endpointArguments struct {
	Merchant string `required:"" placeholder:"NAME" help:"The merchant's name or id."`
	URL      string `name:"url" placeholder:"URL" help:"The exact URL; without, the merchant's own notif_url."`
}

// readHealth reads what is known of the endpoint.
func (c endpointArguments) readHealth(s *session) (*merchant.Profile, webhook.Health, error) {
	p, err := s.findMerchant(c.Merchant)
	if err != nil {
		return nil, webhook.Health{}, err
	}
	address := firstNonEmpty(c.URL, p.NotifURL)
	if address == "" {
		return nil, webhook.Health{}, fmt.Errorf("%s has no notif_url of its own: say --url", p.Name)
	}
	h, err := s.stores.EndpointHealth.Health(s, webhook.Endpoint{MerchantID: p.ID, URL: address})
	return p, h, err
}

// endpointView is an endpoint's health.
type endpointView struct {
	Merchant   string    `json:"merchant"`
	URL        string    `json:"url"`
	Server     string    `json:"server"`
	Enabled    bool      `json:"enabled"`
	FastPath   bool      `json:"fast_path"`
	Failures   int       `json:"failures"`
	LastError  string    `json:"last_why,omitempty"`
	LastStatus int       `json:"last_status,omitempty"`
	ChangedAt  time.Time `json:"changed_at,omitzero"`
	DisabledAt time.Time `json:"disabled_at,omitzero"`
}

func showEndpoint(s *session, p *merchant.Profile, h webhook.Health) error {
	status := ""
	if h.LastStatus != 0 {
		status = strconv.Itoa(h.LastStatus)
	}
	view := endpointView{
		Merchant: p.Name, URL: h.URL, Server: h.Server().Origin, Enabled: h.Enabled(), FastPath: h.AllowsFastPath(), Failures: h.Failures,
		LastError: h.LastReason, LastStatus: h.LastStatus, ChangedAt: h.ChangedAt, DisabledAt: h.DisabledAt,
	}
	return s.show(view, table{
		{"merchant", view.Merchant}, {"url", view.URL}, {"server", view.Server}, {"enabled", strconv.FormatBool(view.Enabled)},
		{"fast path", strconv.FormatBool(view.FastPath)}, {"server's failures in a row", strconv.Itoa(view.Failures)},
		{"last failure", view.LastError}, {"its status", status},
		{"changed", formatTime(view.ChangedAt)}, {"disabled", formatTime(view.DisabledAt)},
	})
}

type endpointShow struct{ endpointArguments }

// Run shows the endpoint.
func (c *endpointShow) Run(s *session) error {
	p, h, err := c.readHealth(s)
	if err != nil {
		return err
	}
	return showEndpoint(s, p, h)
}

type endpointEnable struct{ endpointArguments }

// Run enables the endpoint first, so that what is queued after it is not parked again. What an interrupt leaves parked
// is queued by deliveries replay --dead.
func (c *endpointEnable) Run(s *session) error {
	p, h, err := c.readHealth(s)
	if err != nil {
		return err
	}
	if h.Enabled() {
		return errors.New("the endpoint is enabled; what is still parked: deliveries replay --dead")
	}
	since := h.DisabledAt.Add(-replayLookback)
	err = s.changes.execute(Action{"enable an endpoint", p.Name + " " + h.URL}, func() (string, error) {
		if err := s.changes.saveEndpointState(h.AfterEnable(s.Now())); err != nil {
			return "nothing", err
		}
		queued, err := c.queueParked(s, h.Endpoint, since)
		return plural(queued, "notification") + " queued", err
	})
	if err != nil {
		return err
	}
	return showEndpoint(s, p, h.AfterEnable(s.Now()))
}

// queueParked queues what was parked at the endpoint since a time.
func (c *endpointEnable) queueParked(s *session, endpoint webhook.Endpoint, since time.Time) (int, error) {
	queued := 0
	for e, err := range s.entriesBetween(endpoint.MerchantID, since, s.Now()) {
		if err == nil {
			err = s.interruption()
		}
		if err != nil {
			return queued, err
		}
		if head := e.OutboxHead(); e.NotifyURL != endpoint.URL || head == nil || !head.Parked {
			continue
		}
		_, err := s.changes.changeEntry(e.Key, func(e *ledger.Entry) error {
			if e.Unpark(ledger.Timestamp(s.Now())) {
				return nil
			}
			return ledger.ErrUnchanged
		})
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
