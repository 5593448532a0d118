package local

import (
	"context"
	"fmt"
	neturl "net/url"
	"path/filepath"

	"mobilegateway/internal/local/awscalls"
)

// startCallRecorder begins the record of the functions' AWS calls, and keeps its file current.
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
	accessKey, _ := awsCredentials(r.config.Dir)
	recordChanged := make(chan struct{}, 1)
	r.recorder = awscalls.New(callers, resources, accessKey, func() {
		select {
		case recordChanged <- struct{}{}:
		default: // it is noted already
		}
	})
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

// startDynamoDBProxy puts the recorder in front of the table engine, for the functions and for tools. What makes the tables and
// reads their streams stands in for AWS itself, and goes to the engine.
func (r *Gateway) startDynamoDBProxy() error {
	endpoint, err := neturl.Parse(r.dynamoURL)
	if err != nil {
		return fmt.Errorf("DynamoDB at %s: %w", r.dynamoURL, err)
	}
	r.dynamoProxyURL = listenerURL(r.listeners.dynamoProxy)
	r.serve(r.listeners.dynamoProxy, r.recorder.ProxyDynamoDB(endpoint))
	return nil
}
