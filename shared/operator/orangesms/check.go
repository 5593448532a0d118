package orangesms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/upstream"
)

// CheckAccount implements operator.AccountChecker by the balance of each country. A note says if it cannot be read,
// because a contract may lack the balance, or have an older form of it.
func (d *Driver) CheckAccount(
	ctx context.Context, call operator.Call, services []operator.Service,
) (notes []string, err error) {
	x, unsent := d.Send(ctx, call, upstream.Get("/sms/admin/v1/contracts"), isTokenRefusal)
	switch {
	case unsent != nil:
		return nil, unsent
	case x.Err != nil, isTokenRefusal(x):
		return nil, errors.Join(logsafe.Errorf("the balance responded %d %s", x.Status, logsafe.Code(gatewayCode(x))),
			x.Err)
	}
	var contracts []struct {
		Country string `json:"country"`
		Units   int    `json:"availableUnits"`
	}
	if !x.IsSuccess() || json.Unmarshal(x.Body, &contracts) != nil || contracts == nil {
		note := fmt.Sprintf("the balance responded %d %s: see it in Orange's portal", x.Status,
			logsafe.Code(gatewayCode(x)))
		return []string{note}, nil
	}
	alpha3 := map[string]string{"CI": "CIV", "CD": "COD", "CM": "CMR", "SN": "SEN", "TN": "TUN", "BF": "BFA"}
	for _, s := range services {
		units := 0
		for _, c := range contracts {
			if c.Country == alpha3[s.Country] {
				units += c.Units
			}
		}
		notes = append(notes, fmt.Sprintf("%s has %d units left", s.Country, units))
		if units <= 0 {
			err = errors.Join(err, logsafe.Errorf("%s: %w", logsafe.Name(s.Country), operator.ErrNoUnits))
		}
	}
	return notes, err
}
