package operationtest

import (
	"context"

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

// Merchants is an authenticator with a table of tokens. It may be changed only between requests.
type Merchants struct {
	// Err, if set, fails every authentication with an internal error.
	Err error

	profiles map[string]*merchant.Profile
}

// DemoProfile is DemoShop's profile: every operation, country and operator.
func DemoProfile() *merchant.Profile {
	return &merchant.Profile{
		ID: "demo0001", Name: "DemoShop", Status: merchant.StatusActive, TokenGeneration: 1,
		Entitlements: merchant.Entitlements{
			Operations:  []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS},
			Countries:   market.Alpha2s(),
			Operators:   operator.Names(),
			OnBehalfOf:  []string{"DemoShop", "DemoPartner"},
			SenderNames: []string{"DEMO", "DEMO2"},
		},
		Notifications: merchant.Notifications{
			NotificationHosts: []string{"shop.example.com"},
			NotifURL:          "https://shop.example.com/provisioned",
		},
	}
}

// OtherProfile is OtherShop's profile: not Tunisia, any sender name, and no provisioned notification address.
func OtherProfile() *merchant.Profile {
	other := DemoProfile()
	other.ID, other.Name = "othr0002", "OtherShop"
	other.Countries, other.Operators = []string{"CI", "CD", "CM", "SN", "BF"}, []string{"sandbox"}
	other.OnBehalfOf, other.SenderNames, other.NotifURL = []string{"DemoShop", "OtherShop"}, nil, ""
	return other
}

// Authenticate implements operation.Authenticator.
func (m *Merchants) Authenticate(_ context.Context, authorization string) (*merchant.Profile, error) {
	profile, found := m.profiles[authorization]
	switch {
	case m.Err != nil:
		return nil, fault.NewInternal(m.Err)
	case authorization == "":
		return nil, fault.New(fault.MissingCredentials)
	case !found:
		return nil, fault.New(fault.InvalidCredentials)
	}
	return profile, nil
}

// UpdateProfile replaces the profile behind a token by a changed copy.
func (m *Merchants) UpdateProfile(token string, change func(*merchant.Profile)) {
	changed := *m.profiles[token]
	change(&changed)
	m.profiles[token] = &changed
}
