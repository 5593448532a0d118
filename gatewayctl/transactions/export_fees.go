package transactions

import (
	"cmp"
	"errors"
	"os"

	"mobilegateway/gatewayctl/entries"
	"mobilegateway/gatewayctl/reconcile/result"
	"mobilegateway/gatewayctl/reconcile/runs"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/operator"
)

// exportView is a transaction as it is exported.
type exportView struct {
	entries.View
	Platform string `json:"platform"`
	// PlatformReference is the platform's own reference: its response's, a claim's, or that of a statement.
	PlatformReference string `json:"platform_reference,omitempty"`
	// Fee is the operator's in a statement.
	Fee string `json:"fee,omitempty"`
}

// findings are what results of reconciliations have about transactions. They are searched in a file, so that memory
// hardly grows with their number.
type findings struct {
	folder string
	index  *runs.Index // nil without results
}

// open reads the files of reconcile --result.
func (f *findings) open(paths []string) (err error) {
	if len(paths) == 0 {
		return nil
	}
	if f.folder, err = os.MkdirTemp("", "gatewayctl-export-"); err != nil { // mode 0700
		return err
	}
	sorter := runs.New(f.folder, "fees")
	for _, path := range paths {
		_, err := result.Read(path, func(row result.Row) error {
			if !row.IsReconciled() {
				return nil
			}
			key := ledger.Key{Kind: row.Kind, ID: row.ID}
			return sorter.Add(runs.Pack(key.String(), row.TheirReference, row.Fee))
		})
		if err != nil {
			return err
		}
	}
	f.index, err = runs.NewIndex(sorter)
	return err
}

// close removes what open has written.
func (f *findings) close() error {
	var err error
	if f.index != nil {
		err = f.index.Close()
	}
	if f.folder != "" {
		err = errors.Join(err, os.RemoveAll(f.folder))
	}
	return err
}

// viewOf returns a transaction as it is exported.
func (f *findings) viewOf(e *ledger.Entry) (exportView, error) {
	view := exportView{View: entries.ViewOf(e), Platform: operator.PinOf(e).Platform}
	view.FinalAt = BecameFinal(e) // also a charge has the time at which its outcome was recorded
	view.PlatformReference = cmp.Or(view.OperatorReference, e.Claim.OperatorReference)
	if f.index == nil {
		return view, nil
	}
	found, err := f.index.Find(e.Key.String())
	if err == nil && found != nil {
		view.PlatformReference, view.Fee = cmp.Or(view.PlatformReference, found[1]), found[2]
	}
	return view, err
}
