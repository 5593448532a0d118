package engineers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"mobilegateway/gatewayctl/auditlog"
	control "mobilegateway/gatewayctl/deployment"
	"mobilegateway/proof/simulate/deployment"
)

// secretStore is the secret store of one run of gatewayctl.
type secretStore struct {
	*deployment.Outside
	instance *deployment.Instance
}

// Get implements control.SecretStore.
func (s secretStore) Get(_ context.Context, name string) (control.StoredSecret, error) {
	s.Pass(s.instance, "secret "+name)
	value, err := s.Secrets.Fetch(time.Now(), name, s.Tape)
	return control.StoredSecret{Name: name, Value: value, Revision: revision(value)}, err
}

// revision identifies a version of a secret.
func revision(value []byte) string {
	sum := sha256.Sum256(value)
	return hex.EncodeToString(sum[:])
}

// Put implements control.SecretStore.
func (s secretStore) Put(_ context.Context, current control.StoredSecret, value []byte) error {
	s.Pass(s.instance, "put secret "+current.Name)
	if stored, _ := s.Secrets.Current(current.Name); revision(stored) != current.Revision {
		return control.SecretChangedError(current.Name)
	}
	s.Secrets.Set(time.Now(), current.Name, value)
	return nil
}

// auditRecords are the audit records, and their copies.
type auditRecords struct {
	items  []auditlog.Item
	copies []string
}

// isCopied reports whether the last record has its copy.
func (a *auditRecords) isCopied() bool {
	last := len(a.items) - 1
	return last >= 0 && slices.Contains(a.copies, a.items[last].Document)
}

// auditLog stores the audit records of one run of gatewayctl.
type auditLog struct {
	records  *auditRecords
	gate     *deployment.Gate
	instance *deployment.Instance
}

// Append implements auditlog.Log.
func (a auditLog) Append(_ context.Context, r auditlog.Record) (auditlog.Item, error) {
	a.gate.Pass(a.instance, "audit record")
	item := auditlog.LastLink(a.records.items).Next(r)
	a.records.items, a.instance.IsAudited = append(a.records.items, item), true
	return item, nil
}

// Items implements auditlog.Log.
func (a auditLog) Items(context.Context) ([]auditlog.Item, error) { return a.records.items, nil }

// Write implements auditlog.Copies.
func (a auditLog) Write(_ context.Context, _ time.Time, document string) error {
	a.gate.Pass(a.instance, "audit copy")
	a.records.copies = append(a.records.copies, document)
	return nil
}

// Documents implements auditlog.Copies.
func (a auditLog) Documents(context.Context) ([]string, error) { return a.records.copies, nil }
