package merchant

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"mobilegateway/shared/market"
	"mobilegateway/shared/outgoing"
)

// maxSenderNameLength is the longest senderName in characters (decision "sms-sender-name").
const maxSenderNameLength = 11

// Validate returns every fault of a profile that a person filled in: unknown entitlements, a home country outside the
// countries, an unusable notification URL. allowLoopback is true only in the local run.
func (p *Profile) Validate(allowLoopback bool) error {
	var errs errorList
	if !ValidName(p.Name) {
		errs = append(errs, ErrInvalidName)
	}
	if !validID(p.ID) {
		errs.add("the id does not have the form of a merchant id")
	}
	p.Entitlements.validate(&errs)
	p.Notifications.validate(allowLoopback, &errs)
	p.Limits.validate(&errs)
	p.Partitions.validate(&errs)
	return errors.Join(errs...)
}

// errorList collects the faults of a profile.
type errorList []error

func (l *errorList) add(format string, values ...any) { *l = append(*l, fmt.Errorf(format, values...)) }

func (e *Entitlements) validate(errs *errorList) {
	for _, operation := range e.Operations {
		if !slices.Contains(Operations(), operation) {
			errs.add("operation %q is not one of %s", operation, strings.Join(Operations(), ", "))
		}
	}
	for _, code := range e.Countries {
		if c, known := market.ByAlpha2(code); !known || c.Alpha2 != code {
			errs.add("country %q is not served", code)
		}
	}
	if e.HomeCountry != "" && !slices.Contains(e.Countries, e.HomeCountry) {
		errs.add("home country %q is not one of the countries", e.HomeCountry)
	}
	for _, name := range e.Operators {
		if name == "" || name != strings.ToLower(name) {
			errs.add("operator %q is not in lower case", name)
		}
	}
	for _, name := range e.SenderNames {
		if length := utf8.RuneCountInString(name); length < 1 || length > maxSenderNameLength {
			errs.add("sender name %q is not 1 to %d characters", name, maxSenderNameLength)
		}
	}
}

// validate adds the faults of the registered hosts and the provisioned URL.
func (n *Notifications) validate(allowLoopback bool, errs *errorList) {
	for _, host := range n.NotificationHosts {
		policy := n.NotificationPolicy(allowLoopback)
		policy.RegisteredHosts = []string{host}
		if err := outgoing.CheckNotificationURL("https://"+host+"/", policy); err != nil {
			errs.add("notification host %q: %w", host, err)
		}
	}
	if n.ChargeNotif && n.NotifURL == "" {
		errs.add("charge-notif needs a notif_url")
	}
	if n.NotifURL != "" {
		if err := outgoing.CheckNotificationURL(n.NotifURL, n.NotificationPolicy(allowLoopback)); err != nil {
			errs.add("notif_url: %w", err)
		}
	}
}

func (l *Limits) validate(errs *errorList) {
	if l.RequestsPerSecond < 0 || l.RequestsPerSecond > MaxRequestsPerSecond {
		errs.add("requests per second must be from 0 (no limit) to %d", MaxRequestsPerSecond)
	}
	if l.Burst < 0 || l.Burst > MaxBurst {
		errs.add("the burst must be from 0 (as many as per second) to %d", MaxBurst)
	}
	if l.Burst > 0 && l.RequestsPerSecond == 0 {
		errs.add("a burst needs requests per second: set both")
	}
	for _, currency := range slices.Sorted(maps.Keys(l.DailyAmounts)) {
		if _, known := market.CurrencyExponent(currency); !known {
			errs.add("daily amount: no country has the currency %q", currency)
		}
		if l.DailyAmounts[currency] <= 0 {
			errs.add("daily amount: %s must be more than 0", currency)
		}
	}
}
