package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// dynamoStub stands in for DynamoDB: PutItem with the few conditions that the stores write, GetItem, and a Query that finds
// nothing. It counts its calls by operation and answers each after a fixed delay. Whatever else it is asked is an error
// of the whole run.
type dynamoStub struct {
	delay time.Duration

	mu    sync.Mutex
	items map[string]item // by table and partition key
	calls map[string]int
	err   error
}

// item is an item as the wire has it: attributes by name, {"S":"text"} or {"N":"1"}.
type item map[string]map[string]json.RawMessage

// tableRequest has the fields of the three operations.
type tableRequest struct {
	TableName                 string
	Item                      item
	Key                       item
	ConditionExpression       string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues item
}

func newDynamoStub(delay time.Duration) *dynamoStub {
	return &dynamoStub{delay: delay, items: map[string]item{}, calls: map[string]int{}}
}

// ServeHTTP speaks the service's JSON 1.0 protocol. The checksum is not an ornament: without it the SDK drops the
// connection after each answer.
func (t *dynamoStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has gone
	}
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(w, "healthy")
		return
	}
	time.Sleep(t.delay)
	status, response := t.handle(r.Header.Get("X-Amz-Target"), body)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(response)), 10))
	w.Header().Set("X-Amzn-Requestid", "bench")
	w.WriteHeader(status)
	_, _ = w.Write(response)
}

// handle runs one operation.
func (t *dynamoStub) handle(target string, body []byte) (int, []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, operation, _ := strings.Cut(target, ".")
	t.calls[operation]++
	var in tableRequest
	err := json.Unmarshal(body, &in)
	var out any
	status := http.StatusOK
	switch {
	case err != nil:
	case operation == "GetItem":
		out = map[string]any{"Item": t.items[itemKey(in.TableName, in.Key)]}
	case operation == "Query":
		out = map[string]any{"Items": []any{}, "Count": 0, "ScannedCount": 0}
	case operation == "PutItem":
		status, out, err = t.put(in)
	default:
		err = fmt.Errorf("operation %q", target)
	}
	if err != nil {
		t.err = fmt.Errorf("the stand-in of DynamoDB cannot answer: %w", err)
		return http.StatusInternalServerError, []byte(`{"__type":"InternalServerError"}`)
	}
	response, _ := json.Marshal(out) // maps of plain values
	return status, response
}

// put writes an item if its condition holds; otherwise it answers with the item that is there, as ALL_OLD asks.
func (t *dynamoStub) put(in tableRequest) (int, any, error) {
	key := itemKey(in.TableName, in.Item)
	old := t.items[key]
	holds, err := in.conditionHolds(old)
	if err != nil {
		return 0, nil, err
	}
	if !holds {
		refusal := map[string]any{
			"__type":  "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
			"message": "The conditional request failed",
		}
		if old != nil {
			refusal["Item"] = old
		}
		return http.StatusBadRequest, refusal, nil
	}
	t.items[key] = in.Item
	return http.StatusOK, map[string]any{}, nil
}

// conditionHolds evaluates a condition: clauses joined by OR, each attribute_not_exists(name) or a comparison by = or <=.
func (in tableRequest) conditionHolds(old item) (bool, error) {
	if in.ConditionExpression == "" {
		return true, nil
	}
	for clause := range strings.SplitSeq(in.ConditionExpression, " OR ") {
		if name, found := strings.CutPrefix(clause, "attribute_not_exists("); found {
			if _, exists := old[in.resolveName(strings.TrimSuffix(name, ")"))]; !exists {
				return true, nil
			}
			continue
		}
		terms := strings.Fields(clause)
		if len(terms) != 3 {
			return false, fmt.Errorf("condition %q", in.ConditionExpression)
		}
		holds, err := compareAttributes(old[in.resolveName(terms[0])], terms[1], in.ExpressionAttributeValues[terms[2]])
		if err != nil || holds {
			return holds, err
		}
	}
	return false, nil
}

// resolveName resolves a placeholder.
func (in tableRequest) resolveName(placeholder string) string {
	if strings.HasPrefix(placeholder, "#") {
		return in.ExpressionAttributeNames[placeholder]
	}
	return placeholder
}

// compareAttributes compares two attributes of one type; an absent one compares with nothing.
func compareAttributes(left map[string]json.RawMessage, operator string, right map[string]json.RawMessage) (bool, error) {
	for kind, a := range left {
		b, same := right[kind]
		switch {
		case !same:
			return false, nil
		case operator == "=":
			return bytes.Equal(a, b), nil
		case operator == "<=" && kind == "N":
			x, err := strconv.ParseInt(strings.Trim(string(a), `"`), 10, 64)
			if err != nil {
				return false, err
			}
			y, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
			return x <= y, err
		default:
			return false, fmt.Errorf("comparison %s of %s", operator, kind)
		}
	}
	return false, nil
}

// itemKey is where an item stands.
func itemKey(name string, of item) string { return name + "/" + string(of["pk"]["S"]) }

// seedItem puts an item of texts into a table.
func (t *dynamoStub) seedItem(name string, attributes map[string]string) {
	seeded := item{}
	for attribute, text := range attributes {
		quoted, _ := json.Marshal(text) // a string always marshals
		seeded[attribute] = map[string]json.RawMessage{"S": quoted}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items[itemKey(name, seeded)] = seeded
}

// drainCalls gives the calls since the last take, by operation, and what went wrong.
func (t *dynamoStub) drainCalls() (map[string]int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := t.calls
	t.calls = map[string]int{}
	return calls, t.err
}
