package main

import (
	"fmt"
	"strings"
)

// allowed tells whether an SPDX expression is: one side of each OR, both sides of each AND. A word that is no operator
// is a licence, with its exception where WITH follows.
func allowed(expression string, granted func(licence string) bool) (bool, error) {
	spaced := strings.NewReplacer("(", " ( ", ")", " ) ").Replace(expression)
	p := parser{left: strings.Fields(spaced), granted: granted}
	ok, err := p.either()
	if err == nil && len(p.left) > 0 {
		err = fmt.Errorf("%q does not end where it should", expression)
	}
	return ok && err == nil, err
}

// parser reads an expression from left to right and judges as it goes.
type parser struct {
	left    []string
	granted func(string) bool
}

// either reads terms with OR between them.
func (p *parser) either() (bool, error) {
	ok, err := p.both()
	for err == nil && p.took("OR") {
		var other bool
		other, err = p.both()
		ok = ok || other
	}
	return ok, err
}

// both reads terms with AND between them, which binds closer than OR.
func (p *parser) both() (bool, error) {
	ok, err := p.one()
	for err == nil && p.took("AND") {
		var other bool
		other, err = p.one()
		ok = ok && other
	}
	return ok, err
}

// one reads a licence or an expression in brackets.
func (p *parser) one() (bool, error) {
	if p.took("(") {
		ok, err := p.either()
		if err == nil && !p.took(")") {
			err = fmt.Errorf("a bracket is not closed")
		}
		return ok, err
	}
	licence, err := p.word()
	if err == nil && p.took("WITH") {
		var exempt string
		exempt, err = p.word()
		licence += " WITH " + exempt
	}
	return err == nil && p.granted(licence), err
}

// word takes one identifier.
func (p *parser) word() (string, error) {
	if len(p.left) == 0 {
		return "", fmt.Errorf("a licence is missing at the end")
	}
	word := p.left[0]
	if strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-+") != "" {
		return "", fmt.Errorf("%q is no licence's identifier", word)
	}
	p.left = p.left[1:]
	return word, nil
}

// took takes an operator if it is next.
func (p *parser) took(operator string) bool {
	if len(p.left) == 0 || !strings.EqualFold(p.left[0], operator) {
		return false
	}
	p.left = p.left[1:]
	return true
}
