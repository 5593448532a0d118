// Package calls records which AWS calls the functions of a local run make, so that template.yaml's permissions can be
// compared with what the code does.
//
// Functions are told apart by their access keys, as AWS tells them apart by their roles. The recorder stands in front of
// the local services and passes everything on as it came, refused calls included: a call needs its permission however
// it ends. The invariant: a call is in the record before the service sees it.
package awscalls

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"mobilegateway/internal/local/file"
)

// Call is one kind of call that a function made.
type Call struct {
	// Function is the logical id.
	Function string `json:"function"`
	// Action is the permission's name, such as dynamodb:GetItem.
	Action string `json:"action"`
	// Resource is what the call was about, by the logical id in the template: a table, an index as
	// LedgerTable/index/due, or a secret. What the template does not have stands under the name that was sent, and "*"
	// where a call names nothing.
	Resource string `json:"resource"`
}

// Compare orders calls by function, action and resource.
func (c Call) Compare(other Call) int {
	return cmp.Or(cmp.Compare(c.Function, other.Function), cmp.Compare(c.Action, other.Action), cmp.Compare(c.Resource, other.Resource))
}

// Recorder is a set of calls.
type Recorder struct {
	functionsByKey map[string]string
	logicalIDs     map[string]string
	runAccessKey   string
	onChange       func()

	mu   sync.Mutex
	seen map[Call]bool
}

// New makes an empty Recorder. callers gives the function of an access key, and resources the logical id of a table's or a
// secret's name. A call under another key is passed on, and not recorded. run is the access key under which the table
// service sees every caller: some engines keep the data of each key apart. noted is called when the set has grown.
func New(functionsByKey, logicalIDs map[string]string, run string, onChange func()) *Recorder {
	return &Recorder{functionsByKey: functionsByKey, logicalIDs: logicalIDs, runAccessKey: run, onChange: onChange, seen: map[Call]bool{}}
}

// Calls is the set, in order.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Keys(r.seen), Call.Compare)
}

// FileName is the name of the record in a run's folder.
const FileName = "aws-calls.json"

// Write replaces a file with the set as it is now.
func (r *Recorder) Write(path string) error {
	text, err := json.MarshalIndent(r.Calls(), "", "  ")
	if err != nil {
		return err
	}
	return file.Replace(path, append(text, '\n'))
}

// Read reads what Write wrote.
func Read(path string) ([]Call, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []Call
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// addCalls adds calls to the set.
func (r *Recorder) addCalls(function string, permissions []permission) {
	changed := false
	r.mu.Lock()
	for _, p := range permissions {
		call := Call{Function: function, Action: p.action, Resource: r.logicalResource(p)}
		changed = changed || !r.seen[call]
		r.seen[call] = true
	}
	r.mu.Unlock()
	if changed {
		r.onChange()
	}
}

// logicalResource is a resource as the template calls it.
func (r *Recorder) logicalResource(p permission) string {
	name := p.resource
	if id, known := r.logicalIDs[name]; known {
		name = id
	}
	if p.index != "" {
		return name + "/index/" + p.index
	}
	return name
}

// callingFunction is the function that signed a request; "" for anybody else.
func (r *Recorder) callingFunction(request *http.Request) string {
	return r.functionsByKey[accessKeyOf(request.Header)]
}

// accessKeyOf is the key that a request is signed with: ... Credential=<key>/<date>/<region>/<service>/aws4_request, ...
func accessKeyOf(header http.Header) string {
	_, rest, found := strings.Cut(header.Get("Authorization"), "Credential=")
	key, _, terminated := strings.Cut(rest, "/")
	if !found || !terminated {
		return ""
	}
	return key
}
