package gatewayctl

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
)

// platform is the part of a merchant's requests that is the same for all merchants of a deployment: the stack's
// outputs, or run.json of the local run. A value that is not known stays empty.
type platform struct {
	BaseURL       string `json:"base_url" variable:"BASE_URL" placeholder:"URL" help:"Output BaseUrl of the stack."`
	ServiceID     string `json:"service_id" variable:"SERVICE_ID" placeholder:"TEXT" help:"Output ServiceId."`
	ApplicationID string `json:"application_id" variable:"APPLICATION_ID" placeholder:"TEXT" help:"ApplicationId."`
	ContactID     string `json:"contact_id" variable:"CONTACT_ID" placeholder:"TEXT" help:"Output ContactId."`
}

// values are the values by the names of their variables.
func (p platform) values() map[string]string {
	return map[string]string{
		"BASE_URL": p.BaseURL, "SERVICE_ID": p.ServiceID, "APPLICATION_ID": p.ApplicationID, "CONTACT_ID": p.ContactID,
	}
}

// onboardingResult is what a merchant receives at its onboarding.
type onboardingResult struct {
	merchantView
	platform
	AccessToken   string `json:"access_token"`
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
	WebhookSecret string `json:"webhook_secret"`
}

// text is the result as a text to send to the merchant: all that its requests need, by the names of the contract.
func (r onboardingResult) text() table {
	known := func(value, output string) string {
		return cmp.Or(value, "not known here: the output "+output+" of the stack")
	}
	limit := "no limit"
	if r.RequestsPerSecond > 0 {
		limit = fmt.Sprintf("%d, and %d at once", r.RequestsPerSecond, r.Burst)
	}
	return table{
		{fmt.Sprintf("For %s: what your requests need. Keep it safe: the secrets are shown only once.", r.Name)},
		{},
		{"base address", known(r.BaseURL, "BaseUrl")},
		{"access token", r.AccessToken},
		{"client id", r.ClientID},
		{"client secret", r.ClientSecret},
		{"webhook secret", r.WebhookSecret},
		{"merchant name", fmt.Sprintf("%s (an order_id: %s_ and digits)", r.Name, r.Name)},
		{"serviceId", known(r.ServiceID, "ServiceId")},
		{"X-OAPI-Application-Id", known(r.ApplicationID, "ApplicationId")},
		{"X-OAPI-Contact-Id", known(r.ContactID, "ContactId")},
		{"onBehalfOf", joinComma(r.OnBehalfOf)},
		{"senderName", cmp.Or(joinComma(r.SenderNames), "any")},
		{"operations", joinComma(r.Operations)},
		{"countries", joinComma(r.Countries)},
		{"mno-name", joinComma(r.Operators)},
		{"notifications go to", cmp.Or(r.NotifURL, "the notif_url of each request")},
		{"hosts of a notif_url", cmp.Or(joinComma(r.NotificationHosts), "none")},
		{"requests per second", limit},
		{"amounts per day", cmp.Or(cellText(reflect.ValueOf(r.DailyAmounts)), "no limit")},
	}
}

// showOnboarding shows the result, and says which of the merchant's values are not known.
func (s *session) showOnboarding(r onboardingResult) error {
	var missing []string
	for name, value := range r.values() {
		if value == "" {
			missing = append(missing, name)
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		fmt.Fprintf(s.Stderr, "The merchant also needs %s: set them to the outputs of the stack.\n", joinComma(missing))
	}
	return s.show(r, r.text())
}
