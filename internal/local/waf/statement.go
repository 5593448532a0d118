package waf

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

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
	Field           fieldToMatch `yaml:"FieldToMatch"`
	Position        string       `yaml:"PositionalConstraint"`
	SearchString    string       `yaml:"SearchString"`
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

// known reports whether this package supports the field.
func (f fieldToMatch) known() bool {
	return f.URIPath != nil || f.Method != nil || f.SingleHeader != nil
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
	case s.ByteMatch != nil && s.ByteMatch.Field.known() &&
		slices.Contains([]string{"CONTAINS", "STARTS_WITH", "EXACTLY"}, s.ByteMatch.Position):
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
	case s.SizeConstraint != nil:
		return bodyBytes > s.SizeConstraint.Size
	}
	return false
}

func (b *byteMatch) matches(r *http.Request) bool {
	text := r.URL.Path // decoded, as URL_DECODE does
	switch {
	case b.Field.Method != nil:
		text = r.Method
	case b.Field.SingleHeader != nil:
		text = r.Header.Get(b.Field.SingleHeader.Name)
	}
	for _, transformation := range b.Transformations {
		if transformation.Type == "LOWERCASE" {
			text = strings.ToLower(text)
		}
	}
	switch b.Position {
	case "CONTAINS":
		return strings.Contains(text, b.SearchString)
	case "STARTS_WITH":
		return strings.HasPrefix(text, b.SearchString)
	}
	return text == b.SearchString
}
