package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"mobilegateway/shared/operator"
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
	version       int             // of the credentials that it was read from
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

// unprovenLifetime is how old a cached value may be at a call, unless the last call to the operator with it worked. The
// cache refreshes at the same rate, so new credentials are in use within a minute of a failure.
const unprovenLifetime = 30 * time.Second

// credentials reads accounts from the secret. It parses each value once.
type credentials struct {
	secrets                secret.Reader
	now                    func() time.Time
	acceptsPrivateNetworks bool

	mu      sync.Mutex
	raw     []byte
	parsed  map[string]operatorAccounts
	version int            // number of values that were parsed
	proven  map[string]int // by operator: the version with which the last call worked
}

// findAccount returns an operator's account by its id, the current one for "". The secret is refreshed once (the cache
// limits the rate) if the cached one lacks the account, or is older than unprovenLifetime and not proven to work.
// Errors contain no secret.
func (c *credentials) findAccount(ctx context.Context, operatorName, id string) (account, error) {
	value, err := c.secrets.Get(ctx)
	if err != nil {
		return account{}, errors.Join(errors.New("the operators' credentials cannot be read"), err)
	}
	found, err := c.selectAccount(value, operatorName, id)
	if err == nil && !c.mayBeOutdated(operatorName, found.version) {
		return found, nil
	}
	value, refreshErr := c.secrets.Refresh(ctx)
	if refreshErr != nil {
		return found, err
	}
	return c.selectAccount(value, operatorName, id)
}

// mayBeOutdated reports whether the cached credentials should be read again before a call.
func (c *credentials) mayBeOutdated(operatorName string, version int) bool {
	c.mu.Lock()
	proven := c.proven[strings.ToLower(operatorName)] == version
	c.mu.Unlock()
	fetchedAt := c.secrets.FetchedAt()
	// The time without its monotonic part, which does not advance while a function is frozen.
	return !proven && !fetchedAt.IsZero() && c.now().Round(0).Sub(fetchedAt) >= unprovenLifetime
}

// recordUse records whether a call worked with a version of the credentials. The cause of a failure cannot be seen from
// here: an operator may respond to bad credentials as to a bad request, or not at all.
func (c *credentials) recordUse(operatorName string, version int, worked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !worked {
		version = 0
	}
	if c.proven == nil {
		c.proven = map[string]int{}
	}
	c.proven[strings.ToLower(operatorName)] = version
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
	platforms, version, err := c.parse(raw)
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
	found.id, found.version = id, version
	found.BaseURL = strings.TrimRight(found.BaseURL, "/")
	checkBaseURL := operator.CheckBaseURL
	if c.acceptsPrivateNetworks {
		checkBaseURL = operator.CheckNearBaseURL
	}
	if operator.CheckToken(found.AccessToken) != nil || checkBaseURL(found.BaseURL) != nil {
		return account{}, errors.New("the operator's account has no usable access_token or base_url")
	}
	return found, nil
}

// parse decodes the secret, or returns the last result for the same bytes. version numbers the results, from 1.
func (c *credentials) parse(raw []byte) (platforms map[string]operatorAccounts, version int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parsed != nil && bytes.Equal(raw, c.raw) {
		return c.parsed, c.version, nil
	}
	var parsed map[string]operatorAccounts
	if json.Unmarshal(raw, &parsed) != nil || parsed == nil {
		return nil, 0, errors.New("operator credentials are not valid JSON of their form") // err may quote them
	}
	c.raw, c.parsed = raw, parsed
	c.version++
	return parsed, c.version, nil
}
