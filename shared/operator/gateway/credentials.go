package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"

	"mobilegateway/shared/secret"
)

// operatorAccounts is one operator in the credentials: its accounts by id, and the id for new calls.
type operatorAccounts struct {
	CurrentID string             `json:"current"`
	Accounts  map[string]account `json:"accounts"`
}

// account is one set of credentials at an operator, as OPERATOR_CREDENTIALS_SECRET has it.
type account struct {
	id            string
	BaseURL       string          `json:"base_url"`
	AccessToken   string          `json:"access_token"`
	ServiceID     string          `json:"service_id"`
	ApplicationID string          `json:"application_id"`
	ContactID     string          `json:"contact_id"`
	UserSMS       userSMSSettings `json:"user_sms"`
}

// userSMSSettings configure the payer's SMS. Sender is the sender address by alpha-2 code.
type userSMSSettings struct {
	GWToken    string            `json:"gw_token"`
	Sender     map[string]string `json:"sender"`
	SenderName string            `json:"sender_name"`
}

// credentials reads accounts from the secret. It parses each value once.
type credentials struct {
	secrets secret.Reader

	mu     sync.Mutex
	raw    []byte
	parsed map[string]operatorAccounts
}

// findAccount returns an operator's account by its id, the current one for "". An account that the cached secret lacks
// may be new, so the secret is refreshed once (the cache limits the rate). Errors contain no secret.
func (c *credentials) findAccount(ctx context.Context, operatorName, id string) (account, error) {
	value, err := c.secrets.Get(ctx)
	if err != nil {
		return account{}, errors.Join(errors.New("the operators' credentials cannot be read"), err)
	}
	found, err := c.selectAccount(value, operatorName, id)
	if err == nil {
		return found, nil
	}
	value, refreshErr := c.secrets.Refresh(ctx)
	if refreshErr != nil {
		return account{}, err
	}
	return c.selectAccount(value, operatorName, id)
}

// refreshAccount refreshes the secret after a 401 and reports whether the account's token has changed.
func (c *credentials) refreshAccount(ctx context.Context, operatorName string, used account) (account, bool) {
	value, err := c.secrets.Refresh(ctx)
	if err != nil {
		return account{}, false
	}
	found, err := c.selectAccount(value, operatorName, used.id)
	return found, err == nil && found.AccessToken != used.AccessToken
}

// selectAccount returns a usable account of a value of the secret.
func (c *credentials) selectAccount(raw []byte, operatorName, id string) (account, error) {
	platforms, err := c.parse(raw)
	if err != nil {
		return account{}, err
	}
	p, ok := platforms[strings.ToLower(operatorName)]
	if !ok {
		return account{}, errors.New("the operator has no credentials: add an account")
	}
	id = cmp.Or(id, p.CurrentID)
	found, ok := p.Accounts[id]
	if !ok {
		return account{}, errors.New("the operator's account is not in the credentials: add it")
	}
	found.id = id
	found.BaseURL = strings.TrimRight(found.BaseURL, "/")
	if found.AccessToken == "" || !isUsableBaseURL(found.BaseURL) {
		return account{}, errors.New("the operator's account has no access_token or no usable base_url")
	}
	return found, nil
}

// parse decodes the secret, or returns the last result for the same bytes.
func (c *credentials) parse(raw []byte) (map[string]operatorAccounts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parsed != nil && bytes.Equal(raw, c.raw) {
		return c.parsed, nil
	}
	var parsed map[string]operatorAccounts
	if json.Unmarshal(raw, &parsed) != nil || parsed == nil {
		return nil, errors.New("operator credentials are not valid JSON of their form") // err may quote them
	}
	c.raw, c.parsed = raw, parsed
	return parsed, nil
}

// isUsableBaseURL reports whether a token may be sent to a base URL: https, or plain http to this machine or a private
// network, where operator stubs run.
func isUsableBaseURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	if u.Scheme == "https" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || (ip != nil && (ip.IsLoopback() || ip.IsPrivate()))
	return u.Scheme == "http" && local
}
