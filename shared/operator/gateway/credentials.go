package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
)

// operatorAccounts is one operator in the credentials: its accounts by id, and the id that new calls use.
type operatorAccounts struct {
	CurrentID string             `json:"current"`
	Accounts  map[string]account `json:"accounts"`
}

// account is one set of credentials at an operator, as OPERATOR_CREDENTIALS_SECRET holds it.
type account struct {
	id            string
	BaseURL       string          `json:"base_url"`
	AccessToken   string          `json:"access_token"`
	ServiceID     string          `json:"service_id"`
	ApplicationID string          `json:"application_id"`
	ContactID     string          `json:"contact_id"`
	UserSMS       userSMSSettings `json:"user_sms"`
}

// userSMSSettings is what the purchaser's SMS is sent with. Sender is the sender address by alpha-2 code.
type userSMSSettings struct {
	GWToken    string            `json:"gw_token"`
	Sender     map[string]string `json:"sender"`
	SenderName string            `json:"sender_name"`
}

// credentials reads accounts from the secret, parsing each of its values once.
type credentials struct {
	secrets Secrets

	mu     sync.Mutex
	raw    []byte
	parsed map[string]operatorAccounts
}

// findAccount returns an operator's account by its id, the current one for "". An account that the secret at hand does not
// hold may be newer than it: the secret is then refreshed once (the cache limits the rate). Errors hold no secret.
func (c *credentials) findAccount(ctx context.Context, operatorName, id string) (account, error) {
	value, err := c.secrets.Get(ctx)
	if err != nil {
		return account{}, errors.Join(errors.New("operator credentials cannot be had"), err)
	}
	found, err := c.selectAccount(value.Bytes, operatorName, id)
	if err == nil {
		return found, nil
	}
	value, refreshErr := c.secrets.Refresh(ctx)
	if refreshErr != nil {
		return account{}, err
	}
	return c.selectAccount(value.Bytes, operatorName, id)
}

// refreshAccount refreshes the secret after a 401 and reports whether the account's token has changed.
func (c *credentials) refreshAccount(ctx context.Context, operatorName string, used account) (account, bool) {
	value, err := c.secrets.Refresh(ctx)
	if err != nil {
		return account{}, false
	}
	found, err := c.selectAccount(value.Bytes, operatorName, used.id)
	return found, err == nil && found.AccessToken != used.AccessToken
}

// selectAccount finds a usable account in a value of the secret.
func (c *credentials) selectAccount(raw []byte, operatorName, id string) (account, error) {
	platforms, err := c.parse(raw)
	if err != nil {
		return account{}, err
	}
	p, ok := platforms[strings.ToLower(operatorName)]
	if !ok {
		return account{}, errors.New("no credentials for the operator")
	}
	if id == "" {
		id = p.CurrentID
	}
	found, ok := p.Accounts[id]
	if !ok {
		return account{}, errors.New("the operator's account is not in the credentials")
	}
	found.id = id
	found.BaseURL = strings.TrimRight(found.BaseURL, "/")
	if found.AccessToken == "" || !isUsableBaseURL(found.BaseURL) {
		return account{}, errors.New("the operator's account has no access_token or no usable base_url")
	}
	return found, nil
}

// parse decodes the secret, or returns what it decoded the last time for the same bytes.
func (c *credentials) parse(raw []byte) (map[string]operatorAccounts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parsed != nil && bytes.Equal(raw, c.raw) {
		return c.parsed, nil
	}
	var parsed map[string]operatorAccounts
	if json.Unmarshal(raw, &parsed) != nil || parsed == nil {
		return nil, errors.New("operator credentials are not the JSON they should be") // json's own error may quote them
	}
	c.raw, c.parsed = raw, parsed
	return parsed, nil
}

// isUsableBaseURL reports whether a base URL is one that a token may be sent to: https, or plain http to this machine or a
// private network, where stand-ins of operators run.
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
