package token

import (
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

// New builds the token function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	operation := &Operation{
		Store:         parts.MerchantStore(),
		RateLimiter:   parts.RateLimiter(),
		Keys:          parts.KeyRing(settings.TokenKeySecret),
		TokenLifetime: parts.Env.Duration(settings.AccessTokenLifetime),
		Now:           parts.Now,
	}
	return parts.APIHandler("token", "", operation.Route())
}
