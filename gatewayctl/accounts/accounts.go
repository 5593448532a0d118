package accounts

import "mobilegateway/gatewayctl/session"

// Commands are the commands below operator.
type Commands struct {
	Set         operatorSet         `cmd:"" help:"Add or renew credentials from a file, and show the difference."`
	RotateToken operatorRotateToken `cmd:"" help:"Renew the access token of one account."`
	List        operatorList        `cmd:"" help:"List the operators' accounts, without tokens."`
	Check       operatorCheck       `cmd:"" help:"Check each operation of an account; it sends only a status lookup."`
	Route       routeCommands       `cmd:"" help:"Routes: which account serves an operator's new orders."`
}

// ProvideCredentials returns the credentials for the Run methods below operator (kong's provider).
func (Commands) ProvideCredentials(s *session.Session) (Stored, error) { return ReadStored(s) }

type operatorList struct{}

// Run lists the accounts.
func (c *operatorList) Run(s *session.Session, stored Stored) error {
	return session.ShowList(s, accountViews(stored.operators))
}
