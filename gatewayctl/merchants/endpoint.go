package merchants

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

// EndpointView is a URL with the health of its server.
type EndpointView struct {
	Merchant   string    `json:"merchant" row:"merchant"`
	URL        string    `json:"url" row:"url" col:"URL"`
	Server     string    `json:"server" row:"server"`
	Enabled    bool      `json:"enabled" row:"enabled" col:"ENABLED"`
	FastPath   bool      `json:"fast_path" row:"fast path" col:"FAST PATH"`
	Failures   int       `json:"failures" row:"server's failures in a row" col:"FAILURES"`
	LastError  string    `json:"last_error,omitempty" row:"last error" col:"LAST ERROR"`
	LastStatus int       `json:"last_status,omitempty" row:"last status"`
	ChangedAt  time.Time `json:"changed_at,omitzero" row:"changed"`
	DisabledAt time.Time `json:"disabled_at,omitzero" row:"disabled" col:"DISABLED"`
}

func endpointViewOf(p *merchant.Profile, at webhook.Health) EndpointView {
	return EndpointView{
		Merchant: p.Name, URL: at.URL, Server: at.Server().Origin, Enabled: at.Enabled(),
		FastPath: at.AllowsFastPath(), Failures: at.Failures, LastError: at.LastReason, LastStatus: at.LastStatus,
		ChangedAt: at.ChangedAt, DisabledAt: at.DisabledAt,
	}
}

// Undelivered counts the notifications that are not delivered.
type Undelivered struct {
	Waiting     int `json:"waiting" col:"WAITING"`
	Parked      int `json:"parked" col:"PARKED"`
	DeadLetters int `json:"dead_letters" col:"DEAD LETTERS"`
	parked      []ledger.Key
}

// seenURLs are the URLs of a merchant's transactions.
type seenURLs map[string]Undelivered

// readURLs reads the URLs of a merchant's transactions since a time, and the profile's own.
func readURLs(s *session.Session, p *merchant.Profile, since time.Time) (seenURLs, error) {
	seen := seenURLs{p.NotifURL: {}}
	for e, err := range entries.Between(s, p, since, s.Now()) {
		if err = cmp.Or(err, s.Err()); err != nil {
			return nil, err
		}
		former, address := seen[e.Outbox.URL], delivery.NotificationURL(e, p)
		seen[e.Outbox.URL] = former
		at := seen[address]
		if head := e.Outbox.Head(); head != nil && head.Parked {
			at.parked = append(at.parked, e.Key)
		}
		for _, view := range entries.Notifications(e) {
			switch view.State {
			case entries.DeliveryWaiting:
				at.Waiting++
			case entries.DeliveryParked:
				at.Parked++
			case entries.DeliveryDeadLetter:
				at.DeadLetters++
			}
		}
		seen[address] = at
	}
	delete(seen, "")
	return seen, nil
}

// EndpointHealths reads the health of a merchant's URLs.
func EndpointHealths(s *session.Session, p *merchant.Profile, urls []string) ([]webhook.Health, error) {
	var healths []webhook.Health
	for _, address := range urls {
		at, err := s.Stores.EndpointHealth.Health(s, webhook.Endpoint{MerchantID: p.ID, URL: address})
		if err != nil {
			return nil, err
		}
		healths = append(healths, at)
	}
	return healths, nil
}

// Endpoints are the commands below endpoint.
type Endpoints struct {
	List   endpointList   `cmd:"" help:"List a merchant's URLs: whether each is disabled, and what waits there."`
	Show   endpointShow   `cmd:"" help:"Show whether a merchant's URL is disabled, and its server's health."`
	Enable endpointEnable `cmd:"" help:"Enable a merchant's disabled URLs, and queue their parked notifications."`

	Disable endpointDisable `cmd:"" help:"Disable a merchant's URLs: notifications are parked until they are enabled."`
}

type endpointList struct {
	session.MerchantArgument
	Since session.Moment `placeholder:"TIME" help:"Only of transactions since this UTC day; all if not given."`
}

// Run lists the URLs of the merchant's transactions, and the profile's own.
func (c *endpointList) Run(s *session.Session, p *merchant.Profile) error {
	seen, err := readURLs(s, p, cmp.Or(c.Since.Time, entries.FirstDay(p, s.Now())))
	if err != nil {
		return err
	}
	healths, err := EndpointHealths(s, p, slices.Sorted(maps.Keys(seen)))
	if err != nil {
		return err
	}
	return session.ShowList(s, output.MapAll(healths, func(at webhook.Health) ListedEndpoint {
		return ListedEndpoint{endpointViewOf(p, at), seen[at.URL]}
	}))
}

// ListedEndpoint is a URL with what waits there.
type ListedEndpoint struct {
	EndpointView
	Undelivered
}

// urlFlag selects one URL of a merchant.
type urlFlag struct {
	URL string `placeholder:"URL" help:"The exact URL; else notif_url, in tests the disabled one. Name one of several."`
}

// address is the selected URL. A URL with a masked query, as the tool shows it, selects the one URL that looks like it.
func (c urlFlag) address(p *merchant.Profile, seen seenURLs) (string, error) {
	address := cmp.Or(c.URL, p.NotifURL)
	if address == "" {
		return "", fmt.Errorf("%s has no notif_url of its own: name the URL with --url", p.Name)
	}
	if !strings.HasSuffix(address, output.MaskedQuery) {
		return address, nil
	}
	same := slices.DeleteFunc(slices.Sorted(maps.Keys(seen)),
		func(u string) bool { return output.MaskQueries(u) != address })
	if len(same) != 1 {
		return "", fmt.Errorf("%d addresses of %s look like %s: name the whole URL", len(same), p.Name, address)
	}
	return same[0], nil
}

type endpointShow struct {
	session.MerchantArgument
	urlFlag
}

// Run shows the endpoint.
func (c *endpointShow) Run(s *session.Session, p *merchant.Profile) error {
	selected, err := endpointSelection{urlFlag: c.urlFlag}.ProvideSelected(s, p)
	if err != nil {
		return err
	}
	return s.ShowView(endpointViewOf(p, selected.healths[0]))
}

// neverSeenError refuses an address that no transaction of the merchant has: it is probably misspelt.
func neverSeenError(p *merchant.Profile, address string) error {
	return fmt.Errorf("%s was never notified at %s: endpoint list %s shows the addresses", p.Name, address, p.Name)
}

type endpointSelection struct {
	urlFlag
	Host string `placeholder:"HOST" help:"All URLs of this host, or of this host:port."`
	All  bool   `help:"All URLs of the merchant."`
}

// ProvideSelected reads the selected URLs for the Run methods of the commands with a selection (kong's provider). A
// single URL at which the merchant was never notified is an error.
func (c endpointSelection) ProvideSelected(
	s *session.Session, p *merchant.Profile,
) (selected selectedEndpoints, err error) {
	selected.merchant = p
	if c.URL != "" && c.Host != "" || c.All && c.URL+c.Host != "" {
		return selected, output.UsageError("--url, --host and --all exclude each other: use one of them")
	}
	selected.seen, err = readURLs(s, p, entries.FirstDay(p, s.Now()))
	if err != nil {
		return selected, err
	}
	selected.urls, err = c.selectURLs(p, selected.seen)
	if err != nil {
		return selected, err
	}
	selected.healths, err = EndpointHealths(s, p, selected.urls)
	if err != nil {
		return selected, err
	}
	at := selected.healths[0]
	if _, isSeen := selected.seen[at.URL]; len(selected.urls) == 1 && !isSeen && at.DisabledVersion == 0 {
		return selected, neverSeenError(p, at.URL)
	}
	return selected, nil
}

// subject names the endpoints that a command changes in the audit record: all selected ones if none changes.
func (c endpointSelection) subject(selected selectedEndpoints, changes func(webhook.Health) bool) string {
	changing := slices.DeleteFunc(slices.Clone(selected.healths), func(at webhook.Health) bool { return !changes(at) })
	urls := output.MapAll(changing, func(at webhook.Health) string { return at.URL })
	return selected.merchant.Name + " " + cmp.Or(c.Host, output.JoinComma(urls), output.JoinComma(selected.urls))
}

// selectURLs returns the URLs that the flags select, at least one.
func (c endpointSelection) selectURLs(p *merchant.Profile, seen seenURLs) ([]string, error) {
	if c.Host == "" && !c.All {
		address, err := c.address(p, seen)
		return []string{address}, err
	}
	urls := slices.Sorted(maps.Keys(seen))
	if c.Host != "" {
		urls = slices.DeleteFunc(urls, func(address string) bool {
			parsed, err := url.Parse(address)
			return err != nil ||
				!strings.EqualFold(parsed.Host, c.Host) && !strings.EqualFold(parsed.Hostname(), c.Host)
		})
	}
	if len(urls) == 0 {
		return nil, neverSeenError(p, cmp.Or(c.Host, "any address"))
	}
	return urls, nil
}

// selectedEndpoints are the selected URLs, at least one, with all that the merchant's transactions have.
type selectedEndpoints struct {
	merchant *merchant.Profile
	urls     []string
	healths  []webhook.Health
	seen     seenURLs
}

// change stores whether the selected URLs are disabled, for those that next changes, and returns what it stored.
func (e selectedEndpoints) change(
	s *session.Session, next func(webhook.Health) (changed webhook.Health, isChange bool),
) ([]EndpointView, error) {
	stored := []EndpointView{}
	for _, at := range e.healths {
		changed, isChange := next(at)
		if !isChange {
			continue
		}
		saved, err := s.Stores.EndpointHealth.SaveDisabled(s, changed)
		if err == nil && !saved {
			err = errors.New("the endpoint was changed meanwhile: run the command again")
		}
		if err != nil {
			return stored, err
		}
		stored = append(stored, endpointViewOf(e.merchant, changed))
	}
	return stored, nil
}

// queueParked queues the notifications that are parked at the URLs, until nothing is parked there: a running sweep may
// park further ones. It ends with an error if a URL was disabled again. A dry run counts what is parked now.
func (e selectedEndpoints) queueParked(s *session.Session) (queued int, err error) {
	for {
		var keys []ledger.Key
		for _, address := range e.urls {
			keys = append(keys, e.seen[address].parked...)
		}
		for _, key := range keys {
			if err = s.Err(); err != nil {
				return queued, err
			}
			unpark := entries.Always(func(e *ledger.Entry) ledger.Transition {
				return ledger.Unpark.If(e.Outbox.Unpark(ledger.Timestamp(s.Now())))
			})
			if _, err = entries.Apply(s, key, unpark); err != nil {
				return queued, fmt.Errorf("%s: %w", key, err)
			}
			if queued++; queued%entries.ProgressEvery == 0 {
				fmt.Fprintln(s.Stderr, queued, s.IfApplied("queued", "would be queued"))
			}
		}
		if len(keys) == 0 || !s.Yes {
			return queued, nil
		}
		e.seen, err = readURLs(s, e.merchant, entries.FirstDay(e.merchant, s.Now()))
		if err != nil {
			return queued, err
		}
		healths, err := EndpointHealths(s, e.merchant, e.urls)
		if err != nil {
			return queued, err
		}
		for _, at := range healths {
			if !at.Enabled() {
				return queued, fmt.Errorf("%s responded 410 again and is disabled: contact the merchant", at.URL)
			}
		}
	}
}

type endpointEnable struct {
	session.MerchantArgument
	endpointSelection
}

// Run enables the endpoints first, so that queued notifications are not parked again. Then it queues what is parked, of
// transactions of any age, until nothing is parked.
func (c *endpointEnable) Run(s *session.Session, selected selectedEndpoints) error {
	p, result := selected.merchant, EnableResult{Endpoints: []EndpointView{}}
	isDisabled := func(at webhook.Health) bool { return !at.Enabled() }
	for _, address := range selected.urls {
		result.Waiting += selected.seen[address].Waiting
	}
	err := s.Execute("enable an endpoint", c.subject(selected, isDisabled), func() (_ string, err error) {
		result.Endpoints, err = selected.change(s, func(at webhook.Health) (webhook.Health, bool) {
			return at.AfterEnable(s.Now()), isDisabled(at)
		})
		if err != nil {
			return fmt.Sprint("enabled: ", len(result.Endpoints)), err
		}
		result.Queued, err = selected.queueParked(s)
		return fmt.Sprintf("enabled: %d, %s queued, %d more waiting", len(result.Endpoints),
			output.Plural(result.Queued, "notification"), result.Waiting), err
	})
	if err == nil && result.Waiting > 0 {
		since := entries.FirstDay(p, s.Now()).Format(time.DateOnly)
		fmt.Fprintln(s.Stderr, "The waiting ones go by their schedule, or now by",
			s.Command(session.ConfirmArguments("deliveries", "send", "--merchant", p.Name, "--since", since)...))
	}
	rows := append(output.Rows(result), []string{})
	return errors.Join(err, s.Show(result, append(rows, output.ListRows(result.Endpoints)...)))
}

// EnableResult is the output of endpointEnable: the URLs that were enabled, how many parked notifications were queued,
// and how many others wait there, behind these or for a later attempt.
type EnableResult struct {
	Queued    int            `json:"queued" row:"queued"`
	Waiting   int            `json:"waiting" row:"waiting"`
	Endpoints []EndpointView `json:"endpoints"`
}

type endpointDisable struct {
	session.MerchantArgument
	endpointSelection
}

// Run disables the endpoints: from their next attempt on, notifications are parked until endpoint enable. An attempt
// that is in progress ends as usual.
func (c *endpointDisable) Run(s *session.Session, selected selectedEndpoints) error {
	var disabled []EndpointView
	err := s.Execute("disable an endpoint", c.subject(selected, webhook.Health.Enabled), func() (_ string, err error) {
		disabled, err = selected.change(s, func(at webhook.Health) (webhook.Health, bool) {
			return at.AfterDisable(webhook.Result{Reason: webhook.ReasonManual}, s.Now())
		})
		return fmt.Sprint("disabled: ", len(disabled)), err
	})
	return errors.Join(err, session.ShowList(s, disabled))
}
