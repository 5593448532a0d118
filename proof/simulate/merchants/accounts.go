package merchants

import (
	"fmt"
	"time"

	"mobilegateway/proof/simulate/fixture"
	"mobilegateway/proof/simulate/history"
)

// ProfileAge is the greatest age of a profile that a function uses, and a margin for the difference of two clocks.
const ProfileAge = time.Minute + history.MaxSkew

// shortLife is the lifetime of short-lived tokens.
const shortLife = time.Hour

// Account is what an engineer has changed for a merchant; the zero value is nothing.
type Account struct {
	Token       string // the new access token
	SuspendedAt time.Time
	LimitedAt   time.Time // since when its rate is limited
	MovedAt     time.Time // when its provisioned address was changed

	shortLived shortLivedToken
}

// shortLivedToken is a token that a merchant got from the token function.
type shortLivedToken struct {
	text     string
	issuedAt time.Time
}

// Accounts are the accounts of all merchants.
type Accounts struct {
	byName  map[string]*Account
	refused map[string]time.Time // when a token was revoked, or ends
}

func newAccounts(shops []*fixture.Shop) Accounts {
	a := Accounts{byName: map[string]*Account{}, refused: map[string]time.Time{}}
	for _, s := range shops {
		a.byName[s.Name] = &Account{}
	}
	return a
}

// Account is the account of a merchant.
func (a Accounts) Account(s *fixture.Shop) *Account { return a.byName[s.Name] }

// Refuse records that a token is revoked.
func (a Accounts) Refuse(token string) { a.refused[token] = time.Now() }

// RefuseShortLived records that the last short-lived token of a merchant is revoked, by a command that began at a time.
func (a Accounts) RefuseShortLived(s *fixture.Shop, began time.Time) {
	token := a.Account(s).shortLived
	if token.issuedAt.Before(began) && a.refused[token.text].After(time.Now()) {
		a.Refuse(token.text)
	}
}

// useShortLived lets a merchant use a short-lived token.
func (a Accounts) useShortLived(s *fixture.Shop, token string) {
	account := a.Account(s)
	account.Token, account.shortLived = token, shortLivedToken{token, time.Now()}
	a.refused[token] = time.Now().Add(shortLife)
}

// currentToken is the token of a merchant's next read.
func (a Accounts) currentToken(s *fixture.Shop) string {
	token := a.Account(s).Token
	if ends := a.refused[token]; token == "" || !ends.IsZero() && ends.Before(time.Now()) {
		return s.Token
	}
	return token
}

// refusal returns why a request with a token must be refused, "" if it need not. The reason is older than the greatest
// age of a profile. A request must be refused only if there is a reason at its start and at its end, because the
// merchant may be resumed meanwhile.
func (a Accounts) refusal(s *fixture.Shop, token string) string {
	account := a.Account(s)
	reason, since := "revoked", a.refused[token]
	if issued := account.shortLived; issued.text == token && since.Equal(issued.issuedAt.Add(shortLife)) {
		reason = "expired"
	}
	if since.IsZero() || time.Since(since) <= ProfileAge {
		reason, since = "suspended", account.SuspendedAt
	}
	if since.IsZero() || time.Since(since) <= ProfileAge {
		return ""
	}
	return fmt.Sprintf("%s at %s", reason, since.Sub(history.Start))
}

// refusalSince returns a function that returns why a request that begins now must be refused, "" if it need not.
func (a Accounts) refusalSince(s *fixture.Shop, token string) func() string {
	reason := a.refusal(s, token)
	return func() string {
		if reason == "" || a.refusal(s, token) == "" {
			return ""
		}
		return reason
	}
}
