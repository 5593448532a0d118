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

// Merchants is an authenticator over a table of tokens.
type Merchants struct {
	mutex    sync.Mutex
	profiles map[string]*merchant.Profile
	failure  error
}

// Demo is DemoShop's profile: every operation, country and operator.
func Demo() *merchant.Profile {
	return &merchant.Profile{
		ID: "demo0001", Name: "DemoShop", Status: merchant.StatusActive, Generation: 1,
		Operations:        []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS},
		Countries:         market.Alpha2s(),
		Operators:         operator.Names(),
		OnBehalfOf:        []string{"DemoShop", "DemoPartner"},
		SenderNames:       []string{"DEMO", "DEMO2"},
		NotificationHosts: []string{"shop.example.com"},
		NotifURL:          "https://shop.example.com/provisioned",
	}
}

// Other is OtherShop's profile: not Tunisia, any sender name, and no provisioned notification address.
func Other() *merchant.Profile {
	return &merchant.Profile{
		ID: "othr0002", Name: "OtherShop", Status: merchant.StatusActive, Generation: 1,
		Operations:        []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS},
		Countries:         []string{"CI", "CD", "CM", "SN", "BF"},
		Operators:         []string{"sandbox"},
		OnBehalfOf:        []string{"DemoShop", "OtherShop"},
		NotificationHosts: []string{"shop.example.com"},
	}
}

func newMerchants() *Merchants {
	return &Merchants{profiles: map[string]*merchant.Profile{DemoToken: Demo(), OtherToken: Other()}}
}

// Authenticate is operation.Authenticator's.
func (m *Merchants) Authenticate(_ context.Context, authorization string) (*merchant.Profile, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	profile, found := m.profiles[authorization]
	switch {
	case m.failure != nil:
		return nil, fault.Because(m.failure)
	case authorization == "":
		return nil, fault.Of(fault.NoCredentials)
	case !found:
		return nil, fault.Of(fault.BadCredentials)
	}
	return profile, nil
}

// Change replaces the profile behind a token by a changed copy.
func (m *Merchants) Change(token string, change func(*merchant.Profile)) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	changed := *m.profiles[token]
	change(&changed)
	m.profiles = maps.Clone(m.profiles)
	m.profiles[token] = &changed
}

// Fail makes every later authentication an internal error; nil ends that.
func (m *Merchants) Fail(failure error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.failure = failure
}
