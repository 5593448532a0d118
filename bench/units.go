package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// units are what DynamoDB bills for calls: write units of the tables and of the two indexes, and read units.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
type units struct {
	tables, day, due int
	reads            float64
}

func (u units) plus(other units) units {
	return units{u.tables + other.tables, u.day + other.day, u.due + other.due, u.reads + other.reads}
}

// writes is the number of all write units.
func (u units) writes() int { return u.tables + u.day + u.due }

// unitCounter passes calls of DynamoDB on, and adds up their units. It lets the database report them: per index, with
// two units for an entry of an index that moves. For a write whose condition is false it counts the stored item.
// unitCounter is safe for concurrent use.
type unitCounter struct {
	next http.Handler

	mu    sync.Mutex
	units units
	err   error // the first response that could not be read
}

// countedOperations are the operations whose units are counted, with whether they write.
var countedOperations = map[string]bool{
	"PutItem": true, "UpdateItem": true, "DeleteItem": true, "GetItem": false, "Query": false,
}

// ServeHTTP implements http.Handler.
func (c *unitCounter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	writes, counted := countedOperations[operation]
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	if counted {
		body = append([]byte(`{"ReturnConsumedCapacity":"INDEXES",`), bytes.TrimPrefix(body, []byte("{"))...)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	copied := &copyingWriter{ResponseWriter: w}
	c.next.ServeHTTP(copied, r)
	if counted {
		c.add(copied.body.Bytes(), writes)
	}
}

// copyingWriter keeps a copy of a response's body.
type copyingWriter struct {
	http.ResponseWriter

	body bytes.Buffer
}

// Write implements http.ResponseWriter.
func (w *copyingWriter) Write(text []byte) (int, error) {
	w.body.Write(text)
	return w.ResponseWriter.Write(text)
}

// consumed is the part of a response that has its units, or the item that made a condition false.
type consumed struct {
	ConsumedCapacity *struct {
		CapacityUnits          float64
		Table                  struct{ CapacityUnits float64 }
		GlobalSecondaryIndexes map[string]struct{ CapacityUnits float64 }
	}
	Item map[string]value
}

// value is an attribute in DynamoDB's JSON.
type value struct {
	S, N string
	B    []byte
	BOOL *bool
}

func (c *unitCounter) add(response []byte, writes bool) {
	var found consumed
	err := json.Unmarshal(response, &found)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch capacity := found.ConsumedCapacity; {
	case err != nil:
		c.err = fmt.Errorf("a response of DynamoDB: %w", err)
	case capacity == nil:
		c.units.tables += writeUnits(itemBytes(found.Item))
	case !writes:
		c.units.reads += capacity.CapacityUnits
	default:
		c.units.tables += int(capacity.Table.CapacityUnits)
		c.units.day += int(capacity.GlobalSecondaryIndexes["day"].CapacityUnits)
		c.units.due += int(capacity.GlobalSecondaryIndexes["due"].CapacityUnits)
	}
}

// drain returns the units since the last drain.
func (c *unitCounter) drain() (units, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.units
	c.units = units{}
	return found, c.err
}

// writeUnits is what one write of an item costs: a unit for each KB, rounded up.
func writeUnits(bytes int) int { return max(1, (bytes+1023)/1024) }

// itemBytes is an item's size as DynamoDB counts it, or a little less.
func itemBytes(item map[string]value) int {
	bytes := 0
	for name, v := range item {
		bytes += len(name) + len(v.S) + len(v.B)
		if v.N != "" {
			bytes += (len(v.N)+1)/2 + 1
		}
		if v.BOOL != nil {
			bytes++
		}
	}
	return bytes
}
