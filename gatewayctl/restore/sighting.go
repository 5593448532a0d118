package restore

import (
	"cmp"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/market"
	"mobilegateway/shared/money"
)

// sighting is what log lines and a list have of one transaction.
type sighting struct {
	of                    *shop
	kind                  ledger.Kind
	id                    string
	correlator, reference string // of a charge or an SMS
	operator, country     string
	channel               string
	account, upstreamKey  string // of an export
	minor                 int64  // 0 for an amount that is not known
	at                    time.Time
	last                  time.Time // when its last attempt may have begun
	exact                 bool      // a list has it, not only log lines
	before                bool      // its first request was before the moment, and no later one is known
}

func (s sighting) withID(id string) sighting {
	s.id = id
	return s
}

// withKeys returns the sighting of a charge or an SMS with what its id is made of.
func (s sighting) withKeys(correlator, reference string) sighting {
	s.correlator, s.reference = correlator, reference
	if s.kind == ledger.SMS {
		return s.withID(ledger.SMSID(s.of.profile.ID, correlator))
	}
	return s.withID(ledger.ChargeID(s.of.profile.ID, correlator, reference))
}

func (s sighting) key() ledger.Key { return ledger.Key{Kind: s.kind, ID: s.id} }

func (s *sighting) isExact() bool { return s != nil && s.exact }

// add adds a sighting to what is known of its transaction. The first one counts where two differ.
func (r *run) add(s sighting) {
	known := r.found[s.key()]
	if known == nil {
		r.found[s.key()] = &s
		return
	}
	known.operator, known.country = cmp.Or(known.operator, s.operator), cmp.Or(known.country, s.country)
	known.channel, known.reference = cmp.Or(known.channel, s.channel), cmp.Or(known.reference, s.reference)
	if s.at.Before(known.at) {
		known.at = s.at
	}
	if s.last.After(known.last) {
		known.last = s.last
	}
	known.before = known.before && s.before
}

// homeCountry is the country, or the merchant's only or home country.
func (s *sighting) homeCountry() string {
	p := s.of.profile
	if s.country == "" && p.HomeCountry == "" && len(p.Countries) > 0 {
		return p.Countries[0]
	}
	return cmp.Or(s.country, p.HomeCountry)
}

// entry is the transaction as it can be stored. Its route is that of a new one.
func (s *sighting) entry() *ledger.Entry {
	p, code := s.of.profile, s.homeCountry()
	country, _ := market.ByAlpha2(code) // without one the amount is not known either
	e := &ledger.Entry{
		Key:       s.key(),
		Merchant:  ledger.Merchant{ID: p.ID, Name: p.Name, DayShard: p.DayShard(s.key())},
		CreatedAt: s.at, UpdatedAt: s.at,
		Request: ledger.Request{Correlator: s.correlator, ReferenceCode: s.reference},
		Route:   ledger.Route{Country: code, Operator: s.operator, Account: s.account, UpstreamKey: s.upstreamKey},
		Amount:  ledger.Amount{Minor: s.minor, Exponent: country.Exponent, Currency: country.Currency},
	}
	if s.minor > 0 {
		e.Amount.AsSent = money.Format(s.minor, country.Exponent)
	}
	if s.kind == ledger.SMS {
		e.Amount = ledger.Amount{}
	}
	if s.kind != ledger.Payment {
		key := ledger.UpstreamKey(p.Name, s.correlator, s.reference)
		e.Route.UpstreamKey = cmp.Or(s.upstreamKey, key)
		return e
	}
	const lang = "en" // as for a payment in any other language than French
	e.Request = ledger.Request{
		Channel: s.channel, Lang: lang, CountryAsSent: code, TransactionID: ledger.PaymentTransactionID(s.id),
	}
	e.Outbox = ledger.Outbox{URL: p.NotifURL, From: ledger.AddressOfProfile}
	return e
}
