// Package session is one run of a command of gatewayctl.
//
// A command reads by its session and shows what would change. It changes things only within Execute: with --yes between
// the two writes of its audit record, else as a dry run.
package session

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/shared/merchant"
)

// The flags that choose a deployment, and where the folder of the local run is.
const (
	StackFlag     = "stack"
	LocalFlag     = "local"
	LocalVariable = "LOCAL_DIR"
	LocalFolder   = ".local"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// Command is a command line of this tool, for a person to run.
func (s *Session) Command(arguments ...string) string {
	words := []string{"gatewayctl"}
	if s.Local {
		words = append(words, "--"+LocalFlag)
	}
	if s.Stack != "" {
		words = append(words, "--"+StackFlag, ShellWord(s.Stack))
	}
	for _, word := range arguments {
		words = append(words, ShellWord(word))
	}
	return strings.Join(words, " ")
}

// ShellWord quotes a word for a shell if it needs quotes.
func ShellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// ConfirmArguments adds the flags of a change to a command's arguments.
func ConfirmArguments(arguments ...string) []string {
	return append(arguments, "--yes", "--reason", "REASON")
}

// Flags are those of all commands.
type Flags struct {
	deployment.Names `group:"Deployment"`

	Local  bool   `help:"Work on the local run of this folder, or of $$LOCAL_DIR: its tables, secrets and sandbox."`
	JSON   bool   `name:"json" help:"Write JSON, for programs."`
	Yes    bool   `help:"Apply the change. Without it the change is a dry run."`
	Reason string `placeholder:"REASON" help:"The reason, for the audit record; --yes needs it."`
}

// ProvideMerchants returns AllMerchants for the Run methods of all commands (kong's provider).
func (Flags) ProvideMerchants(s *Session) ([]*merchant.Profile, error) {
	return s.AllMerchants()
}

// Session is one run of the tool. Commands change things only within Execute.
type Session struct {
	context.Context
	deployment.System
	*Flags
	Stores *deployment.Stores // set by OpenStores; those of ReadOnly in a dry run
	Plan   string             // the detail of the first audit record: what must be known if the change is interrupted
	// Documents is the standard output for a document whose texts are masked: masking it whole would cross them.
	Documents io.Writer
	isDryRun  bool // a change was tried and not made
}

// OpenStores connects to the deployment once. It is called after the command line is checked, so that a wrong line is
// reported without a deployment.
func (s *Session) OpenStores() (err error) {
	if s.Stores != nil {
		return nil
	}
	s.Stores, err = s.Connect(s.System, s.Names)
	if err == nil && !s.Yes {
		s.Stores = s.Stores.ReadOnly()
	}
	return err
}

// Day is the length of a UTC day.
const Day = 24 * time.Hour

// UTCDay is a flag's UTC day, as the time at which it begins.
type UTCDay struct{ time.Time }

// Moment is a flag's UTC day or RFC 3339 time.
type Moment struct {
	time.Time
	wholeDay bool
}

// ParseDay reads a UTC day: one such as 2026-03-01, yesterday, or today. It returns when the day begins.
func ParseDay(text string, now time.Time) (time.Time, error) {
	today := now.UTC().Truncate(Day)
	switch text {
	case "today":
		return today, nil
	case "yesterday":
		return today.Add(-Day), nil
	}
	return time.Parse(time.DateOnly, text)
}

// DecodeTime decodes a utcDay or a moment, for a kong.MapperFunc. A day is also yesterday or today (UTC).
func DecodeTime(c *kong.DecodeContext, target reflect.Value, now time.Time) error {
	var text string
	if err := c.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	at, err := ParseDay(text, now)
	switch to := target.Addr().Interface().(type) {
	case *UTCDay:
		to.Time = at
		if err != nil {
			err = fmt.Errorf("%q is not a day such as 2026-03-01, yesterday or today", text)
		}
	case *Moment:
		to.wholeDay = err == nil
		if err != nil {
			at, err = time.Parse(time.RFC3339, text)
		}
		to.Time = at.UTC()
		if err != nil {
			err = fmt.Errorf("%q is neither a day such as 2026-03-01, yesterday or today, "+
				"nor a time such as 2026-03-01T12:00:00Z", text)
		}
	}
	return err
}

// DayRange is a range of UTC days.
type DayRange struct {
	From UTCDay `placeholder:"DAY" help:"The first UTC day of creation, such as 2026-03-01."`
	To   UTCDay `placeholder:"DAY" help:"The last UTC day of creation."`
}

// Times returns the range as times: its last day is in it.
func (r DayRange) Times() TimeRange {
	return TimeRange{Moment{r.From.Time, true}, Moment{r.To.Time, true}}
}

// TimeRange is a range of times.
type TimeRange struct {
	From Moment `placeholder:"TIME" help:"The first UTC day, or RFC 3339 time, of the statuses."`
	To   Moment `placeholder:"TIME" help:"The last UTC day, or the RFC 3339 time before which the range ends."`
}

// End returns when the range ends. A day as the end is in the range, a time is not.
func (r TimeRange) End() time.Time {
	if r.To.wholeDay {
		return r.To.Add(Day)
	}
	return r.To.Time
}

// Contains reports whether a time is in the range. A flag that is not given leaves it open.
func (r TimeRange) Contains(at time.Time) bool {
	return !at.Before(r.From.Time) && (r.To.IsZero() || at.Before(r.End()))
}

// Bounds returns when the range begins and when it ends, if it has both and is not empty.
func (r TimeRange) Bounds() (from, to time.Time, err error) {
	if r.From.IsZero() || r.To.IsZero() {
		return from, to, output.UsageError("missing flags: a range needs --from and --to")
	}
	if !r.End().After(r.From.Time) {
		return from, to, output.UsageError("the range is empty: --to must not be a day before --from %s, or a time "+
			"that is not after it", output.FormatTime(r.From.Time))
	}
	return r.From.Time, r.End(), nil
}

// Latest returns the later of two times.
func Latest(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// FindMerchant returns a copy of the profile with a name or an id.
func (s *Session) FindMerchant(nameOrID string) (*merchant.Profile, error) {
	if err := s.OpenStores(); err != nil {
		return nil, err
	}
	id, err := s.Stores.Merchants.IDByName(s, nameOrID)
	if err != nil {
		return nil, err
	}
	profile, err := s.Stores.Merchants.Profile(s, cmp.Or(id, nameOrID))
	if err != nil {
		return nil, err
	}
	if profile == nil {
		return nil, fmt.Errorf("there is no merchant %q: gatewayctl merchant list shows all", nameOrID)
	}
	return profile.Clone(), nil
}

// MerchantArgument names a merchant.
type MerchantArgument struct {
	Name string `arg:"" name:"merchant" help:"The merchant's name or id."`
}

// ProvideProfile returns the profile for the Run method of every command with a MerchantArgument (kong's provider).
func (c MerchantArgument) ProvideProfile(s *Session) (*merchant.Profile, error) {
	return s.FindMerchant(c.Name)
}

// MerchantsNamed returns the merchant with a name or an id, or without a name all merchants.
func (s *Session) MerchantsNamed(nameOrID string) ([]*merchant.Profile, error) {
	if nameOrID == "" {
		return s.AllMerchants()
	}
	p, err := s.FindMerchant(nameOrID)
	return []*merchant.Profile{p}, err
}

// AllMerchants returns the profiles of all merchants in no order.
func (s *Session) AllMerchants() ([]*merchant.Profile, error) {
	profiles, _, err := s.CountedMerchants()
	return profiles, err
}

// CountedMerchants is AllMerchants with the number of calls. The list of the merchants counts as one, also if the table
// needs several pages for it.
func (s *Session) CountedMerchants() (profiles []*merchant.Profile, calls int, err error) {
	if err := s.OpenStores(); err != nil {
		return nil, 0, err
	}
	ids, err := s.Stores.Merchants.IDs(s)
	if err != nil {
		return nil, 1, err
	}
	if s.Stores.Profiles != nil {
		profiles, calls, err = s.Stores.Profiles.Profiles(s, ids)
		return profiles, 1 + calls, err
	}
	for _, id := range ids {
		p, err := s.Stores.Merchants.Profile(s, id)
		if err != nil {
			return nil, 1, err
		}
		if p != nil {
			profiles = append(profiles, p)
		}
	}
	return profiles, 1 + len(ids), nil
}

// LoopbackFlag allows addresses of this machine in a profile.
type LoopbackFlag struct {
	AllowLoopback bool `variable:"ALLOW_LOOPBACK" help:"Accept addresses of this machine; set by --local."`
}

// profileMargin is the longest time from reading a profile to a post with its address and secrets.
const profileMargin = 5 * time.Second

// EffectiveFrom returns when every function posts by a profile that was changed at a time: until then one may have the
// profile of before in its cache.
func (s *Session) EffectiveFrom(changed time.Time) time.Time {
	return changed.Add(s.ProfileCache + profileMargin)
}

// ReadSecret reads a secret of the deployment. variable is where its name comes from.
func ReadSecret(s *Session, name, variable string) (deployment.StoredSecret, error) {
	if name == "" {
		return deployment.StoredSecret{},
			output.UsageError("%s is not set: name the deployment's secret, or use --local", variable)
	}
	if err := s.OpenStores(); err != nil {
		return deployment.StoredSecret{}, err
	}
	secret, err := s.Stores.Secrets.Get(s, name)
	if err != nil {
		return deployment.StoredSecret{}, fmt.Errorf("reading the secret %s: %w", name, err)
	}
	return secret, nil
}
