package setup

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/internal/smoke"
)

// Smoke checks a deployment from outside. Its requests move nothing.
type Smoke struct {
	merchants.Platform
	Merchant string `variable:"MERCHANT" placeholder:"NAME" help:"The merchant of $$ACCESS_TOKEN and $$CLIENT_SECRET."`
	ClientID string `name:"client-id" variable:"CLIENT_ID" placeholder:"ID" help:"Its client id."`
}

// result is one check.
type result struct {
	Check string `json:"check" col:"CHECK"`
	Group string `json:"group" col:"GROUP"`
	OK    bool   `json:"ok" col:"OK"`
	Error string `json:"error,omitempty" col:"ERROR"`
}

// Run makes the checks and prints the first request to send. It fails if one check failed.
func (c *Smoke) Run(s *session.Session) error {
	base := strings.TrimRight(c.BaseURL, "/")
	if base == "" {
		return output.UsageError("BASE_URL is not set: name the stack by --stack, or the address by --base-url")
	}
	var results []result
	failed := 0
	add := func(check, group string, err error) {
		r := result{Check: check, Group: group, OK: err == nil}
		if err != nil {
			r.Error = err.Error()
			failed++
		}
		results = append(results, r)
	}
	if err := smoke.CheckTLS(s, base, s.Now()); errors.Is(err, smoke.ErrNotEncrypted) {
		return output.UsageError("%w", err) // the credentials stay here
	} else if !errors.Is(err, smoke.ErrPlainHTTP) {
		add("TLS 1.2, and a certificate that stays valid", smoke.Open, err)
	}
	merchant := smoke.Merchant{
		Name: c.Merchant, AccessToken: s.Getenv("ACCESS_TOKEN"), ClientID: c.ClientID,
		ClientSecret: s.Getenv("CLIENT_SECRET"),
		ServiceID:    c.ServiceID, ApplicationID: c.ApplicationID, ContactID: c.ContactID,
	}
	runner := &smoke.Runner{Client: smoke.NewClient(), Base: base}
	for _, check := range smoke.Checks(merchant, strconv.FormatInt(s.Now().UnixMilli(), 10)) {
		add(check.Name, check.Group, runner.Run(s, check))
	}
	if err := session.ShowList(s, results); err != nil {
		return err
	}
	if !merchant.CanSign() {
		fmt.Fprintln(s.Stderr, "The checks with credentials were left out: set MERCHANT, CLIENT_ID, ACCESS_TOKEN and "+
			"CLIENT_SECRET.")
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks of %s failed", failed, len(results), base)
	}
	fmt.Fprintf(s.Stderr, "The first request, a lookup that finds nothing (404, order_id) if the token is right:\n%s\n",
		firstRequest(base, cmp.Or(c.Merchant, "MERCHANT")))
	return nil
}

// firstRequest is a merchant's first request. Its token stays a variable of the shell.
func firstRequest(base, merchant string) string {
	return fmt.Sprintf(`curl -i %s -H "Authorization: Bearer $ACCESS_TOKEN"`,
		session.ShellWord(base+"/mobilemoney/v1/getStatus/"+merchant+"_1"))
}
