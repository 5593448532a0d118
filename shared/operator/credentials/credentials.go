// Package credentials reads the platforms' accounts and the routes from one secret (OPERATOR_CREDENTIALS_SECRET).
//
// It parses each value of the secret once, and refreshes it when a cached value may be outdated. Its invariant: an
// error contains no secret.
package credentials

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/secret"
)

// Account is one account of a platform.
type Account struct {
	Platform string
	ID       string
	Version  int // of the value that it was read from; from 1
	fields   map[string]string
}

// Field returns a field by its path ("user_sms.sender.CI"); "" if it is absent.
func (a Account) Field(path string) string { return a.fields[path] }

// BaseURL returns the account's address without a slash at its end.
func (a Account) BaseURL() string { return strings.TrimRight(a.fields["base_url"], "/") }

// CheckUsable returns which of the fields that an operation needs cannot be used in a country (alpha-2, "" for any).
// Without them the operator would refuse a correct request of the merchant.
func (a Account) CheckUsable(fields []operator.AccountField, operation, country string) error {
	if unusable := operator.UnusableFields(fields, operation, country, a.Field); unusable != nil {
		return logsafe.Errorf("the operator's account has no usable %s", logsafe.Name(strings.Join(unusable, ", ")))
	}
	return nil
}

// routesKey is the member of the secret's document that has the routes. No platform has this name.
const routesKey = "routes"

// platformAccounts is one platform in the document. CurrentID is the account for calls without a route.
type platformAccounts struct {
	CurrentID string                     `json:"current"`
	Accounts  map[string]json.RawMessage `json:"accounts"`
}

// document is a parsed value of the secret.
type document struct {
	platforms map[string]platformAccounts
	routes    operator.Routes
}

// unprovenLifetime is how old a cached value may be at a call, unless the last call to the platform with it worked. The
// cache refreshes at the same rate, so new credentials are in use within a minute of a failure.
const unprovenLifetime = 30 * time.Second

// Reader reads accounts and routes. It is safe for concurrent use. All drivers of a function share one.
type Reader struct {
	secrets      secret.Reader
	now          func() time.Time
	checkBaseURL func(address string) error

	mu      sync.Mutex
	raw     []byte
	parsed  *document
	version int            // number of values that were parsed
	proven  map[string]int // by platform: the version with which the last call worked
}

// NewReader makes a reader of the secret. It does not fetch it yet. checkBaseURL refuses an account's address to which
// no token may be sent: operator.CheckBaseURL, or operator.CheckNearBaseURL in a function that is not deployed.
func NewReader(secrets secret.Reader, now func() time.Time, checkBaseURL func(address string) error) *Reader {
	return &Reader{secrets: secrets, now: now, checkBaseURL: checkBaseURL, proven: map[string]int{}}
}

// Routes implements operator.RouteReader.
func (r *Reader) Routes(ctx context.Context) (operator.Routes, error) {
	value, err := r.secrets.Get(ctx)
	if err != nil {
		return operator.Routes{}, rejected(errors.Join(errUnreadable, err))
	}
	doc, _, err := r.parse(value)
	if err != nil {
		return operator.Routes{}, rejected(err)
	}
	return doc.routes, nil
}

func rejected(err error) error { return &fault.Fault{Kind: fault.IntegrationRejected, Cause: err} }

var errUnreadable = logsafe.New("the operators' credentials cannot be read")

// Find returns a platform's account by its id, the current one for "". The secret is refreshed once (the cache limits
// the rate) if the cached one lacks the account, or is older than unprovenLifetime and not proven to work.
func (r *Reader) Find(ctx context.Context, platform, id string) (Account, error) {
	value, err := r.secrets.Get(ctx)
	if err != nil {
		return Account{}, errors.Join(errUnreadable, err)
	}
	found, err := r.selectAccount(value, platform, id)
	if err == nil && !r.mayBeOutdated(platform, found.Version) {
		return found, nil
	}
	value, refreshErr := r.secrets.Refresh(ctx)
	if refreshErr != nil {
		return found, err
	}
	return r.selectAccount(value, platform, id)
}

// mayBeOutdated reports whether the cached credentials should be read again before a call.
func (r *Reader) mayBeOutdated(platform string, version int) bool {
	r.mu.Lock()
	proven := r.proven[strings.ToLower(platform)] == version
	r.mu.Unlock()
	fetchedAt := r.secrets.FetchedAt()
	// The time without its monotonic part, which does not advance while a function is frozen.
	return !proven && !fetchedAt.IsZero() && r.now().Round(0).Sub(fetchedAt) >= unprovenLifetime
}

// RecordUse records whether a call worked with a version of the credentials. The cause of a failure cannot be seen from
// here: a platform may respond to bad credentials as to a bad request, or not at all.
func (r *Reader) RecordUse(platform string, version int, worked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !worked {
		version = 0
	}
	r.proven[strings.ToLower(platform)] = version
}

// RefreshAfterRefusal refreshes the secret after a 401. It returns the account as it is now, and whether its fields
// have changed.
func (r *Reader) RefreshAfterRefusal(ctx context.Context, used Account) (Account, bool) {
	value, err := r.secrets.Refresh(ctx)
	if err != nil {
		return Account{}, false
	}
	found, err := r.selectAccount(value, used.Platform, used.ID)
	return found, err == nil && !maps.Equal(found.fields, used.fields)
}

// selectAccount returns a usable account of a value of the secret.
func (r *Reader) selectAccount(raw []byte, platform, id string) (Account, error) {
	doc, version, err := r.parse(raw)
	if err != nil {
		return Account{}, err
	}
	platform = strings.ToLower(platform)
	p, ok := doc.platforms[platform]
	if !ok {
		return Account{}, logsafe.New("the operator has no credentials: add an account")
	}
	id = strings.TrimPrefix(cmp.Or(id, p.CurrentID), platform+"/") // pins have an id from before routes without it
	stored, ok := p.Accounts[id]
	former, isFormer := p.Accounts[platform+"/"+id]
	switch {
	case ok && isFormer:
		return Account{}, logsafe.New("two ids name the operator's account: remove one of them")
	case isFormer:
		stored = former
	case !ok:
		return Account{}, logsafe.New("the operator's account is not in the credentials: add it")
	}
	found := Account{platform, id, version, ReadFields(stored)}
	if r.checkBaseURL(found.BaseURL()) != nil {
		return Account{}, logsafe.New("the operator's account has no usable base_url")
	}
	return found, nil
}

// ReadFields reads an account by the paths of its fields. It skips values that are not texts: their fields are missing.
func ReadFields(stored json.RawMessage) map[string]string {
	var object map[string]any
	_ = json.Unmarshal(stored, &object) // an account of another form has no fields
	fields := map[string]string{}
	addFields(fields, "", object)
	return fields
}

func addFields(fields map[string]string, prefix string, object map[string]any) {
	for key, value := range object {
		switch value := value.(type) {
		case string:
			fields[prefix+key] = value
		case map[string]any:
			addFields(fields, prefix+key+".", value)
		}
	}
}

// parse decodes the secret, or returns the last result for the same bytes. version numbers the results, from 1.
func (r *Reader) parse(raw []byte) (doc *document, version int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parsed != nil && bytes.Equal(raw, r.raw) {
		return r.parsed, r.version, nil
	}
	parsed := &document{}
	var routes struct {
		ByOperator map[string][]operator.Route `json:"routes"`
	}
	if json.Unmarshal(raw, &parsed.platforms) != nil || parsed.platforms == nil || json.Unmarshal(raw, &routes) != nil {
		return nil, 0, logsafe.New("operator credentials are not valid JSON of their form") // err may quote them
	}
	delete(parsed.platforms, routesKey)
	parsed.routes.ByOperator = routes.ByOperator
	for name, p := range parsed.platforms {
		if len(p.Accounts) > 0 {
			parsed.routes.Platforms = append(parsed.routes.Platforms, name)
		}
	}
	r.raw, r.parsed = raw, parsed
	r.version++
	return parsed, r.version, nil
}
