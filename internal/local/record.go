package local

import (
	"context"
	"fmt"
	neturl "net/url"
	"path/filepath"

	"mobilegateway/internal/local/calls"
)

// startRecorder begins the record of the functions' AWS calls, and keeps its file current.
func (r *Run) startRecorder(context.Context) error {
	callers, resources := map[string]string{}, map[string]string{}
	for _, f := range r.template.Functions {
		callers[functionKey(r.config.Dir, f.LogicalID)] = f.LogicalID
	}
	for _, table := range r.template.Tables {
		resources[table.Name] = table.LogicalID
	}
	for _, secret := range r.template.Secrets {
		resources[secret.Name] = secret.LogicalID
	}
	accessKey, _ := credentials(r.config.Dir)
	grown := make(chan struct{}, 1)
	r.calls = calls.New(callers, resources, accessKey, func() {
		select {
		case grown <- struct{}{}:
		default: // it is noted already
		}
	})
	r.onClose(func() {
		if err := r.writeCalls(); err != nil {
			r.log.printf("%v", err)
		}
	})
	r.follow(grown, r.writeCalls)
	return r.writeCalls()
}

func (r *Run) writeCalls() error { return r.calls.Write(filepath.Join(r.config.Dir, calls.File)) }

// serveTables puts the recorder in front of the table engine, for the functions and for tools. What makes the tables and
// reads their streams stands in for AWS itself, and goes to the engine.
func (r *Run) serveTables() error {
	endpoint, err := neturl.Parse(r.dynamoURL)
	if err != nil {
		return fmt.Errorf("DynamoDB at %s: %w", r.dynamoURL, err)
	}
	r.tablesURL = url(r.listeners.tables)
	r.serve(r.listeners.tables, r.calls.Tables(endpoint))
	return nil
}
