package accounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
)

type operatorCheck struct {
	Names   []string      `arg:"" optional:"" name:"operator" help:"Which operators; all if none is given."`
	Timeout time.Duration `default:"10s" help:"The longest wait for a response."`
}

// Run checks each operation of the accounts. It checks the fields locally, and the address and the token by a status
// lookup, in which a driver also exchanges its token if it must. It never sends a charge, a payment or an SMS.
func (c *operatorCheck) Run(s *session.Session, stored Stored) error {
	results, failed := c.checkAll(s, stored)
	if results == nil && failed != nil {
		return failed
	}
	return errors.Join(session.ShowList(s, results), failed)
}

// compare compares the configuration that the platform shows of an account with what the gateway sends there, and
// prints it. It returns what does not fit.
func (c *operatorCheck) compare(
	s *session.Session, directory *operator.DriverDirectory, account AccountView, stored Stored,
) string {
	driver, _, _ := directory.Driver(account.Operator)
	checker, shows := driver.(operator.AccountChecker)
	if !shows {
		return ""
	}
	ctx, cancel := context.WithTimeout(s, c.Timeout)
	defer cancel()
	notes, err := checker.CheckAccount(ctx, operator.Call{
		Platform: account.Operator, AccountID: account.Account, OrderID: checkOrderID, DriverData: checkOrderID,
	}, stored.servicesOf(account))
	for _, note := range notes {
		fmt.Fprintf(s.Stderr, "Account %s of %s: %s.\n", account.Account, account.Operator, strings.TrimSpace(note))
	}
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// checkAccount checks each operation of one account. One lookup is the proof for all.
func (c *operatorCheck) checkAccount(
	s *session.Session, directory *operator.DriverDirectory, account AccountView, stored Stored,
) []OperationCheck {
	schema, err := findAccountSchema(account.Operator)
	if err != nil {
		return []OperationCheck{{account, "", false, err.Error(), err.Error()}}
	}
	fields := credentials.ReadFields(stored.operators[account.Operator].Accounts[account.Account])
	countries := stored.countriesOf(account)
	pin := operator.Pin{Platform: account.Operator, Account: account.Account}
	refused := c.lookUp(s, directory, pin)
	if refused == "" {
		refused = c.compare(s, directory, account, stored)
	}
	var results []OperationCheck
	for _, operation := range schema.row.AccountOperations() {
		unusable := strings.Join(schema.unusable(fields, operation, countries...), "; ")
		text := cmp.Or(unusable, refused)
		advice := accountAdvice(s, pin, unusable, refused)
		results = append(results, OperationCheck{account, operation, text == "", text, advice})
	}
	return results
}

// lookUp looks up the status of an order that does not exist, in the operator's own protocol. It returns why the
// account is not proven to work, "" if it is.
func (c *operatorCheck) lookUp(s *session.Session, directory *operator.DriverDirectory, account operator.Pin) string {
	row, _ := operator.FindCapabilities(account.Platform)
	if !row.HasStatusLookup {
		fmt.Fprintf(s.Stderr, "Account %s of %s was not looked up: the platform has no status lookup.\n",
			account.Account, row.Platform)
		return ""
	}
	key, err := operator.NewPaymentKey(row.KeyForm, checkOrderID, strings.NewReader(checkOrderID))
	if err != nil {
		return err.Error()
	}
	probe := &ledger.Entry{
		Key: ledger.Key{Kind: ledger.Payment, ID: checkOrderID},
		Route: ledger.Route{
			UpstreamKey: key, Operator: row.Reach[0].Operator, Country: row.Countries()[0],
			Account: account.Platform + "/" + account.Account,
		},
		Call: ledger.Call{DriverData: checkOrderID}, // for platforms that look up payments by a key of their own
	}
	reader, offered := directory.StatusLookup(probe)
	if !offered {
		return "the driver has no status lookup: the address and the token cannot be checked"
	}
	if err := NewConfirmer(s, directory, c.Timeout).AwaitLookup(s, account, s.Stores.Sleep); err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(s, c.Timeout)
	defer cancel()
	found := reader.LookUpPayment(ctx, operator.StatusCall{
		Call: operator.NewCall(probe), Channel: row.Channels[0], Lang: "en", Amount: "1",
	})
	if found.Responded() {
		return ""
	}
	return cmp.Or(found.Cause, errors.New("the status lookup had no result")).Error()
}

// checkOrderID is an order_id that cannot exist: a merchant's name has no hyphen.
const checkOrderID = "check-gatewayctl_1"

// OperationCheck is the result of one operation of an account.
type OperationCheck struct {
	AccountView
	Operation string `json:"operation" col:"OPERATION"`
	OK        bool   `json:"ok" col:"OK"`
	Error     string `json:"error,omitempty" col:"ERROR"`

	advice string // what to do if it does not work
}

// LookupAdvice returns what to do about an account whose lookup failed.
func LookupAdvice(s *session.Session, account operator.Pin, failed error) string {
	return accountAdvice(s, account, "", fmt.Sprint(failed))
}

// accountAdvice returns what to do about an account with unusable fields, or whose lookup failed.
func accountAdvice(s *session.Session, account operator.Pin, unusable, failed string) string {
	text := "nothing shows that its credentials are wrong, so change none. If the error stays, the operator is down, " +
		"or its base_url is wrong: docs/operations.md has the runbook"
	switch {
	case unusable != "":
		text = "correct what the error names: " + s.Command(session.ConfirmArguments("operator", "set", "FILE")...)
	case strings.HasPrefix(failed, fault.IntegrationRejected.String()):
		text = "the operator refuses its credentials: " + s.Command(RenewArguments(account)...)
	}
	return fmt.Sprintf("account %s of %s: %s", account.Account, account.Platform, text)
}
