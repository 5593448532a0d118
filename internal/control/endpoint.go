package control

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

type endpointName struct {
	Merchant string `required:"" placeholder:"NAME" help:"The merchant's name or id."`
	URL      string `name:"url" placeholder:"URL" help:"The exact URL; without, the merchant's own notif_url."`
}

// health reads what is known of the endpoint.
func (c endpointName) health(s *session) (*merchant.Profile, webhook.Health, error) {
	p, err := s.merchant(c.Merchant)
	if err != nil {
		return nil, webhook.Health{}, err
	}
	address := or(c.URL, p.NotifURL)
	if address == "" {
		return nil, webhook.Health{}, fmt.Errorf("%s has no notif_url of its own: say --url", p.Name)
	}
	h, err := s.stores.Health.Health(s, webhook.Endpoint{MerchantID: p.ID, URL: address})
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
	LastWhy    string    `json:"last_why,omitempty"`
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
		Merchant: p.Name, URL: h.URL, Server: h.Server().Origin, Enabled: h.Enabled(), FastPath: h.FastPath(), Failures: h.Failures,
		LastWhy: h.LastWhy, LastStatus: h.LastStatus, ChangedAt: h.ChangedAt, DisabledAt: h.DisabledAt,
	}
	return s.show(view, table{
		{"merchant", view.Merchant}, {"url", view.URL}, {"server", view.Server}, {"enabled", strconv.FormatBool(view.Enabled)},
		{"fast path", strconv.FormatBool(view.FastPath)}, {"server's failures in a row", strconv.Itoa(view.Failures)},
		{"last failure", view.LastWhy}, {"its status", status},
		{"changed", moment(view.ChangedAt)}, {"disabled", moment(view.DisabledAt)},
	})
}

type endpointShow struct{ endpointName }

// Run shows the endpoint.
func (c *endpointShow) Run(s *session) error {
	p, h, err := c.health(s)
	if err != nil {
		return err
	}
	return showEndpoint(s, p, h)
}

type endpointEnable struct{ endpointName }

// Run enables the endpoint first, so that what is queued after it is not parked again. What an interrupt leaves parked
// is queued by deliveries replay --dead.
func (c *endpointEnable) Run(s *session) error {
	p, h, err := c.health(s)
	if err != nil {
		return err
	}
	if h.Enabled() {
		return errors.New("the endpoint is enabled; what is still parked: deliveries replay --dead")
	}
	since := h.DisabledAt.Add(-lookback)
	err = s.hand.act(Act{"enable an endpoint", p.Name + " " + h.URL}, func() (string, error) {
		if err := s.hand.saveDisabled(h.Enable(s.Now())); err != nil {
			return "nothing", err
		}
		queued, err := c.unpark(s, h.Endpoint, since)
		return plural(queued, "notification") + " queued", err
	})
	if err != nil {
		return err
	}
	return showEndpoint(s, p, h.Enable(s.Now()))
}

// unpark queues what was parked at the endpoint since a time.
func (c *endpointEnable) unpark(s *session, endpoint webhook.Endpoint, since time.Time) (int, error) {
	queued := 0
	for e, err := range s.days(endpoint.MerchantID, since, s.Now()) {
		if err == nil {
			err = s.interrupted()
		}
		if err != nil {
			return queued, err
		}
		if head := e.Head(); e.NotifyURL != endpoint.URL || head == nil || !head.Parked {
			continue
		}
		_, err := s.hand.changeEntry(e.Key, func(e *ledger.Entry) error {
			if e.Unpark(ledger.Moment(s.Now())) {
				return nil
			}
			return ledger.ErrUnchanged
		})
		if err != nil {
			return queued, fmt.Errorf("%s: %w", e.Key, err)
		}
		queued++
		if queued%progressEvery == 0 {
			fmt.Fprintf(s.Notes, "%d queued\n", queued)
		}
	}
	return queued, nil
}
