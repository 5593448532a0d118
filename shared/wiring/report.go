package wiring

import (
	"errors"

	circuitdynamo "mobilegateway/shared/circuit/dynamo"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/credentials"
	"mobilegateway/shared/settings"
)

// errNoBatches is the error of an outside world whose DynamoDB has no batches.
var errNoBatches = errors.New("cannot start: the client of DynamoDB reads no batches")

// BatchReader returns the store of transactions for a function that reads many of them at once.
func (d *Dependencies) BatchReader() (*dynamo.BatchReader, error) {
	client, hasBatches := d.DynamoDB().(dynamoitem.BatchGetter)
	if !hasBatches {
		return nil, errNoBatches
	}
	d.warmDynamoDB()
	return dynamo.NewBatchReader(client, d.Env.Required(settings.LedgerTable)), nil
}

// OperatorAccounts returns the operators' routes and accounts for a function that calls no operator. So it contains no
// driver.
func (d *Dependencies) OperatorAccounts() *credentials.Reader {
	checkBaseURL := operator.CheckBaseURL
	if d.Env.LoopbackAllowed() {
		checkBaseURL = operator.CheckNearBaseURL
	}
	return credentials.NewReader(d.secretCache(settings.OperatorCredentialsSecret), d.Now, checkBaseURL)
}

// CircuitStore returns the stored circuits for a function that only reads them.
func (d *Dependencies) CircuitStore() *circuitdynamo.Store {
	return circuitdynamo.New(d.DynamoDB(), d.Env.Required(settings.LimitTable))
}
