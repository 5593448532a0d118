package local

import (
	"context"
	"path/filepath"

	"mobilegateway/internal/local/awscalls"
)

// startCallRecorder starts the record of the functions' AWS calls and keeps its file up to date.
func (r *Gateway) startCallRecorder(context.Context) error {
	callers, resources := map[string]string{}, map[string]string{}
	for _, f := range r.template.Functions {
		callers[functionAccessKey(r.config.Dir, f.LogicalID)] = f.LogicalID
	}
	for _, table := range r.template.Tables {
		resources[table.Name] = table.LogicalID
	}
	for _, secret := range r.template.Secrets {
		resources[secret.Name] = secret.LogicalID
	}
	recordChanged := make(chan struct{}, 1)
	r.recorder = awscalls.New(callers, resources, accessKey(r.config.Dir), func() { offer(recordChanged, struct{}{}) })
	r.onClose(func() {
		if err := r.writeCallRecord(); err != nil {
			r.console.printf("%v", err)
		}
	})
	r.rewriteOnChange(recordChanged, r.writeCallRecord)
	return r.writeCallRecord()
}

func (r *Gateway) writeCallRecord() error {
	return r.recorder.Write(filepath.Join(r.config.Dir, awscalls.FileName))
}
