package merchants

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/merchant"
)

// Tokens are the commands below token.
type Tokens struct {
	Issue  credentialIssue  `cmd:"" help:"Issue a token and show it once; two may be live."`
	Rotate credentialRotate `cmd:"" help:"Issue a token, show it once, and end the others after an overlap."`
	Revoke tokenRevoke      `cmd:"" help:"End a token, or all short-lived ones, within a minute."`
	List   credentialList   `cmd:"" help:"List the tokens, without their values."`
}

// ClientSecrets are the commands below client-secret.
type ClientSecrets struct {
	Issue  credentialIssue  `cmd:"" help:"Issue a client secret and show it once; two may be live."`
	Rotate credentialRotate `cmd:"" help:"Issue a client secret, show it once, and end the others after an overlap."`
	Revoke credentialRevoke `cmd:"" help:"End a client secret. Tokens issued for it live until they expire."`
	List   credentialList   `cmd:"" help:"List the client secrets, without their values."`
}

// ProvideKind returns the kind for the Run methods below token (kong's provider).
func (Tokens) ProvideKind() merchant.CredentialKind { return merchant.LongLivedToken }

// ProvideKind returns the kind for the Run methods below client-secret (kong's provider).
func (ClientSecrets) ProvideKind() merchant.CredentialKind { return merchant.ClientSecret }

// IssuedCredential is a new credential, shown once: an access token or a client secret, by the names of merchant add.
type IssuedCredential struct {
	Merchant      string    `json:"merchant" row:"merchant"`
	ClientID      string    `json:"client_id" row:"client id"`
	Number        int       `json:"number" row:"number"`
	AccessToken   string    `json:"access_token,omitempty" row:"access token"`
	ClientSecret  string    `json:"client_secret,omitempty" row:"client secret"`
	EndingNumbers []int     `json:"ended" row:"ended"` // numbers of those that end at EndAt
	EndAt         time.Time `json:"end_at,omitzero" row:"end at"`
}

type credentialIssue struct{ session.MerchantArgument }

// Run issues a credential beside those that exist.
func (c *credentialIssue) Run(s *session.Session, p *merchant.Profile, kind merchant.CredentialKind) error {
	return issueCredential(s, p, kind, kind.Issue, time.Time{})
}

type credentialRotate struct {
	session.MerchantArgument
	Overlap time.Duration `default:"24h" help:"How long the others stay live."`
	Force   bool          `help:"If two are live already, drop the older at once."`
}

// Validate refuses a negative overlap.
func (c *credentialRotate) Validate() error { return checkNotNegative("--overlap", c.Overlap) }

// Run issues a credential and ends the others after the overlap.
func (c *credentialRotate) Run(s *session.Session, p *merchant.Profile, kind merchant.CredentialKind) error {
	issue := kind.Issue
	if c.Force {
		issue = kind.Replace
	}
	return issueCredential(s, p, kind, issue, s.Now().Add(c.Overlap).UTC().Truncate(time.Millisecond))
}

// issueCredential issues a credential, stores the profile and shows the secret. The others end at endAt, unless it is
// zero.
func issueCredential(
	s *session.Session, p *merchant.Profile, kind merchant.CredentialKind,
	issue func(*merchant.Profile, io.Reader, time.Time) (secret string, err error), endAt time.Time,
) error {
	secret, err := issue(p, s.Rand, s.Now())
	if errors.Is(err, merchant.ErrTooManyActive) {
		return fmt.Errorf("%w (rotate --force, or revoke)", err)
	}
	if err != nil {
		return err
	}
	all := kind.List(p)
	newest, others := all[len(all)-1], all[:len(all)-1]
	issued := IssuedCredential{
		Merchant: p.Name, ClientID: p.ID, Number: newest.Number, EndingNumbers: []int{}, EndAt: endAt,
	}
	value := &issued.AccessToken
	if kind.Name == merchant.ClientSecret.Name {
		value = &issued.ClientSecret
	}
	*value = s.RevealSecret(secret)
	detail := fmt.Sprint("number ", newest.Number)
	for _, old := range others {
		if endAt.IsZero() {
			break
		}
		if err := kind.Revoke(p, old.Number, endAt, s.Now()); err != nil {
			return err
		}
		issued.EndingNumbers = append(issued.EndingNumbers, old.Number)
		detail += fmt.Sprintf("; %d ends at %s", old.Number, output.FormatTime(endAt))
	}
	return s.ExecuteAndShow("issue a "+kind.Name, p.Name, func() (string, error) {
		return detail, s.Stores.Merchants.Update(s, p)
	}, func() error { return s.ShowView(issued) })
}

type credentialRevoke struct {
	session.MerchantArgument
	Number *int           `arg:"" optional:"" help:"The number in the list."`
	After  *time.Duration `help:"End it only after this time."`
}

// Validate refuses a missing number and a negative time.
func (c *credentialRevoke) Validate() error {
	if c.Number == nil || *c.Number < 1 {
		return errors.New(`expected "<number>": the number in the list`)
	}
	if c.After == nil {
		return nil
	}
	return checkNotNegative("--after", *c.After)
}

// Run revokes one credential.
func (c *credentialRevoke) Run(s *session.Session, p *merchant.Profile, kind merchant.CredentialKind) error {
	at := s.Now()
	if c.After != nil {
		at = at.Add(*c.After)
	}
	return changeProfile(s, p, fmt.Sprintf("revoke %s %d", kind.Name, *c.Number), func() error {
		return kind.Revoke(p, *c.Number, at, s.Now())
	})
}

type tokenRevoke struct {
	credentialRevoke
	ShortLived bool `help:"End all short-lived tokens that the token endpoint ever issued."`
}

// Validate refuses a number or a time beside --short-lived.
func (c *tokenRevoke) Validate() error {
	if !c.ShortLived {
		return c.credentialRevoke.Validate()
	}
	if c.Number != nil || c.After != nil {
		return errors.New("--short-lived ends all short-lived tokens at once: remove the number and --after")
	}
	return nil
}

// Run ends one token, or the short-lived ones.
func (c *tokenRevoke) Run(s *session.Session, p *merchant.Profile, kind merchant.CredentialKind) error {
	if !c.ShortLived {
		return c.credentialRevoke.Run(s, p, kind)
	}
	return changeProfile(s, p, "revoke the short-lived tokens", func() error {
		merchant.RevokeShortLivedTokens(p, s.Now())
		return nil
	})
}

func checkNotNegative(flag string, value time.Duration) error {
	if value < 0 {
		return fmt.Errorf("%s is negative: give a duration such as 24h", flag)
	}
	return nil
}

type credentialList struct{ session.MerchantArgument }

// Run lists the credentials of one kind.
func (c *credentialList) Run(s *session.Session, p *merchant.Profile, kind merchant.CredentialKind) error {
	views := credentialViews(kind.List(p), s.Now())
	slices.SortFunc(views, func(a, b Credential) int { return a.Number - b.Number })
	return session.ShowList(s, views)
}
