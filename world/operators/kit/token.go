package kit

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
)

type token struct {
	owner   string
	expires time.Time
}

// tokens are those of a platform.
type tokens struct {
	*steering `unhashed:"Platform has it"`
	issued    map[string]token // by the token
}

// Grant describes the response to a token call.
type Grant struct {
	// Clients are the secrets by client, which the call shows with Basic authentication.
	Clients map[string]string
	// BadClient refuses another client or secret. BadType refuses a form without grant_type=client_credentials; the
	// zero Response accepts every body.
	BadClient, BadType Response
	// Fields are further fields of the response.
	Fields Fields
	// Reuse repeats the client's token with its remaining seconds, rounded down, until it ends.
	Reuse bool
	// TextLife writes expires_in as a text, as the quirk expires_in_text does.
	TextLife bool
}

// Grant makes the response to a token call.
func (p *tokens) Grant(c *Call, g Grant) Response {
	client, secret, _ := c.Request.BasicAuth()
	if known, ok := g.Clients[client]; !ok || known != secret {
		return g.BadClient
	}
	if g.BadType.Status != 0 && c.Form("grant_type") != "client_credentials" {
		return g.BadType
	}
	text, life := p.issue(client, g.Reuse)
	fields := Fields{"access_token": text, "expires_in": int(life.Seconds())}
	if g.TextLife || p.quirks["expires_in_text"] {
		fields["expires_in"] = fmt.Sprint(fields["expires_in"])
	}
	maps.Copy(fields, g.Fields)
	return JSON(http.StatusOK, fields)
}

// issue returns a new token and its life, or with reuse the valid one of owner.
func (p *tokens) issue(owner string, reuse bool) (string, time.Duration) {
	for text, t := range p.issued {
		if left := t.expires.Sub(p.Now()); reuse && t.owner == owner && left > 0 {
			return text, left
		}
	}
	life := p.spec.TokenLife
	switch {
	case p.quirks["token_3s"]:
		life = 3 * time.Second
	case p.quirks["token_60s"]:
		life = time.Minute
	}
	text := p.NewID(24)
	p.issued[text] = token{owner, p.Now().Add(life)}
	return text, life
}

// TokenOwner returns the client of a call's bearer token, or "" for a token that was never issued. The second result is
// whether the token is still valid.
func (p *tokens) TokenOwner(c *Call) (string, bool) {
	text, isBearer := strings.CutPrefix(c.Request.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		return "", false
	}
	t := p.issued[text]
	return t.owner, p.Now().Before(t.expires)
}

// revokeTokens ends all tokens and returns the number of those that were valid.
func (p *tokens) revokeTokens() (revoked int) {
	for text, t := range p.issued {
		if p.Now().Before(t.expires) {
			p.issued[text] = token{t.owner, time.Time{}}
			revoked++
		}
	}
	return revoked
}
