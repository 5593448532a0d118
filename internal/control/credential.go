package control

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
	name    string
	held    func(*merchant.Profile) []merchant.Credential
	issue   func(*merchant.Profile, io.Reader, time.Time) (string, error)
	replace func(*merchant.Profile, io.Reader, time.Time) (string, error)
	revoke  func(p *merchant.Profile, number int, at, now time.Time) error
}

func tokens() credentialKind {
	return credentialKind{"token", func(p *merchant.Profile) []merchant.Credential { return p.Tokens },
		merchant.IssueToken, merchant.ReplaceToken, merchant.RevokeToken}
}

func clientSecrets() credentialKind {
	return credentialKind{"client secret", func(p *merchant.Profile) []merchant.Credential { return p.ClientSecrets },
		merchant.IssueClientSecret, merchant.ReplaceClientSecret, merchant.RevokeClientSecret}
}

// issued is a new credential, shown once.
type issued struct {
	Merchant string    `json:"merchant"`
	ClientID string    `json:"client_id"`
	Number   int       `json:"number"`
	Secret   string    `json:"secret"`
	Ended    []int     `json:"ended"` // numbers of those that end
	EndAt    time.Time `json:"end_at,omitzero"`
}

// detail is what the audit record says of it.
func (i issued) detail() string {
	text := "number " + strconv.Itoa(i.Number)
	for _, old := range i.Ended {
		text += fmt.Sprintf("; %d ends at %s", old, moment(i.EndAt))
	}
	return text
}

type issuing struct{ named }

// add issues a credential beside those there are.
func (c issuing) add(s *session, kind credentialKind) error {
	p, err := s.merchant(c.Name)
	if err != nil {
		return err
	}
	return storeIssued(s, kind, p, issued{}, kind.issue)
}

type rotating struct {
	named
	Overlap time.Duration `default:"24h" help:"How long the others stay live."`
	Force   bool          `help:"Where two are live already, drop the older at once."`
}

// rotate issues a credential and ends the others after the overlap.
func (c rotating) rotate(s *session, kind credentialKind) error {
	if c.Overlap < 0 {
		return usage("--overlap cannot be negative")
	}
	p, err := s.merchant(c.Name)
	if err != nil {
		return err
	}
	made := issued{EndAt: s.Now().Add(c.Overlap).UTC().Truncate(time.Millisecond)}
	issue := kind.issue
	if c.Force {
		issue = kind.replace
	}
	return storeIssued(s, kind, p, made, func(p *merchant.Profile, random io.Reader, now time.Time) (string, error) {
		secret, err := issue(p, random, now)
		if err != nil {
			return "", err
		}
		for _, old := range kind.held(p)[:len(kind.held(p))-1] {
			if err := kind.revoke(p, old.Number, made.EndAt, now); err != nil {
				return "", err
			}
		}
		return secret, nil
	})
}

// storeIssued issues by a function, stores the profile and shows the secret.
func storeIssued(s *session, kind credentialKind, p *merchant.Profile, made issued, issue func(*merchant.Profile, io.Reader, time.Time) (string, error)) error {
	secret, err := issue(p, s.Rand, s.Now())
	if errors.Is(err, merchant.ErrTwoLive) {
		return fmt.Errorf("%w (rotate --force, or revoke)", err)
	}
	if err != nil {
		return err
	}
	all := kind.held(p)
	made.Merchant, made.ClientID, made.Number, made.Ended = p.Name, p.ID, all[len(all)-1].Number, []int{}
	for _, old := range all[:len(all)-1] {
		if !made.EndAt.IsZero() {
			made.Ended = append(made.Ended, old.Number)
		}
	}
	err = s.hand.act(Act{"issue a " + kind.name, p.Name}, func() (string, error) {
		return made.detail(), s.hand.updateMerchant(p)
	})
	if err != nil {
		return err
	}
	made.Secret = s.hand.reveal(secret)
	return s.show(made, table{{"merchant", made.Merchant}, {"client id", made.ClientID}, {"number", strconv.Itoa(made.Number)},
		{kind.name, made.Secret}, {"others end", moment(made.EndAt)}})
}

type revoking struct {
	named
	Number *int           `arg:"" optional:"" help:"The number in the list."`
	In     *time.Duration `help:"End it only after this time."`
}

// end revokes one credential.
func (c revoking) end(s *session, kind credentialKind) error {
	if c.Number == nil || *c.Number < 1 {
		return usage("say which %s by its number in the list", kind.name)
	}
	var in time.Duration
	if c.In != nil {
		in = *c.In
	}
	if in < 0 {
		return usage("--in cannot be negative")
	}
	return changeProfile(s, c.Name, fmt.Sprintf("revoke %s %d", kind.name, *c.Number), func(p *merchant.Profile) error {
		return kind.revoke(p, *c.Number, s.Now().Add(in), s.Now())
	})
}

// listCredentials lists what a merchant holds of a kind.
func listCredentials(s *session, name string, kind credentialKind) error {
	p, err := s.merchant(name)
	if err != nil {
		return err
	}
	views := credentialsOf(kind.held(p), s.Now())
	slices.SortFunc(views, func(a, b credentialView) int { return a.Number - b.Number })
	rows := table{{"NUMBER", "CREATED", "EXPIRES", "LIVE"}}
	for _, v := range views {
		rows = append(rows, []string{strconv.Itoa(v.Number), moment(v.Created), or(moment(v.Expires), "never"), strconv.FormatBool(v.Live)})
	}
	return s.show(views, rows)
}

type tokenIssue struct{ issuing }

// Run issues a token.
func (c *tokenIssue) Run(s *session) error { return c.add(s, tokens()) }

type tokenRotate struct{ rotating }

// Run rotates the tokens.
func (c *tokenRotate) Run(s *session) error { return c.rotate(s, tokens()) }

type tokenRevoke struct {
	revoking
	Short bool `help:"End all short-lived tokens that the token endpoint ever issued."`
}

// Run ends a token, or the short-lived ones.
func (c *tokenRevoke) Run(s *session) error {
	if !c.Short {
		return c.end(s, tokens())
	}
	if c.Number != nil || c.In != nil {
		return usage("--short ends all short-lived tokens, at once: it goes with no number and no --in")
	}
	return changeProfile(s, c.Name, "revoke the short-lived tokens", func(p *merchant.Profile) error {
		merchant.RevokeShortTokens(p, s.Now())
		return nil
	})
}

type tokenList struct{ named }

// Run lists the tokens.
func (c *tokenList) Run(s *session) error { return listCredentials(s, c.Name, tokens()) }

type secretIssue struct{ issuing }

// Run issues a client secret.
func (c *secretIssue) Run(s *session) error { return c.add(s, clientSecrets()) }

type secretRotate struct{ rotating }

// Run rotates the client secrets.
func (c *secretRotate) Run(s *session) error { return c.rotate(s, clientSecrets()) }

type secretRevoke struct{ revoking }

// Run ends a client secret.
func (c *secretRevoke) Run(s *session) error { return c.end(s, clientSecrets()) }

type secretList struct{ named }

// Run lists the client secrets.
func (c *secretList) Run(s *session) error { return listCredentials(s, c.Name, clientSecrets()) }
