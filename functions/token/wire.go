package token

import (
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/settings"
	"mobilegateway/shared/wiring"
)

// New builds the token function from its environment. One error names every fault of it.
func New(parts *wiring.Dependencies) (wiring.Handler, error) {
	cacheLifetime := parts.Env.Duration(settings.SecretCacheTTL)
	operation := &Operation{
		Store:         parts.MerchantStore(),
		RateLimiter:   parts.RateLimiter(),
		Keys:          keyring.NewRefreshingRing(parts.TokenKeySecret(), cacheLifetime, parts.Now),
		TokenLifetime: parts.Env.Duration(settings.AccessTokenLifetime),
		Now:           parts.Now,
	}
	return parts.APIHandler("token", "", operation.Route())
}
