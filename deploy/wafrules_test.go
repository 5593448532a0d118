package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"mobilegateway/world/template/node"
)

// wafRequest is what the rules of deploy/waf.yaml inspect. The path is as it was sent, with its escapes.
type wafRequest struct {
	method, path, authorization string
	bodyBytes                   int64
}

// wafMatcher reports whether a request matches a statement.
type wafMatcher func(wafRequest) bool

// wafRule is a rule. Its fields are those that deploy/waf.yaml uses: another one fails the test.
type wafRule struct {
	Name             string `yaml:"Name"`
	Priority         int    `yaml:"Priority"`
	VisibilityConfig any    `yaml:"VisibilityConfig"`
	OverrideAction   any    `yaml:"OverrideAction"` // of AWS's own rule group
	Action           struct {
		Block struct {
			Response struct {
				Code    int                 `yaml:"ResponseCode"`
				BodyKey string              `yaml:"CustomResponseBodyKey"`
				Headers []map[string]string `yaml:"ResponseHeaders"`
			} `yaml:"CustomResponse"`
		} `yaml:"Block"`
	} `yaml:"Action"`
	Statement wafStatement `yaml:"Statement"`

	matches wafMatcher
}

// wafStatement is a statement; one of its fields is set.
type wafStatement struct {
	Rate *struct {
		Key       string        `yaml:"AggregateKeyType"`
		Seconds   int           `yaml:"EvaluationWindowSec"`
		Limit     string        `yaml:"Limit"` // the name of a parameter
		ScopeDown *wafStatement `yaml:"ScopeDownStatement"`
	} `yaml:"RateBasedStatement"`
	And *struct {
		Statements []wafStatement `yaml:"Statements"`
	} `yaml:"AndStatement"`
	Not *struct {
		Statement wafStatement `yaml:"Statement"`
	} `yaml:"NotStatement"`
	Bytes *struct {
		wafInspected `yaml:",inline"`
		Position     string `yaml:"PositionalConstraint"`
		Search       string `yaml:"SearchString"`
	} `yaml:"ByteMatchStatement"`
	Regex *struct {
		wafInspected `yaml:",inline"`
		Regex        *regexp.Regexp `yaml:"RegexString"` // in the syntax that Go and AWS WAF have in common
	} `yaml:"RegexMatchStatement"`
	Size *struct {
		wafInspected `yaml:",inline"`
		Operator     string `yaml:"ComparisonOperator"`
		Size         int64  `yaml:"Size"`
	} `yaml:"SizeConstraintStatement"`
	Managed any `yaml:"ManagedRuleGroupStatement"`
}

// wafInspected is the part of a request that a statement inspects.
type wafInspected struct {
	Field           map[string]map[string]string `yaml:"FieldToMatch"`
	Transformations []struct {
		Priority int    `yaml:"Priority"`
		Type     string `yaml:"Type"`
	} `yaml:"TextTransformations"`
}

// loadWAFRules reads the rules of a web ACL in the order of their priority. An unknown field is an error.
func loadWAFRules(text []byte) ([]wafRule, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	list, err := yaml.Marshal(node.At(root.Content[0], "Resources", "WebAcl", "Properties", "Rules"))
	if err != nil {
		return nil, err
	}
	var rules []wafRule
	decoder := yaml.NewDecoder(bytes.NewReader(list))
	decoder.KnownFields(true)
	if err := decoder.Decode(&rules); err != nil {
		return nil, err
	}
	if len(rules) == 0 {
		return nil, errors.New("the web ACL has no rule")
	}
	for i := range rules {
		if rules[i].matches, err = rules[i].compile(); err != nil {
			return nil, fmt.Errorf("the rule %s: %w", rules[i].Name, err)
		}
	}
	slices.SortFunc(rules, func(a, b wafRule) int { return cmp.Compare(a.Priority, b.Priority) })
	return rules, nil
}

// compile returns what a rule matches. AWS's own rule group matches nothing here.
func (r wafRule) compile() (wafMatcher, error) {
	switch s := r.Statement; {
	case s.Managed != nil:
		return func(wafRequest) bool { return false }, nil
	case s.Rate != nil && s.Rate.ScopeDown == nil:
		return func(wafRequest) bool { return true }, nil
	case s.Rate != nil:
		return s.Rate.ScopeDown.compile()
	}
	return r.Statement.compile()
}

// compile returns what a statement matches. A statement with none or two of its fields is an error.
func (s *wafStatement) compile() (wafMatcher, error) {
	var found []wafMatcher
	var failed []error
	add := func(m wafMatcher, err error) { found, failed = append(found, m), append(failed, err) }
	if s.And != nil {
		add(compileAll(s.And.Statements))
	}
	if s.Not != nil {
		inner, err := s.Not.Statement.compile()
		add(func(r wafRequest) bool { return !inner(r) }, err)
	}
	if b := s.Bytes; b != nil {
		text, err := b.compile()
		if b.Position != "EXACTLY" && b.Position != "STARTS_WITH" {
			err = errors.Join(err, fmt.Errorf("the position %q", b.Position))
		}
		add(func(r wafRequest) bool {
			return text(r) == b.Search || b.Position == "STARTS_WITH" && strings.HasPrefix(text(r), b.Search)
		}, err)
	}
	if s.Regex != nil {
		text, err := s.Regex.compile()
		add(func(r wafRequest) bool { return s.Regex.Regex.MatchString(text(r)) }, err)
	}
	if s.Size != nil {
		var err error
		// WAF inspects the first 64 KiB of a body. MATCH lets a larger one match.
		inspected := fmt.Sprint(s.Size.Operator, s.Size.wafInspected)
		if inspected != "GT{map[Body:map[OversizeHandling:MATCH]] [{0 NONE}]}" {
			err = fmt.Errorf("the size %s", inspected)
		}
		add(func(r wafRequest) bool { return r.bodyBytes > s.Size.Size }, err)
	}
	if len(found) != 1 || s.Rate != nil || s.Managed != nil {
		return nil, errors.New("not one supported statement")
	}
	return found[0], failed[0]
}

// compileAll returns whether a request matches all statements.
func compileAll(statements []wafStatement) (wafMatcher, error) {
	var all []wafMatcher
	for i := range statements {
		one, err := statements[i].compile()
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return func(r wafRequest) bool {
		return !slices.ContainsFunc(all, func(one wafMatcher) bool { return !one(r) })
	}, nil
}

// compile returns the inspected text of a request, transformed.
func (i wafInspected) compile() (func(wafRequest) string, error) {
	lower := false
	for _, t := range i.Transformations {
		if t.Type != "NONE" && t.Type != "LOWERCASE" {
			return nil, fmt.Errorf("the transformation %s", t.Type)
		}
		lower = lower || t.Type == "LOWERCASE"
	}
	fields := map[string]func(wafRequest) string{
		"map[UriPath:map[]]":                        func(r wafRequest) string { return r.path },
		"map[Method:map[]]":                         func(r wafRequest) string { return r.method },
		"map[SingleHeader:map[Name:authorization]]": func(r wafRequest) string { return r.authorization },
	}
	text, known := fields[fmt.Sprint(i.Field)]
	if !known {
		return nil, fmt.Errorf("the field %v", i.Field)
	}
	return func(r wafRequest) string {
		if lower {
			return strings.ToLower(text(r))
		}
		return text(r)
	}, nil
}

// mustLoadWAFRules reads the rules of deploy/waf.yaml.
func mustLoadWAFRules(t *testing.T) []wafRule {
	t.Helper()
	rules, err := loadWAFRules(read(t, "deploy/waf.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// matchedRules returns the names of the rules that a request matches, in their order. A rate counts the request. A rule
// without a rate blocks it, and is the last.
func matchedRules(rules []wafRule, r wafRequest) string {
	var names []string
	for _, rule := range rules {
		if !rule.matches(r) {
			continue
		}
		names = append(names, rule.Name)
		if rule.Statement.Rate == nil {
			break
		}
	}
	return strings.Join(names, " ")
}
