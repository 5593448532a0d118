// Package waf applies the rules of deploy/waf.yaml in the local run, where AWS WAF does on AWS.
//
// It supports the statements that the template uses and fails for others. It skips AWS's own rule groups. It counts
// each request at once; AWS counts some seconds late. The invariant: a request that WAF would block by a rule that this
// package supports never reaches a function.
package waf

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxRememberedKeys bounds the addresses that a rate rule remembers.
const maxRememberedKeys = 10_000

// Response is the response to a blocked request.
type Response struct {
	Status int
	Header map[string]string
	Body   string
}

// ACL is the web ACL. It is safe for concurrent use.
type ACL struct {
	now    func() time.Time
	bodies map[string]responseBody
	rules  []rule

	mutex   sync.Mutex
	windows map[string]map[string]*window // by rule and key
}

type rule struct {
	Name      string    `yaml:"Name"`
	Priority  int       `yaml:"Priority"`
	Statement statement `yaml:"Statement"`
	Action    struct {
		Block struct {
			CustomResponse customResponse `yaml:"CustomResponse"`
		} `yaml:"Block"`
	} `yaml:"Action"`
}

type customResponse struct {
	ResponseCode          int    `yaml:"ResponseCode"`
	CustomResponseBodyKey string `yaml:"CustomResponseBodyKey"`
	ResponseHeaders       []struct {
		Name  string `yaml:"Name"`
		Value string `yaml:"Value"`
	} `yaml:"ResponseHeaders"`
}

// parameters are the template's parameters.
type parameters struct {
	Parameters map[string]struct {
		Default string `yaml:"Default"`
	} `yaml:"Parameters"`
}

// document is the part of the template that this package reads, after its references are replaced.
type document struct {
	Resources struct {
		WebACL struct {
			Properties struct {
				Bodies map[string]responseBody `yaml:"CustomResponseBodies"`
				Rules  []rule                  `yaml:"Rules"`
			} `yaml:"Properties"`
		} `yaml:"WebAcl"`
	} `yaml:"Resources"`
}

type responseBody struct {
	Content string `yaml:"Content"`
}

// Load reads the web ACL of a template, with the defaults of its parameters. now is the clock of the rates.
func Load(path string, now func() time.Time) (*ACL, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	acl, err := parse(text, now)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return acl, nil
}

func parse(text []byte, now func() time.Time) (*ACL, error) {
	var root yaml.Node
	var given parameters
	var d document
	if err := errors.Join(yaml.Unmarshal(text, &root), yaml.Unmarshal(text, &given)); err != nil {
		return nil, err
	}
	replaceReferences(&root, func(name string) string { return given.Parameters[name].Default })
	if err := root.Decode(&d); err != nil {
		return nil, err
	}
	acl := &ACL{now: now, bodies: d.Resources.WebACL.Properties.Bodies, windows: map[string]map[string]*window{}}
	for _, r := range d.Resources.WebACL.Properties.Rules {
		if r.Statement.ManagedRuleGroup != nil {
			continue
		}
		if err := r.Statement.validate(); err != nil {
			return nil, fmt.Errorf("the rule %s: %w", r.Name, err)
		}
		acl.rules = append(acl.rules, r)
		acl.windows[r.Name] = map[string]*window{}
	}
	if len(acl.rules) == 0 {
		return nil, errors.New("the template has no rule")
	}
	slices.SortFunc(acl.rules, func(a, b rule) int { return cmp.Compare(a.Priority, b.Priority) })
	return acl, nil
}

// replaceReferences replaces each !Ref by the default of its parameter.
func replaceReferences(n *yaml.Node, defaultOf func(string) string) {
	if n.Tag == "!Ref" {
		n.Value, n.Tag = defaultOf(n.Value), ""
	}
	for _, child := range n.Content {
		replaceReferences(child, defaultOf)
	}
}

// Check counts a request, and returns the response if a rule blocks it; nil otherwise. bodyBytes is the body's length.
func (a *ACL) Check(r *http.Request, bodyBytes int64) *Response {
	for _, rule := range a.rules {
		if a.blocks(rule, r, bodyBytes) {
			return a.response(rule)
		}
	}
	return nil
}

func (a *ACL) blocks(rule rule, r *http.Request, bodyBytes int64) bool {
	rate := rule.Statement.RateBased
	if rate == nil {
		return rule.Statement.matches(r, bodyBytes)
	}
	if rate.ScopeDown != nil && !rate.ScopeDown.matches(r, bodyBytes) {
		return false
	}
	key := ""
	if rate.AggregateKeyType == "IP" {
		key, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	windows := a.windows[rule.Name]
	if windows[key] == nil {
		if len(windows) >= maxRememberedKeys {
			clear(windows)
		}
		windows[key] = &window{start: a.now()}
	}
	return windows[key].add(a.now(), time.Duration(rate.EvaluationWindowSec)*time.Second) > float64(rate.Limit)
}

func (a *ACL) response(rule rule) *Response {
	custom := rule.Action.Block.CustomResponse
	response := &Response{
		Status: cmp.Or(custom.ResponseCode, http.StatusForbidden), Header: map[string]string{},
		Body: a.bodies[custom.CustomResponseBodyKey].Content,
	}
	for _, header := range custom.ResponseHeaders {
		response.Header[header.Name] = header.Value
	}
	return response
}

// window counts the requests of a key. The requests of the window before count by the part of it that the last length
// covers.
type window struct {
	start             time.Time
	previous, current int
}

// add counts a request, and returns how many came within the length.
func (w *window) add(now time.Time, length time.Duration) float64 {
	switch age := now.Sub(w.start); {
	case age >= 2*length:
		*w = window{start: now}
	case age >= length:
		*w = window{start: w.start.Add(length), previous: w.current}
	}
	w.current++
	remaining := 1 - float64(now.Sub(w.start))/float64(length)
	return float64(w.previous)*remaining + float64(w.current)
}

// statement is a statement of WAF; one of its fields is set.
type statement struct {
	RateBased *rateBased `yaml:"RateBasedStatement"`
	And       *struct {
		All []statement `yaml:"Statements"`
	} `yaml:"AndStatement"`
	Not *struct {
		Inner statement `yaml:"Statement"`
	} `yaml:"NotStatement"`
	ByteMatch        *byteMatch      `yaml:"ByteMatchStatement"`
	RegexMatch       *regexMatch     `yaml:"RegexMatchStatement"`
	SizeConstraint   *sizeConstraint `yaml:"SizeConstraintStatement"`
	ManagedRuleGroup *struct{}       `yaml:"ManagedRuleGroupStatement"`
}

type rateBased struct {
	AggregateKeyType    string     `yaml:"AggregateKeyType"`
	EvaluationWindowSec int        `yaml:"EvaluationWindowSec"`
	Limit               int        `yaml:"Limit"`
	ScopeDown           *statement `yaml:"ScopeDownStatement"`
}

type byteMatch struct {
	matchedText  `yaml:",inline"`
	Position     string `yaml:"PositionalConstraint"`
	SearchString string `yaml:"SearchString"`
}

type regexMatch struct {
	matchedText `yaml:",inline"`
	Regex       *regexp.Regexp `yaml:"RegexString"` // in the syntax that Go and AWS WAF have in common
}

// matchedText is the part of a request that a statement compares.
type matchedText struct {
	Field           fieldToMatch `yaml:"FieldToMatch"`
	Transformations []struct {
		Type string `yaml:"Type"`
	} `yaml:"TextTransformations"`
}

type fieldToMatch struct {
	URIPath      *struct{} `yaml:"UriPath"`
	Method       *struct{} `yaml:"Method"`
	SingleHeader *struct {
		Name string `yaml:"Name"`
	} `yaml:"SingleHeader"`
}

// known reports whether this package supports the field and its transformations.
func (m matchedText) known() bool {
	for _, transformation := range m.Transformations {
		if transformation.Type != "NONE" && transformation.Type != "LOWERCASE" {
			return false
		}
	}
	return m.Field.URIPath != nil || m.Field.Method != nil || m.Field.SingleHeader != nil
}

type sizeConstraint struct {
	Operator string `yaml:"ComparisonOperator"`
	Size     int64  `yaml:"Size"`
}

// validate returns an error for a statement that this package does not support.
func (s *statement) validate() error {
	switch {
	case s.RateBased != nil && (s.RateBased.Limit <= 0 || s.RateBased.EvaluationWindowSec <= 0 ||
		!slices.Contains([]string{"IP", "CONSTANT"}, s.RateBased.AggregateKeyType)):
		return errors.New("a rate needs a limit, a window, and IP or CONSTANT")
	case s.RateBased != nil && s.RateBased.ScopeDown == nil:
		return nil
	case s.RateBased != nil:
		return s.RateBased.ScopeDown.validate()
	case s.And != nil:
		var faults []error
		for i := range s.And.All {
			faults = append(faults, s.And.All[i].validate())
		}
		return errors.Join(faults...)
	case s.Not != nil:
		return s.Not.Inner.validate()
	case s.ByteMatch != nil && s.ByteMatch.known() &&
		slices.Contains([]string{"STARTS_WITH", "EXACTLY"}, s.ByteMatch.Position):
		return nil
	case s.RegexMatch != nil && s.RegexMatch.known() && s.RegexMatch.Regex != nil:
		return nil
	case s.SizeConstraint != nil && s.SizeConstraint.Operator == "GT":
		return nil
	}
	return errors.New("the statement is not supported")
}

// matches reports whether a request matches. A rate-based statement is not below another one.
func (s *statement) matches(r *http.Request, bodyBytes int64) bool {
	switch {
	case s.And != nil:
		return !slices.ContainsFunc(s.And.All, func(one statement) bool { return !one.matches(r, bodyBytes) })
	case s.Not != nil:
		return !s.Not.Inner.matches(r, bodyBytes)
	case s.ByteMatch != nil:
		return s.ByteMatch.matches(r)
	case s.RegexMatch != nil:
		return s.RegexMatch.Regex.MatchString(s.RegexMatch.text(r))
	case s.SizeConstraint != nil:
		return bodyBytes > s.SizeConstraint.Size
	}
	return false
}

// text returns the part of a request, transformed. The path is as it was sent, with its escapes.
func (m matchedText) text(r *http.Request) string {
	text := r.URL.EscapedPath()
	switch {
	case m.Field.Method != nil:
		text = r.Method
	case m.Field.SingleHeader != nil:
		text = r.Header.Get(m.Field.SingleHeader.Name)
	}
	for _, transformation := range m.Transformations {
		if transformation.Type == "LOWERCASE" {
			text = strings.ToLower(text)
		}
	}
	return text
}

func (b *byteMatch) matches(r *http.Request) bool {
	text := b.text(r)
	return text == b.SearchString || b.Position == "STARTS_WITH" && strings.HasPrefix(text, b.SearchString)
}
