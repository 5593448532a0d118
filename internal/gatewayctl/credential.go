package gatewayctl

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"mobilegateway/shared/merchant"
)

type tokenCommands struct {
	Issue  tokenIssue  `cmd:"" help:"Issue a token, shown this once; two may be live."`
	Rotate tokenRotate `cmd:"" help:"Issue a token, shown this once, and end the others after an overlap."`
	Revoke tokenRevoke `cmd:"" help:"End a token, or all short-lived ones, within a minute."`
	List   tokenList   `cmd:"" help:"List the tokens, without themselves."`
}

type clientSecretCommands struct {
	Issue  secretIssue  `cmd:"" help:"Issue a client secret, shown this once; two may be live."`
	Rotate secretRotate `cmd:"" help:"Issue a client secret, shown this once, and end the others after an overlap."`
	Revoke secretRevoke `cmd:"" help:"End a client secret; what it fetched lives on until it expires."`
	List   secretList   `cmd:"" help:"List the client secrets, without themselves."`
}

// credentialKind is what tokens and client secrets have each of their own.
type credentialKind struct {
	name        string
	credentials func(*merchant.Profile) []merchant.Credential
	issue       func(*merchant.Profile, io.Reader, time.Time) (string, error)
	replace     func(*merchant.Profile, io.Reader, time.Time) (string, error)
	revoke      func(p *merchant.Profile, number int, at, now time.Time) error
}

func tokenKind() credentialKind {
	return credentialKind{"token", func(p *merchant.Profile) []merchant.Credential { return p.Tokens },
		merchant.IssueToken, merchant.ReplaceToken, merchant.RevokeToken}
}

func clientSecretKind() credentialKind {
	return credentialKind{"client secret", func(p *merchant.Profile) []merchant.Credential { return p.ClientSecrets },
		merchant.IssueClientSecret, merchant.ReplaceClientSecret, merchant.RevokeClientSecret}
}

// issuedCredential is a new credential, shown once.
type issuedCredential struct {
	Merchant      string    `json:"merchant"`
	ClientID      string    `json:"client_id"`
	Number        int       `json:"number"`
	Secret        string    `json:"secret"`
	EndingNumbers []int     `json:"ended"` // numbers of those that end
	EndAt         time.Time `json:"end_at,omitzero"`
}

// auditDetail is what the audit record says of it.
func (i issuedCredential) auditDetail() string {
	text := "number " + strconv.Itoa(i.Number)
	for _, old := range i.EndingNumbers {
		text += fmt.Sprintf("; %d ends at %s", old, formatTime(i.EndAt))
	}
	return text
}

type issueArguments struct{ merchantArgument }

// issue issues a credential beside those there are.
func (c issueArguments) issue(s *session, kind credentialKind) error {
	p, err := s.findMerchant(c.Name)
	if err != nil {
		return err
	}
	return issueAndStore(s, kind, p, issuedCredential{}, kind.issue)
}

type rotateArguments struct {
	merchantArgument
	Overlap time.Duration `default:"24h" help:"How long the others stay live."`
	Force   bool          `help:"Where two are live already, drop the older at once."`
}

// rotate issues a credential and ends the others after the overlap.
func (c rotateArguments) rotate(s *session, kind credentialKind) error {
	if c.Overlap < 0 {
		return usageError("--overlap cannot be negative")
	}
	p, err := s.findMerchant(c.Name)
	if err != nil {
		return err
	}
	output := issuedCredential{EndAt: s.Now().Add(c.Overlap).UTC().Truncate(time.Millisecond)}
	issue := kind.issue
	if c.Force {
		issue = kind.replace
	}
	return issueAndStore(s, kind, p, output, func(p *merchant.Profile, random io.Reader, now time.Time) (string, error) {
		secret, err := issue(p, random, now)
		if err != nil {
			return "", err
		}
		for _, old := range kind.credentials(p)[:len(kind.credentials(p))-1] {
			if err := kind.revoke(p, old.Number, output.EndAt, now); err != nil {
				return "", err
			}
		}
		return secret, nil
	})
}

// issueAndStore issues by a function, stores the profile and shows the secret.
func issueAndStore(s *session, kind credentialKind, p *merchant.Profile, output issuedCredential, issue func(*merchant.Profile, io.Reader, time.Time) (string, error)) error {
	secret, err := issue(p, s.Rand, s.Now())
	if errors.Is(err, merchant.ErrTooManyActive) {
		return fmt.Errorf("%w (rotate --force, or revoke)", err)
	}
	if err != nil {
		return err
	}
	all := kind.credentials(p)
	output.Merchant, output.ClientID, output.Number, output.EndingNumbers = p.Name, p.ID, all[len(all)-1].Number, []int{}
	for _, old := range all[:len(all)-1] {
		if !output.EndAt.IsZero() {
			output.EndingNumbers = append(output.EndingNumbers, old.Number)
		}
	}
	err = s.changes.execute(Action{"issue a " + kind.name, p.Name}, func() (string, error) {
		return output.auditDetail(), s.changes.updateMerchant(p)
	})
	if err != nil {
		return err
	}
	output.Secret = s.changes.revealSecret(secret)
	return s.show(output, table{{"merchant", output.Merchant}, {"client id", output.ClientID}, {"number", strconv.Itoa(output.Number)},
		{kind.name, output.Secret}, {"others end", formatTime(output.EndAt)}})
}

type revokeArguments struct {
	merchantArgument
	Number *int           `arg:"" optional:"" help:"The number in the list."`
	After  *time.Duration `help:"End it only after this time."`
}

// revoke revokes one credential.
func (c revokeArguments) revoke(s *session, kind credentialKind) error {
	if c.Number == nil || *c.Number < 1 {
		return usageError("say which %s by its number in the list", kind.name)
	}
	var in time.Duration
	if c.After != nil {
		in = *c.After
	}
	if in < 0 {
		return usageError("--after cannot be negative")
	}
	return changeProfile(s, c.Name, fmt.Sprintf("revoke %s %d", kind.name, *c.Number), func(p *merchant.Profile) error {
		return kind.revoke(p, *c.Number, s.Now().Add(in), s.Now())
	})
}

// listCredentials lists what a merchant holds of a kind.
func listCredentials(s *session, name string, kind credentialKind) error {
	p, err := s.findMerchant(name)
	if err != nil {
		return err
	}
	views := credentialViews(kind.credentials(p), s.Now())
	slices.SortFunc(views, func(a, b credentialView) int { return a.Number - b.Number })
	rows := table{{"NUMBER", "CREATED", "EXPIRES", "LIVE"}}
	for _, v := range views {
		rows = append(rows, []string{strconv.Itoa(v.Number), formatTime(v.Created), firstNonEmpty(formatTime(v.Expires), "never"), strconv.FormatBool(v.Live)})
	}
	return s.show(views, rows)
}

type tokenIssue struct{ issueArguments }

// Run issues a token.
func (c *tokenIssue) Run(s *session) error { return c.issue(s, tokenKind()) }

type tokenRotate struct{ rotateArguments }

// Run rotates the tokens.
func (c *tokenRotate) Run(s *session) error { return c.rotate(s, tokenKind()) }

type tokenRevoke struct {
	revokeArguments
	ShortLived bool `help:"End all short-lived tokens that the token endpoint ever issued."`
}

// Run ends a token, or the short-lived ones.
func (c *tokenRevoke) Run(s *session) error {
	if !c.ShortLived {
		return c.revoke(s, tokenKind())
	}
	if c.Number != nil || c.After != nil {
		return usageError("--short-lived ends all short-lived tokens, at once: it goes with no number and no --after")
	}
	return changeProfile(s, c.Name, "revoke the short-lived tokens", func(p *merchant.Profile) error {
		merchant.RevokeShortLivedTokens(p, s.Now())
		return nil
	})
}

type tokenList struct{ merchantArgument }

// Run lists the tokens.
func (c *tokenList) Run(s *session) error { return listCredentials(s, c.Name, tokenKind()) }

type secretIssue struct{ issueArguments }

// Run issues a client secret.
func (c *secretIssue) Run(s *session) error { return c.issue(s, clientSecretKind()) }

type secretRotate struct{ rotateArguments }

// Run rotates the client secrets.
func (c *secretRotate) Run(s *session) error { return c.rotate(s, clientSecretKind()) }

type secretRevoke struct{ revokeArguments }

// Run ends a client secret.
func (c *secretRevoke) Run(s *session) error { return c.revoke(s, clientSecretKind()) }

type secretList struct{ merchantArgument }

// Run lists the client secrets.
func (c *secretList) Run(s *session) error { return listCredentials(s, c.Name, clientSecretKind()) }
