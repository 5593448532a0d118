package operator_test

import (
	"strings"
	"testing"

	"mobilegateway/shared/operator"
)

func TestAccountChecks(t *testing.T) {
	const secret = "hunter2"
	for name, c := range map[string]struct {
		check func(string) error
		text  string
		ok    bool
	}{
		"https":                {operator.CheckBaseURL, "https://op.example/x/", true},
		"http to this machine": {operator.CheckBaseURL, "http://localhost:1", true},
		"http at home":         {operator.CheckBaseURL, "http://10.0.0.1", false},
		"http at home, local":  {operator.CheckNearBaseURL, "http://10.0.0.1", true},
		"http outside, local":  {operator.CheckNearBaseURL, "http://op.example/" + secret, false},
		"http outside":         {operator.CheckBaseURL, "http://op.example/" + secret, false},
		"no scheme":            {operator.CheckBaseURL, "op.example/" + secret, false},
		"password":             {operator.CheckBaseURL, "https://u:" + secret + "@op.example", false},
		"query":                {operator.CheckBaseURL, "https://op.example?" + secret, false},
		"not an address":       {operator.CheckBaseURL, "https://" + secret + "\x00", false},
		"token":                {operator.CheckToken, secret, true},
		"token with Bearer":    {operator.CheckToken, "Bearer " + secret, false},
		"token with a break":   {operator.CheckToken, secret + "\n", false},
		"empty token":          {operator.CheckToken, "", false},
		"text":                 {operator.CheckHeaderText, "Service 1", true},
		"text and a space":     {operator.CheckHeaderText, secret + " ", false},
		"text outside ASCII":   {operator.CheckHeaderText, secret + "é", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.check(c.text)
			if (err == nil) != c.ok {
				t.Fatalf("%q: %v", c.text, err)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error has the value: %v", err)
			}
		})
	}
}

// Without a description of its own, a driver's accounts have an address and a token.
func TestAccountFieldsOfDrivers(t *testing.T) {
	directory := operator.NewDriverDirectory(map[string]operator.Driver{"gateway": nil}, nil)
	fields, found := directory.AccountFields("sandbox")
	if !found || len(fields) != 2 || fields[0].Path != "base_url" || fields[1].Path != "access_token" {
		t.Errorf("%v %v", fields, found)
	}
	if _, found := directory.AccountFields("elsewhere"); found {
		t.Error("an unknown operator has fields")
	}
	row := operator.Capabilities{SendsUserSMS: true, Operations: []string{"charge", "pay", "sms"}}
	if got := strings.Join(row.AccountOperations(), " "); got != "charge pay sms" {
		t.Errorf("operations %s", got)
	}
}
