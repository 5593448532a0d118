// Package awscalls records the AWS calls that the functions of a local run make. Package iamcheck compares them with
// template.yaml's permissions.
//
// It identifies functions by their access keys, as AWS does by their roles. The recorder is in front of the local
// services (local.Config.RecordCalls). It records refused calls too, because they need their permission as well. The
// invariant: a call is in the record before the service sees it.
package awscalls

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Call is one kind of call that a function made.
type Call struct {
	// Function is the logical id.
	Function string `json:"function"`
	// Action is the permission's name, such as dynamodb:GetItem.
	Action string `json:"action"`
	// Resource is the logical id of a table, of an index (LedgerTable/index/due) or of a secret. A resource that the
	// template does not have keeps the name that was sent. "*" is a call without a resource.
	Resource string `json:"resource"`
	// Kind is the kind of a table's item, which its key begins with: charge for charge#1. "" is a call without a key.
	Kind string `json:"kind,omitempty"`
}

// Compare orders calls by function, action, resource and kind.
func (c Call) Compare(other Call) int {
	return slices.Compare([]string{c.Function, c.Action, c.Resource, c.Kind},
		[]string{other.Function, other.Action, other.Resource, other.Kind})
}

// Recorder is a set of calls. It is safe for concurrent use.
type Recorder struct {
	functionsByKey map[string]string
	logicalIDs     map[string]string
	runAccessKey   string

	mu   sync.Mutex
	seen map[Call]bool
}

// New returns an empty Recorder. It records only the calls of functionsByKey, functions by access key. logicalIDs are
// those of tables and secrets by name. DynamoDB sees every call under runAccessKey, because some databases separate
// data by access key.
func New(functionsByKey, logicalIDs map[string]string, runAccessKey string) *Recorder {
	return &Recorder{
		functionsByKey: functionsByKey, logicalIDs: logicalIDs, runAccessKey: runAccessKey, seen: map[Call]bool{},
	}
}

// Calls returns the set, in order.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Keys(r.seen), Call.Compare)
}

func (r *Recorder) addCalls(function string, calls []Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, call := range calls {
		call.Function = function
		r.seen[call] = true
	}
}

// accessKeyOf returns the access key of a signature: Credential=<key>/<date>/<region>/<service>/aws4_request.
func accessKeyOf(header http.Header) string {
	_, rest, _ := strings.Cut(header.Get("Authorization"), "Credential=")
	key, _, _ := strings.Cut(rest, "/")
	return key
}
