package e2e

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"mobilegateway/shared/ledger"
)

// lookupCharge looks a charge up by its correlator, even if it got no response. The id derives from the merchant's id,
// which is the client_id, and the correlator (decision "charge-repeat").
func (s *story) lookupCharge(arguments []string) error {
	id := ledger.ChargeID(s.target.ClientID, arguments[0], "")
	a := newRequestBuilder(s.target.MerchantCredentials, http.MethodGet, chargePath+"/"+id)
	a.body = nil
	return s.send(a)
}

// token requests an access token: token [-path /token] [-form TEXT] [-basic good|bad|none] [-as second].
func (s *story) token(arguments []string) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	from := s.merchantFor(o)
	a := newRequestBuilder(from, http.MethodPost, "/token")
	a.body, a.rawBody = nil, []byte(o.get("form", ""))
	a.header = map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	secret := from.ClientSecret
	switch o.get("basic", "good") {
	case "good":
	case "bad":
		secret = s.target.MerchantCredentials.ClientSecret + "x"
	default:
		secret = ""
	}
	if secret != "" {
		a.header["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(from.ClientID+":"+secret))
	}
	if err := a.applyOptions(s, o, "form", "basic"); err != nil {
		return err
	}
	return s.send(a)
}

// getStatus looks a payment up: getstatus ORDER [-as second|limited] [-path other] [PATH = TEXT]. The other path is
// the one of existing clients (decision "pay-getstatus").
func (s *story) getStatus(arguments []string) error {
	order, rest := arguments[0], arguments[1:]
	path, from := "/mobilemoney/v1/getStatus/", s.target.MerchantCredentials
	for len(rest) >= 2 && strings.HasPrefix(rest[0], "-") {
		switch rest[0] + " " + rest[1] {
		case "-as second":
			from = s.target.SecondMerchant
		case "-as limited":
			from = s.target.LimitedMerchant
		case "-path other":
			path = "/mobilemoney/getstatus/v1/"
		default:
			return errors.New("getstatus: -as second, -as limited or -path other")
		}
		rest = rest[2:]
	}
	a := newRequestBuilder(from, http.MethodGet, path+order)
	a.body = nil
	if err := s.send(a); err != nil {
		return err
	}
	if len(rest) == 0 {
		return nil
	}
	return s.json(rest)
}

// parallelLookups looks a payment up N times in parallel: parallel-lookups N ORDER [-as limited]. The checks read a
// refused response, if there is one.
func (s *story) parallelLookups(arguments []string) error {
	count, err := strconv.Atoi(arguments[0])
	if err != nil {
		return err
	}
	o, err := parseOptions(arguments[2:])
	if err != nil {
		return err
	}
	responses, err := s.exchangeInParallel(newLookup(s.merchantFor(o), arguments[1]), count)
	if err != nil {
		return err
	}
	seen := responses[0]
	for _, response := range responses {
		if response.status >= http.StatusBadRequest {
			seen = response
		}
	}
	s.record(seen)
	return nil
}
