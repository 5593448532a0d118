package merchant

import (
	"errors"
	"fmt"
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
	var errs []error
	if !ValidName(p.Name) {
		errs = append(errs, ErrInvalidName)
	}
	if !validID(p.ID) {
		errs = append(errs, errors.New("the id does not have the form of a merchant id"))
	}
	errs = append(errs, p.validateEntitlements()...)
	errs = append(errs, p.validateNotification(allowLoopback)...)
	errs = append(errs, p.validateLimits()...)
	return errors.Join(errs...)
}

func (p *Profile) validateEntitlements() []error {
	var errs []error
	addError := func(format string, values ...any) { errs = append(errs, fmt.Errorf(format, values...)) }
	for _, operation := range p.Operations {
		if !slices.Contains([]string{OperationCharge, OperationPay, OperationSMS}, operation) {
			addError("operation %q is not charge, pay or sms", operation)
		}
	}
	for _, code := range p.Countries {
		if c, known := market.ByAlpha2(code); !known || c.Alpha2 != code {
			addError("country %q is not served", code)
		}
	}
	if p.HomeCountry != "" && !slices.Contains(p.Countries, p.HomeCountry) {
		addError("home country %q is not one of the countries", p.HomeCountry)
	}
	for _, name := range p.Operators {
		if name == "" || name != strings.ToLower(name) {
			addError("operator %q is not in lower case", name)
		}
	}
	for _, name := range p.SenderNames {
		if length := utf8.RuneCountInString(name); length < 1 || length > maxSenderNameLength {
			addError("sender name %q is not 1 to %d characters", name, maxSenderNameLength)
		}
	}
	return errs
}

// validateNotification returns the faults of the registered hosts and the provisioned URL.
func (p *Profile) validateNotification(allowLoopback bool) []error {
	var errs []error
	for _, host := range p.NotificationHosts {
		policy := p.NotificationPolicy(allowLoopback)
		policy.RegisteredHosts = []string{host}
		if err := outgoing.CheckNotificationURL("https://"+host+"/", policy); err != nil {
			errs = append(errs, fmt.Errorf("notification host %q: %w", host, err))
		}
	}
	if p.ChargeNotif && p.NotifURL == "" {
		errs = append(errs, errors.New("charge-notif needs a notif_url"))
	}
	if p.NotifURL != "" {
		if err := outgoing.CheckNotificationURL(p.NotifURL, p.NotificationPolicy(allowLoopback)); err != nil {
			errs = append(errs, fmt.Errorf("notif_url: %w", err))
		}
	}
	return errs
}
