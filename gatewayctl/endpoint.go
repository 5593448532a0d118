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

	Disable endpointDisable `cmd:"" help:"Disable a merchant's URLs: notifications are parked until they are enabled."`
}

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

type undelivered struct {
	Waiting     int `json:"waiting" col:"WAITING"`
	Parked      int `json:"parked" col:"PARKED"`
	DeadLetters int `json:"dead_letters" col:"DEAD LETTERS"`
	parked      []ledger.Key
}

// seenURLs are the URLs of a merchant's transactions.
type seenURLs map[string]undelivered

// readURLs reads the URLs of a merchant's transactions since a time, and the profile's own.
func readURLs(s *session, p *merchant.Profile, since time.Time) (seenURLs, error) {
	seen := seenURLs{p.NotifURL: {}}
	for e, err := range entriesBetween(s, p.ID, since, s.Now()) {
		if err = cmp.Or(err, s.Err()); err != nil {
			return nil, err
		}
		former, address := seen[e.NotifyURL], delivery.NotificationURL(e, p)
		seen[e.NotifyURL] = former
		at := seen[address]
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
		seen[address] = at
	}
	delete(seen, "")
	return seen, nil
}

// parkedAt returns the transactions with a notification that is parked at one of the URLs.
func (u seenURLs) parkedAt(urls []string) (keys []ledger.Key) {
	for _, address := range urls {
		keys = append(keys, u[address].parked...)
	}
	return keys
}

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

type listedEndpoint struct {
	endpointView
	undelivered
}

// Run lists the URLs of the merchant's transactions, and the profile's own.
func (c *endpointList) Run(s *session, p *merchant.Profile) error {
	seen, err := readURLs(s, p, cmp.Or(c.Since.Time, firstDay(p, s.Now())))
	if err != nil {
		return err
	}
	healths, err := endpointHealths(s, p, slices.Sorted(maps.Keys(seen)))
	if err != nil {
		return err
	}
	return showList(s, mapAll(healths, func(at webhook.Health) listedEndpoint {
		return listedEndpoint{endpointViewOf(p, at), seen[at.URL]}
	}))
}

// urlFlag selects one URL of a merchant.
type urlFlag struct {
	URL string `name:"url" placeholder:"URL" help:"The exact URL. Else the own notif_url; in a test the disabled one."`
}

// address is the selected URL. A URL with a masked query, as the tool shows it, selects the one URL that looks like it.
func (c urlFlag) address(p *merchant.Profile, seen seenURLs) (string, error) {
	address := cmp.Or(c.URL, p.NotifURL)
	if address == "" {
		return "", fmt.Errorf("%s has no notif_url of its own: name the URL with --url", p.Name)
	}
	if !strings.HasSuffix(address, maskedQuery) {
		return address, nil
	}
	same := slices.DeleteFunc(slices.Sorted(maps.Keys(seen)), func(u string) bool { return maskQueries(u) != address })
	if len(same) != 1 {
		return "", fmt.Errorf("%d addresses of %s look like %s: name the whole URL", len(same), p.Name, address)
	}
	return same[0], nil
}

type endpointShow struct {
	merchantArgument
	urlFlag
}

// Run shows the endpoint.
func (c *endpointShow) Run(s *session, p *merchant.Profile) error {
	selected, err := endpointSelection{urlFlag: c.urlFlag}.ProvideSelected(s, p)
	if err != nil {
		return err
	}
	return s.showView(endpointViewOf(p, selected.healths[0]))
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

// selectedEndpoints are the selected URLs, at least one, with all that the merchant's transactions have.
type selectedEndpoints struct {
	merchant *merchant.Profile
	urls     []string
	healths  []webhook.Health
	seen     seenURLs
}

// ProvideSelected reads the selected URLs for the Run methods of the commands with a selection (kong's provider). A
// single URL at which the merchant was never notified is an error.
func (c endpointSelection) ProvideSelected(s *session, p *merchant.Profile) (selected selectedEndpoints, err error) {
	selected.merchant = p
	if c.URL != "" && c.Host != "" || c.All && c.URL+c.Host != "" {
		return selected, usageError("--url, --host and --all exclude each other: use one of them")
	}
	if selected.seen, err = readURLs(s, p, firstDay(p, s.Now())); err != nil {
		return selected, err
	}
	if selected.urls, err = c.selectURLs(p, selected.seen); err != nil {
		return selected, err
	}
	if selected.healths, err = endpointHealths(s, p, selected.urls); err != nil {
		return selected, err
	}
	at := selected.healths[0]
	if _, isSeen := selected.seen[at.URL]; len(selected.urls) == 1 && !isSeen && at.DisabledVersion == 0 {
		return selected, neverSeenError(p, at.URL)
	}
	return selected, nil
}

// subject names the selection in the audit record.
func (c endpointSelection) subject(selected selectedEndpoints) string {
	return selected.merchant.Name + " " + cmp.Or(c.Host, joinComma(selected.urls))
}

type endpointEnable struct {
	merchantArgument
	endpointSelection
}

// enableResult is the output of endpointEnable: the URLs that were enabled, how many parked notifications were queued,
// and how many others wait there, behind these or for a later attempt.
type enableResult struct {
	Queued    int            `json:"queued"`
	Waiting   int            `json:"waiting"`
	Endpoints []endpointView `json:"endpoints"`
}

// Run enables the endpoints first, so that queued notifications are not parked again. Then it queues what is parked, of
// transactions of any age, until nothing is parked.
func (c *endpointEnable) Run(s *session, selected selectedEndpoints) error {
	p, result := selected.merchant, enableResult{Endpoints: []endpointView{}}
	for _, address := range selected.urls {
		result.Waiting += selected.seen[address].Waiting
	}
	err := s.execute("enable an endpoint", c.subject(selected), func() (_ string, err error) {
		result.Endpoints, err = selected.change(s, func(at webhook.Health) (webhook.Health, bool) {
			return at.AfterEnable(s.Now()), !at.Enabled()
		})
		if err != nil {
			return fmt.Sprint("enabled: ", len(result.Endpoints)), err
		}
		result.Queued, err = selected.queueParked(s)
		return fmt.Sprintf("enabled: %d, %s queued, %d more waiting", len(result.Endpoints),
			plural(result.Queued, "notification"), result.Waiting), err
	})
	if err == nil && result.Waiting > 0 {
		since := firstDay(p, s.Now()).Format(time.DateOnly)
		fmt.Fprintln(s.Stderr, "The waiting ones go by their schedule, or now by",
			s.toolCommand(confirmArguments("deliveries", "send", "--merchant", p.Name, "--since", since)...))
	}
	rows := table{{"queued", strconv.Itoa(result.Queued)}, {"waiting", strconv.Itoa(result.Waiting)}, {}}
	return errors.Join(err, s.show(result, append(rows, listRows(result.Endpoints)...)))
}

type endpointDisable struct {
	merchantArgument
	endpointSelection
}

// Run disables the endpoints: from their next attempt on, notifications are parked until endpoint enable. An attempt
// that is in progress ends as usual.
func (c *endpointDisable) Run(s *session, selected selectedEndpoints) error {
	var disabled []endpointView
	err := s.execute("disable an endpoint", c.subject(selected), func() (_ string, err error) {
		disabled, err = selected.change(s, func(at webhook.Health) (webhook.Health, bool) {
			return at.AfterDisable(webhook.Result{Reason: webhook.ReasonManual}, s.Now())
		})
		return fmt.Sprint("disabled: ", len(disabled)), err
	})
	return errors.Join(err, showList(s, disabled))
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

// change stores whether the selected URLs are disabled, for those that next changes, and returns what it stored.
func (e selectedEndpoints) change(
	s *session, next func(webhook.Health) (changed webhook.Health, isChange bool),
) ([]endpointView, error) {
	stored := []endpointView{}
	for _, at := range e.healths {
		changed, isChange := next(at)
		if !isChange {
			continue
		}
		saved, err := s.stores.EndpointHealth.SaveDisabled(s, changed)
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
func (e selectedEndpoints) queueParked(s *session) (queued int, err error) {
	for keys := e.seen.parkedAt(e.urls); len(keys) > 0; keys = e.seen.parkedAt(e.urls) {
		for _, key := range keys {
			if err = s.Err(); err != nil {
				return queued, err
			}
			unpark := changeIf(func(e *ledger.Entry) bool { return e.Unpark(ledger.Timestamp(s.Now())) })
			if _, err = changeEntry(s, key, unpark); err != nil {
				return queued, fmt.Errorf("%s: %w", key, err)
			}
			if queued++; queued%progressEvery == 0 {
				fmt.Fprintln(s.Stderr, queued, s.ifApplied("queued", "would be queued"))
			}
		}
		if !s.Yes {
			break
		}
		if e.seen, err = readURLs(s, e.merchant, firstDay(e.merchant, s.Now())); err != nil {
			return queued, err
		}
		healths, err := endpointHealths(s, e.merchant, e.urls)
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
