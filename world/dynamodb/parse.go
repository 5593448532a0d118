package dynamodb

import (
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The kinds of expressions.
const (
	kindCondition  = "ConditionExpression"
	kindFilter     = "FilterExpression"
	kindKey        = "KeyConditionExpression"
	kindUpdate     = "UpdateExpression"
	kindProjection = "ProjectionExpression"
)

// tokenPattern matches one token after white space.
var tokenPattern = regexp.MustCompile(`^\s*([#:]?[A-Za-z0-9_]+|<>|<=|>=|[-=<>(),+.\[\]])`)

// parser reads one expression by recursive descent.
type parser struct {
	text   string
	tokens []string
	result expression
}

// parse parses an expression. It refuses a syntax error.
func parse(kind, text string) *expression {
	p := &parser{text: text, result: expression{equalities: map[string]string{}}}
	rest := text
	for strings.TrimSpace(rest) != "" {
		found := tokenPattern.FindStringSubmatch(rest)
		if found == nil {
			p.fail()
		}
		p.tokens = append(p.tokens, found[1])
		rest = rest[len(found[0]):]
	}
	switch kind {
	case kindUpdate:
		p.update()
	case kindProjection:
		p.result.paths = p.pathList()
	default:
		p.result.condition = p.disjunction()
	}
	if len(p.tokens) > 0 {
		p.fail()
	}
	return &p.result
}

func (p *parser) fail() { refuse("a syntax error in %q", p.text) }

// peek returns the next token in upper case, "" at the end.
func (p *parser) peek() string {
	return strings.ToUpper(p.peekRaw())
}

func (p *parser) next() string {
	if len(p.tokens) == 0 {
		p.fail()
	}
	token := p.tokens[0]
	p.tokens = p.tokens[1:]
	return token
}

// accept consumes a token if it is the next one.
func (p *parser) accept(token string) bool {
	if p.peek() != token {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(token string) {
	if !p.accept(token) {
		p.fail()
	}
}

func (p *parser) disjunction() predicate {
	left := p.conjunction()
	for p.accept("OR") {
		first, second := left, p.conjunction()
		left = func(s *scope) bool { return first(s) || second(s) }
	}
	return left
}

func (p *parser) conjunction() predicate {
	left := p.term()
	for p.accept("AND") {
		first, second := left, p.term()
		left = func(s *scope) bool { return first(s) && second(s) }
	}
	return left
}

// term reads a condition in parentheses, a function or a comparison.
func (p *parser) term() predicate {
	if p.accept("(") {
		inner := p.disjunction()
		p.expect(")")
		return inner
	}
	if len(p.tokens) > 1 && p.tokens[1] == "(" {
		return p.function()
	}
	return p.comparison()
}

// function reads a function that is a condition.
func (p *parser) function() predicate {
	name := p.next()
	p.expect("(")
	path := p.path()
	var condition predicate
	switch name {
	case "attribute_not_exists":
		condition = func(s *scope) bool { return s.item[s.name(path)] == nil }
	case "begins_with":
		p.expect(",")
		prefix := p.operand()
		condition = func(s *scope) bool { return hasPrefix(s.item[s.name(path)], prefix(s)) }
	default:
		notModelled("the function %s", name)
	}
	p.expect(")")
	return condition
}

func (p *parser) comparison() predicate {
	before := p.peekRaw()
	left := p.operand()
	operator := strings.ToUpper(p.next())
	value := p.peekRaw()
	right := p.operand()
	switch operator {
	case "=":
		p.result.equalities[before] = value
		return func(s *scope) bool {
			x, y := left(s), right(s)
			return x != nil && y != nil && equalValues(x, y)
		}
	case "<", "<=", ">", ">=":
		return ordered(left, right, func(order int) bool {
			return order < 0 && operator[0] == '<' || order > 0 && operator[0] == '>' ||
				order == 0 && len(operator) == 2
		})
	case "BETWEEN":
		p.expect("AND")
		upper := p.peekRaw()
		last := p.operand()
		if strings.HasPrefix(value, ":") && strings.HasPrefix(upper, ":") {
			p.result.ranges = append(p.result.ranges, [2]string{value, upper})
		}
		atLeast := ordered(left, right, func(order int) bool { return order >= 0 })
		atMost := ordered(left, last, func(order int) bool { return order <= 0 })
		return func(s *scope) bool { return atLeast(s) && atMost(s) }
	case "IN", "<>":
		notModelled("the operator %s", operator)
	}
	p.fail()
	return nil
}

// ordered compares two operands. An absent one, or different types, give false.
func ordered(left, right operand, matches func(order int) bool) predicate {
	return func(s *scope) bool {
		order, comparable := compareValues(left(s), right(s))
		return comparable && matches(order)
	}
}

func (p *parser) peekRaw() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

// operand reads a path or a ":value".
func (p *parser) operand() operand {
	if token := p.peekRaw(); strings.HasPrefix(token, ":") {
		p.next()
		p.mention(&p.result.values, token)
		return func(s *scope) types.AttributeValue { return s.values[token] }
	}
	path := p.path()
	return func(s *scope) types.AttributeValue { return s.item[s.name(path)] }
}

// path reads the name of a top-level attribute, or a "#name".
func (p *parser) path() string {
	path := p.next()
	if !strings.ContainsAny(path[:1], "#_") && !isLetter(path[0]) {
		p.fail()
	}
	if next := p.peek(); next == "." || next == "[" {
		notModelled("a path into the attribute %s", path)
	}
	if strings.HasPrefix(path, "#") {
		p.mention(&p.result.names, path)
	}
	return path
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func (p *parser) mention(list *[]string, name string) {
	if !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

func (p *parser) pathList() []string {
	paths := []string{p.path()}
	for p.accept(",") {
		paths = append(paths, p.path())
	}
	return paths
}

func (p *parser) update() {
	if !p.accept("SET") {
		notModelled("the update clause %s", p.peek())
	}
	p.assignment()
	for p.accept(",") {
		p.assignment()
	}
}

func (p *parser) assignment() {
	path := p.path()
	p.expect("=")
	value := p.updateOperand()
	if p.accept("+") {
		value = sum(value, p.updateOperand())
	}
	p.result.updates = append(p.result.updates, assignment{path: path, value: value})
}

// sum adds two numbers.
func sum(left, right operand) operand {
	return func(s *scope) types.AttributeValue {
		first, second := left(s), right(s)
		if first == nil || second == nil {
			return nil
		}
		x, xIsNumber := first.(*types.AttributeValueMemberN)
		y, yIsNumber := second.(*types.AttributeValueMemberN)
		if !xIsNumber || !yIsNumber {
			refuse("an operand of a sum is not a number")
		}
		return &types.AttributeValueMemberN{Value: addNumbers(x.Value, y.Value)}
	}
}

// updateOperand reads an operand, or if_not_exists(path, operand).
func (p *parser) updateOperand() operand {
	if len(p.tokens) < 2 || p.tokens[1] != "(" {
		return p.operand()
	}
	if name := p.next(); name != "if_not_exists" {
		notModelled("the function %s in an update", name)
	}
	p.expect("(")
	path := p.path()
	p.expect(",")
	otherwise := p.operand()
	p.expect(")")
	return func(s *scope) types.AttributeValue {
		if value := s.item[s.name(path)]; value != nil {
			return value
		}
		return otherwise(s)
	}
}

// parse returns the expression of a source, nil for none. It parses each text once, also for the clones.
func (db *Database) parse(from source) *expression {
	if from.text == nil {
		return nil
	}
	key := [2]string{from.kind, *from.text}
	found, known := db.parsed.Load(key)
	if !known {
		found, _ = db.parsed.LoadOrStore(key, parse(from.kind, *from.text))
	}
	return found.(*expression)
}
