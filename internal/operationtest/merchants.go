package operationtest

import (
	"context"
	"maps"
	"sync"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/market"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// The access tokens of the two merchants, as the Authorization header carries them.
const (
	DemoToken  = "Bearer canary-access-demo-3f81c0"
	OtherToken = "Bearer canary-access-other-77ab12"
)

// Merchants is an authenticator with a table of tokens.
type Merchants struct {
	mutex    sync.Mutex
	profiles map[string]*merchant.Profile
	err      error
}

// DemoProfile is DemoShop's profile: every operation, country and operator.
func DemoProfile() *merchant.Profile {
	return &merchant.Profile{
		ID: "demo0001", Name: "DemoShop", Status: merchant.StatusActive, TokenGeneration: 1,
		Operations:        []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS},
		Countries:         market.Alpha2s(),
		Operators:         operator.Names(),
		OnBehalfOf:        []string{"DemoShop", "DemoPartner"},
		SenderNames:       []string{"DEMO", "DEMO2"},
		NotificationHosts: []string{"shop.example.com"},
		NotifURL:          "https://shop.example.com/provisioned",
	}
}

// OtherProfile is OtherShop's profile: not Tunisia, any sender name, and no provisioned notification address.
func OtherProfile() *merchant.Profile {
	return &merchant.Profile{
		ID: "othr0002", Name: "OtherShop", Status: merchant.StatusActive, TokenGeneration: 1,
		Operations:        []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS},
		Countries:         []string{"CI", "CD", "CM", "SN", "BF"},
		Operators:         []string{"sandbox"},
		OnBehalfOf:        []string{"DemoShop", "OtherShop"},
		NotificationHosts: []string{"shop.example.com"},
	}
}

// Authenticate implements operation.Authenticator.
func (m *Merchants) Authenticate(_ context.Context, authorization string) (*merchant.Profile, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	profile, found := m.profiles[authorization]
	switch {
	case m.err != nil:
		return nil, fault.NewInternal(m.err)
	case authorization == "":
		return nil, fault.New(fault.MissingCredentials)
	case !found:
		return nil, fault.New(fault.InvalidCredentials)
	}
	return profile, nil
}

// UpdateProfile replaces the profile behind a token by a changed copy.
func (m *Merchants) UpdateProfile(token string, change func(*merchant.Profile)) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	changed := *m.profiles[token]
	change(&changed)
	m.profiles = maps.Clone(m.profiles)
	m.profiles[token] = &changed
}

// SetError makes every later authentication fail with an internal error; nil ends that.
func (m *Merchants) SetError(failure error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.err = failure
}
