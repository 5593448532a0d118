package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"mobilegateway/shared/delivery"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/webhook"
)

type endpointCommands struct {
	List   endpointList   `cmd:"" help:"List a merchant's URLs: whether each is disabled, and what waits there."`
	Show   endpointShow   `cmd:"" help:"Show whether a merchant's URL is disabled, and its server's health."`
	Enable endpointEnable `cmd:"" help:"Enable a merchant's disabled URLs, and queue their parked notifications."`
}

// endpointView is a merchant's URL with its health.
type endpointView struct {
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

func endpointViewOf(p *merchant.Profile, at webhook.Health) endpointView {
	return endpointView{
		Merchant: p.Name, URL: at.URL, Server: at.Server().Origin, Enabled: at.Enabled(),
		FastPath: at.AllowsFastPath(), Failures: at.Failures, LastError: at.LastReason, LastStatus: at.LastStatus,
		ChangedAt: at.ChangedAt, DisabledAt: at.DisabledAt,
	}
}

// undelivered are the notifications of a URL that are not delivered.
type undelivered struct {
	Waiting     int `json:"waiting" col:"WAITING"`
	Parked      int `json:"parked" col:"PARKED"`
	DeadLetters int `json:"dead_letters" col:"DEAD LETTERS"`
	parked      []ledger.Key
}

// seenURLs are the URLs of a merchant's transactions.
type seenURLs map[string]*undelivered

// readURLs reads the URLs of a merchant's transactions since a time, and the profile's own.
func readURLs(s *session, p *merchant.Profile, since time.Time) (seenURLs, error) {
	seen := seenURLs{}
	seen.add(p.NotifURL)
	for e, err := range s.entriesBetween(p.ID, since, s.Now()) {
		if err = cmp.Or(err, s.Err()); err != nil {
			return nil, err
		}
		seen.add(e.NotifyURL) // also if it is a former one
		at := seen.add(delivery.NotificationURL(e, p))
		if head := e.OutboxHead(); head != nil && head.Parked {
			at.parked = append(at.parked, e.Key)
		}
		for _, view := range deliveryViews(e) {
			switch view.State {
			case deliveryWaiting:
				at.Waiting++
			case deliveryParked:
				at.Parked++
			case deliveryDeadLetter:
				at.DeadLetters++
			}
		}
	}
	delete(seen, "")
	return seen, nil
}

func (u seenURLs) add(address string) *undelivered {
	if u[address] == nil {
		u[address] = &undelivered{}
	}
	return u[address]
}

// parkedAt returns the transactions with a notification that is parked at one of the URLs.
func (u seenURLs) parkedAt(urls []string) (keys []ledger.Key) {
	for _, address := range urls {
		if at := u[address]; at != nil {
			keys = append(keys, at.parked...)
		}
	}
	return keys
}

// endpointHealths reads the health of URLs.
func endpointHealths(s *session, p *merchant.Profile, urls []string) ([]webhook.Health, error) {
	var healths []webhook.Health
	for _, address := range urls {
		at, err := s.stores.EndpointHealth.Health(s, webhook.Endpoint{MerchantID: p.ID, URL: address})
		if err != nil {
			return nil, err
		}
		healths = append(healths, at)
	}
	return healths, nil
}

type endpointList struct {
	merchantArgument
	Since moment `placeholder:"TIME" help:"Only of transactions since this UTC day; all if not given."`
}

// listedEndpoint is a URL with what waits there.
type listedEndpoint struct {
	endpointView
	undelivered
}

// Run lists the URLs of the merchant's transactions, and the profile's own.
func (c *endpointList) Run(s *session, p *merchant.Profile) error {
	since := c.Since.Time
	if since.IsZero() {
		since = firstDay(p, s.Now())
	}
	seen, err := readURLs(s, p, since)
	if err != nil {
		return err
	}
	healths, err := endpointHealths(s, p, slices.Sorted(maps.Keys(seen)))
	if err != nil {
		return err
	}
	return showList(s, mapAll(healths, func(at webhook.Health) listedEndpoint {
		return listedEndpoint{endpointViewOf(p, at), *seen[at.URL]}
	}))
}

// urlFlag selects one URL of a merchant.
type urlFlag struct {
	URL string `name:"url" placeholder:"URL" help:"The exact URL; the merchant's own notif_url if not given."`
}

// address is the selected URL.
func (c urlFlag) address(p *merchant.Profile) (string, error) {
	address := cmp.Or(c.URL, p.NotifURL)
	if address == "" {
		return "", fmt.Errorf("%s has no notif_url of its own: name the URL with --url", p.Name)
	}
	return address, nil
}

type endpointShow struct {
	merchantArgument
	urlFlag
}

// Run shows the endpoint.
func (c *endpointShow) Run(s *session, p *merchant.Profile) error {
	address, err := c.address(p)
	if err != nil {
		return err
	}
	healths, err := endpointHealths(s, p, []string{address})
	if err != nil {
		return err
	}
	if at := healths[0]; address != p.NotifURL && at.DisabledVersion == 0 {
		seen, err := readURLs(s, p, firstDay(p, s.Now()))
		if err != nil {
			return err
		}
		if seen[address] == nil {
			return neverSeenError(p, address)
		}
	}
	return s.showView(endpointViewOf(p, healths[0]))
}

// neverSeenError refuses an address that no transaction of the merchant has: it is probably misspelt.
func neverSeenError(p *merchant.Profile, address string) error {
	return fmt.Errorf("%s was never notified at %s: endpoint list %s shows the addresses", p.Name, address, p.Name)
}

type endpointEnable struct {
	merchantArgument
	urlFlag
	Host string `placeholder:"HOST" help:"All URLs of this host, or of this host:port."`
	All  bool   `help:"All URLs of the merchant."`
}

// enableResult is the output of endpointEnable: the URLs that were enabled, and how many notifications were queued.
type enableResult struct {
	Queued    int            `json:"queued"`
	Endpoints []endpointView `json:"endpoints"`
}

// Run enables the endpoints first, so that queued notifications are not parked again. Then it queues what is parked, of
// transactions of any age, until nothing is parked.
func (c *endpointEnable) Run(s *session, p *merchant.Profile) error {
	if c.URL != "" && c.Host != "" || c.All && c.URL+c.Host != "" {
		return usageError("--url, --host and --all exclude each other: use one of them")
	}
	seen, err := readURLs(s, p, firstDay(p, s.Now()))
	if err != nil {
		return err
	}
	urls, err := c.selectURLs(p, seen)
	if err != nil {
		return err
	}
	healths, err := endpointHealths(s, p, urls)
	if err != nil {
		return err
	}
	if at := healths[0]; len(urls) == 1 && seen[at.URL] == nil && at.DisabledVersion == 0 {
		return neverSeenError(p, at.URL)
	}
	result := enableResult{Endpoints: []endpointView{}}
	err = s.execute("enable an endpoint", p.Name+" "+cmp.Or(c.Host, joinComma(urls)), func() (string, error) {
		for _, at := range healths {
			if at.Enabled() {
				continue
			}
			if at, err = enableURL(s, at); err != nil {
				return fmt.Sprint("enabled: ", len(result.Endpoints)), err
			}
			result.Endpoints = append(result.Endpoints, endpointViewOf(p, at))
		}
		result.Queued, err = queueParked(s, p, urls, seen)
		return fmt.Sprintf("enabled: %d, %s queued", len(result.Endpoints), plural(result.Queued, "notification")), err
	})
	return errors.Join(err, s.show(result, append(table{{"queued", strconv.Itoa(result.Queued)}, {}},
		listRows(result.Endpoints)...)))
}

// selectURLs returns the URLs that the flags select, at least one.
func (c *endpointEnable) selectURLs(p *merchant.Profile, seen seenURLs) ([]string, error) {
	if c.Host == "" && !c.All {
		address, err := c.address(p)
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

// enableURL stores a disabled URL as enabled.
func enableURL(s *session, at webhook.Health) (webhook.Health, error) {
	enabled := at.AfterEnable(s.Now())
	saved, err := s.stores.EndpointHealth.SaveDisabled(s, enabled)
	if err == nil && !saved {
		err = errors.New("the endpoint was changed meanwhile: run the command again")
	}
	return enabled, err
}

// queueParked queues the notifications that are parked at the URLs, until nothing is parked there: a running sweep may
// park further ones. It ends with an error if a URL was disabled again. A dry run counts what is parked now.
func queueParked(s *session, p *merchant.Profile, urls []string, seen seenURLs) (queued int, err error) {
	for keys := seen.parkedAt(urls); len(keys) > 0; keys = seen.parkedAt(urls) {
		for _, key := range keys {
			if err = s.Err(); err != nil {
				return queued, err
			}
			unpark := changeIf(func(e *ledger.Entry) bool { return e.Unpark(ledger.Timestamp(s.Now())) })
			if _, err = s.changeEntry(key, unpark); err != nil {
				return queued, fmt.Errorf("%s: %w", key, err)
			}
			if queued++; queued%progressEvery == 0 {
				fmt.Fprintf(s.Stderr, "%d queued\n", queued)
			}
		}
		if !s.Yes {
			break
		}
		if seen, err = readURLs(s, p, firstDay(p, s.Now())); err != nil {
			return queued, err
		}
		healths, err := endpointHealths(s, p, urls)
		if err != nil {
			return queued, err
		}
		for _, at := range healths {
			if !at.Enabled() {
				return queued, fmt.Errorf("%s responded 410 again and is disabled: contact the merchant", at.URL)
			}
		}
	}
	return queued, nil
}
