package gatewayctltest

import (
	"context"
	"errors"
	"strconv"
	"time"

	"mobilegateway/gatewayctl/auditlog"
	"mobilegateway/gatewayctl/deployment"
)

// Secrets is a SecretStore in memory. A revision counts the changes.
type Secrets struct {
	Values    map[string][]byte
	Revisions map[string]int
	Puts      int
}

// Get implements deployment.SecretStore.
func (v *Secrets) Get(_ context.Context, name string) (deployment.StoredSecret, error) {
	return deployment.StoredSecret{Name: name, Value: v.Values[name], Revision: strconv.Itoa(v.Revisions[name])}, nil
}

// Put implements deployment.SecretStore.
func (v *Secrets) Put(_ context.Context, current deployment.StoredSecret, value []byte) error {
	if strconv.Itoa(v.Revisions[current.Name]) != current.Revision {
		return deployment.SecretChangedError(current.Name)
	}
	v.Values[current.Name], v.Puts = value, v.Puts+1
	v.Revisions[current.Name]++
	return nil
}

// Audit is an AuditLog in memory with its copies. It refuses records whose outcome is failAt.
type Audit struct {
	Stored   []auditlog.Item
	Copies   []string
	Records  map[string]auditlog.Record // the last one of each change
	Outcomes []string                   // outcomes in the order in which they were written
	FailAt   string
}

// Append implements auditlog.Log.
func (a *Audit) Append(_ context.Context, r auditlog.Record) (auditlog.Item, error) {
	if a.FailAt == r.Outcome {
		return auditlog.Item{}, errors.New("no audit record")
	}
	item := auditlog.LastLink(a.Stored).Next(r)
	a.Stored, a.Records[r.ID] = append(a.Stored, item), r
	a.Outcomes = append(a.Outcomes, r.Outcome)
	return item, nil
}

// Items implements auditlog.Log.
func (a *Audit) Items(context.Context) ([]auditlog.Item, error) { return a.Stored, nil }

// Write implements auditlog.Copies.
func (a *Audit) Write(_ context.Context, _ time.Time, document string) error {
	a.Copies = append(a.Copies, document)
	return nil
}

// Documents implements auditlog.Copies.
func (a *Audit) Documents(context.Context) ([]string, error) { return a.Copies, nil }
