// Package strictjson reads JSON that has only one interpretation, and keeps the first fault in the order in which the
// caller reads the parts.
//
// It does not know the fields of the specification. Its invariant: Parse accepts only valid UTF-8 with one value,
// without duplicate keys and lone surrogates, of at most MaxDepth levels. Names match with their case and numbers keep
// their text. The caller limits the size of a body. Time and memory are proportional to that size for any content. A
// body becomes one flat list of nodes that point into its text, and no path is built before a fault.
package strictjson

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
)

// MaxDepth is the limit of nested objects and arrays, the root included.
const MaxDepth = 16

// BodyPart is the part that faults of the whole body name.
const BodyPart = "body"

// The causes of a refused body, for the log.
var (
	errNotUTF8       = logsafe.New("not UTF-8")
	errNotJSON       = logsafe.New("not one JSON value")
	errLoneSurrogate = logsafe.New("half of a surrogate pair")
	errNotObject     = logsafe.New("root is not an object")
	errTooDeep       = logsafe.New("too many levels")
	errDuplicateKey  = logsafe.New("key twice in an object")
)

// Parse reads a body whose root is an object. Every error is a *fault.Fault of kind InvalidPart. Its part is "body", or
// the path of a duplicate key ("amountTransaction.referenceCode", elements of arrays as "list[0].key").
func Parse(body []byte) (*Reader, error) {
	text := string(body)
	switch {
	case len(text) > maxBytes:
		return nil, invalidBody(errTooLong)
	case !utf8.ValidString(text):
		return nil, invalidBody(errNotUTF8)
	case !json.Valid(body):
		return nil, invalidBody(errNotJSON)
	case hasLoneSurrogate(text):
		return nil, invalidBody(errLoneSurrogate)
	}
	p := parser{document: document{text: text, nodes: make([]node, 0, countNodes(text))}}
	p.skipSpaces()
	if failure := p.readValue(); failure != nil {
		return nil, failure
	}
	if p.nodes[0].kind != '{' {
		return nil, invalidBody(errNotObject)
	}
	return &Reader{document: p.document}, nil
}

func invalidBody(cause error) *fault.Fault {
	return &fault.Fault{Kind: fault.InvalidPart, Part: BodyPart, Cause: cause}
}

// parser reads valid JSON from left to right.
type parser struct {
	document
	position int
	path     [MaxDepth]step // from the root to the value that is read
	depth    int
}

// step leads from an object or an array to one of its values.
type step struct {
	key     string
	index   int
	inArray bool
}

// readValue reads the value at the position, and the spaces after it.
func (p *parser) readValue() *fault.Fault {
	index := len(p.nodes)
	p.openNode()
	var failure *fault.Fault
	switch p.nodes[index].kind {
	case '{':
		failure = p.readNested(p.readMembers)
	case '[':
		failure = p.readNested(p.readElements)
	case '"':
		p.position = endOfText(p.text, p.position)
	default:
		p.position = endOfLiteral(p.text, p.position)
	}
	p.closeNode(index)
	p.skipSpaces()
	return failure
}

// readNested reads the items of an object or an array, and its brackets.
func (p *parser) readNested(readItems func() *fault.Fault) *fault.Fault {
	if p.depth == MaxDepth {
		return invalidBody(errTooDeep)
	}
	p.depth++
	p.skipCharacter()
	failure := readItems()
	p.depth--
	p.position++ // the closing bracket; spaces after it are readValue's
	return failure
}

func (p *parser) readMembers() *fault.Fault {
	keys := keySet{}
	for p.text[p.position] != '}' {
		index := len(p.nodes)
		p.openNode()
		p.position = endOfText(p.text, p.position)
		p.closeNode(index)
		p.skipSpaces()
		p.skipCharacter() // the colon
		key := p.decodedText(index)
		p.path[p.depth-1] = step{key: key}
		if !keys.add(key) {
			return p.duplicateKey()
		}
		if failure := p.readValue(); failure != nil {
			return failure
		}
		p.skipComma()
	}
	return nil
}

func (p *parser) readElements() *fault.Fault {
	for index := 0; p.text[p.position] != ']'; index++ {
		p.path[p.depth-1] = step{index: index, inArray: true}
		if failure := p.readValue(); failure != nil {
			return failure
		}
		p.skipComma()
	}
	return nil
}

// openNode begins the node of the value at the position; closeNode ends it.
func (p *parser) openNode() {
	p.nodes = append(p.nodes, node{kind: p.text[p.position], start: uint32(p.position)}) //nolint:gosec // maxBytes
}

func (p *parser) closeNode(index int) {
	p.nodes[index].end, p.nodes[index].next = uint32(p.position), uint32(len(p.nodes)) //nolint:gosec // maxBytes
}

func (p *parser) skipSpaces() {
	for p.position < len(p.text) && strings.IndexByte(jsonSpaces, p.text[p.position]) >= 0 {
		p.position++
	}
}

// skipCharacter skips a bracket, a colon or a comma, and the spaces after it.
func (p *parser) skipCharacter() {
	p.position++
	p.skipSpaces()
}

func (p *parser) skipComma() {
	if p.text[p.position] == ',' {
		p.skipCharacter()
	}
}

// duplicateKey makes the fault of the key at the end of the path.
func (p *parser) duplicateKey() *fault.Fault {
	var path []byte
	for _, s := range p.path[:p.depth] {
		if s.inArray {
			path = append(strconv.AppendInt(append(path, '['), int64(s.index), 10), ']')
			continue
		}
		if len(path) > 0 {
			path = append(path, '.')
		}
		path = append(path, s.key...)
	}
	return &fault.Fault{Kind: fault.InvalidPart, Part: string(path), ClientKey: true, Cause: errDuplicateKey}
}

// maxPairedKeys is the number of keys that are compared pair by pair. More keys get a map.
const maxPairedKeys = 8

// keySet is the set of keys of one object.
type keySet struct {
	few   [maxPairedKeys]string
	count int
	many  map[string]struct{}
}

// add adds a key and reports whether it is new.
func (s *keySet) add(key string) bool {
	if s.count < maxPairedKeys {
		s.few[s.count] = key
		s.count++
		return !slices.Contains(s.few[:s.count-1], key)
	}
	if s.many == nil {
		s.many = make(map[string]struct{}, 2*maxPairedKeys)
		for _, k := range s.few {
			s.many[k] = struct{}{}
		}
	}
	before := len(s.many)
	s.many[key] = struct{}{}
	return len(s.many) > before
}
