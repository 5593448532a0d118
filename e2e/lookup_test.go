package e2e

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"mobilegateway/shared/ledger"
)

// found looks a charge up by its correlator, also one whose answer never came: its id is made of the merchant's id, which
// is the client_id, and the correlator (decision "charge-repeat").
func (s *story) found(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("found: CORRELATOR")
	}
	id := ledger.ChargeID(s.target.ClientID, arguments[0], "")
	a := newAsk(s.target.shop, http.MethodGet, chargePath+"/"+id)
	a.body = nil
	return s.send(a)
}

// token asks for an access token: token [-path /token] [-form TEXT] [-basic good|bad|none] [-as second]. The good client is
// the merchant's own.
func (s *story) token(arguments []string) error {
	o, err := readOptions(arguments)
	if err != nil {
		return err
	}
	from := s.merchant(o)
	a := newAsk(from, http.MethodPost, "/token")
	a.body, a.raw = nil, []byte(o.get("form", ""))
	a.header = map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	secret := from.ClientSecret
	switch o.get("basic", "good") {
	case "good":
	case "bad":
		secret = s.target.shop.ClientSecret + "x"
	default:
		secret = ""
	}
	if secret != "" {
		a.header["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(from.ClientID+":"+secret))
	}
	if err := a.change(s, o, "form", "basic"); err != nil {
		return err
	}
	return s.send(a)
}

// getStatus looks a payment up: getstatus ORDER [-as second] [-path other] [PATH = TEXT]. The other path is the one that
// existing clients call (decision "pay-getstatus").
func (s *story) getStatus(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("getstatus: ORDER [options] [PATH = TEXT]")
	}
	order, rest := arguments[0], arguments[1:]
	path, from := "/mobilemoney/v1/getStatus/", s.target.shop
	for len(rest) >= 2 && strings.HasPrefix(rest[0], "-") {
		switch rest[0] + " " + rest[1] {
		case "-as second":
			from = s.target.Second
		case "-path other":
			path = "/mobilemoney/getstatus/v1/"
		default:
			return errors.New("getstatus: -as second or -path other")
		}
		rest = rest[2:]
	}
	a := newAsk(from, http.MethodGet, path+order)
	a.body = nil
	if err := s.send(a); err != nil {
		return err
	}
	if len(rest) == 0 {
		return nil
	}
	return s.json(rest)
}
