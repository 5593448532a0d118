package session

import (
	"cmp"
	"fmt"
	"reflect"
	"time"

	"github.com/alecthomas/kong"

	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/output"
	"mobilegateway/shared/merchant"
)

// Day is the length of a UTC day.
const Day = 24 * time.Hour

// UTCDay is a flag's UTC day, as the time at which it begins.
type UTCDay struct{ time.Time }

// Moment is a flag's UTC day or RFC 3339 time.
type Moment struct {
	time.Time
	wholeDay bool
}

// DecodeTime decodes a utcDay or a moment, for a kong.MapperFunc. A day is also yesterday or today (UTC).
func DecodeTime(c *kong.DecodeContext, target reflect.Value, now time.Time) (err error) {
	var text string
	if err := c.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	today := now.UTC().Truncate(Day)
	at, named := map[string]time.Time{"today": today, "yesterday": today.Add(-Day)}[text]
	if !named {
		at, err = time.Parse(time.DateOnly, text)
	}
	switch to := target.Addr().Interface().(type) {
	case *UTCDay:
		if to.Time = at; err != nil {
			err = fmt.Errorf("%q is not a day such as 2026-03-01, yesterday or today", text)
		}
	case *Moment:
		if to.wholeDay = err == nil; err != nil {
			at, err = time.Parse(time.RFC3339, text)
		}
		if to.Time = at.UTC(); err != nil {
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
		return from, to, output.UsageError("the range is empty: --to must be after --from %s",
			output.FormatTime(r.From.Time))
	}
	return r.From.Time, r.End(), nil
}

// Latest returns the later of two times.
func Latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

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
	if err := s.OpenStores(); err != nil {
		return nil, err
	}
	ids, err := s.Stores.Merchants.IDs(s)
	if err != nil {
		return nil, err
	}
	var profiles []*merchant.Profile
	for _, id := range ids {
		p, err := s.Stores.Merchants.Profile(s, id)
		if err != nil {
			return nil, err
		}
		if p != nil {
			profiles = append(profiles, p)
		}
	}
	return profiles, nil
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
	return s.Stores.Secrets.Get(s, name)
}
