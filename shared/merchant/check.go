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

// maxSenderName is the longest senderName in characters (decision "sms-sender-name").
const maxSenderName = 11

// Check names every fault of a profile that a person filled in: entitlements that do not exist, a home country that is
// not among the countries, a notification URL that could not be used. allowLoopback is true in the local run alone.
func (p *Profile) Check(allowLoopback bool) error {
	var faults []error
	if !ValidName(p.Name) {
		faults = append(faults, ErrName)
	}
	if !validID(p.ID) {
		faults = append(faults, errors.New("the id is not one that New made"))
	}
	faults = append(faults, p.checkEntitlements()...)
	faults = append(faults, p.checkNotification(allowLoopback)...)
	faults = append(faults, p.checkLimits()...)
	return errors.Join(faults...)
}

// checkEntitlements names the faults of what the merchant may use.
func (p *Profile) checkEntitlements() []error {
	var faults []error
	say := func(format string, values ...any) { faults = append(faults, fmt.Errorf(format, values...)) }
	for _, operation := range p.Operations {
		if !slices.Contains([]string{OperationCharge, OperationPay, OperationSMS}, operation) {
			say("operation %q is not one", operation)
		}
	}
	for _, code := range p.Countries {
		if c, known := market.ByAlpha2(code); !known || c.Alpha2 != code {
			say("country %q is not served", code)
		}
	}
	if p.HomeCountry != "" && !slices.Contains(p.Countries, p.HomeCountry) {
		say("home country %q is not one of the countries", p.HomeCountry)
	}
	for _, name := range p.Operators {
		if name == "" || name != strings.ToLower(name) {
			say("operator %q is not in lower case", name)
		}
	}
	for _, name := range p.SenderNames {
		if length := utf8.RuneCountInString(name); length < 1 || length > maxSenderName {
			say("sender name %q is not 1 to %d characters", name, maxSenderName)
		}
	}
	return faults
}

// checkNotification names the faults of the registered hosts and of the provisioned URL.
func (p *Profile) checkNotification(allowLoopback bool) []error {
	var faults []error
	for _, host := range p.NotificationHosts {
		alone := outgoing.Policy{AllowLoopback: allowLoopback, HostsOnly: true, Hosts: []string{host}}
		if err := outgoing.Check("https://"+host+"/", alone); err != nil {
			faults = append(faults, fmt.Errorf("notification host %q: %w", host, err))
		}
	}
	if p.NotifURL != "" {
		if err := outgoing.Check(p.NotifURL, p.NotificationPolicy(allowLoopback)); err != nil {
			faults = append(faults, fmt.Errorf("notif_url: %w", err))
		}
	}
	return faults
}
