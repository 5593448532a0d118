package kit

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxCalls is how many calls the log keeps at least.
const maxCalls = 100_000

// callRecord is one call or callback, without secrets.
type callRecord struct {
	Operation string    `json:"operation"`
	Key       string    `json:"key"`
	OrderID   string    `json:"order_id,omitempty"`
	Status    int       `json:"status"`
	At        time.Time `json:"at"`

	keys Keys
}

// callLog is the list of calls and callbacks.
type callLog struct {
	*source
	operator string
	calls    []callRecord
}

func (l *callLog) record(operation string, k Keys, status int) {
	if len(l.calls) >= 2*maxCalls {
		l.calls = slices.Clone(l.calls[maxCalls:])
	}
	l.calls = append(l.calls, callRecord{operation, k.Key, k.OrderID, status, l.Now(), k})
	l.config.Logf("%s: %s %s: %d", l.operator, operation, k.Key, status)
}

// Control makes a control path of f, which gets the JSON body of a POST or a PUT. The body of a POST may be absent: a
// PUT needs an object, because it replaces the earlier one.
func Control[T any](pattern string, f func(c *Call, body T) Response) Operation {
	return Operation{Pattern: pattern, Plain: true, Serve: func(c *Call) Response {
		var body T
		method := c.Request.Method
		isAbsent := method != http.MethodPut && slices.Contains([]string{"", "null"}, strings.TrimSpace(string(c.Body)))
		if (method == http.MethodPost || method == http.MethodPut) && !isAbsent {
			if err := decodeObject(c.Body[:min(len(c.Body), MaxBodyBytes)], &body); err != nil {
				return Refuse(http.StatusBadRequest, "body: %v", err)
			}
		}
		return f(c, body)
	}}
}

// none is the body of a control path without one.
type none struct{}

// controlOperations are the control paths, which doc.go lists.
func (p *Platform) controlOperations() []Operation {
	keyOf := func(c *Call) string { return c.Request.URL.Query().Get("key") }
	return []Operation{
		Control("GET /stub/v1/effects", func(c *Call, _ none) Response {
			return JSON(http.StatusOK, p.Effects(keyOf(c)))
		}),
		Control("GET /stub/v1/statement", func(c *Call, _ none) Response {
			return StatementResponse(c, p.statementRows(), p.spec.StatementAmount)
		}),
		Control("GET /stub/v1/calls", func(c *Call, _ none) Response {
			found := []callRecord{}
			for _, r := range p.log.calls {
				if r.keys.match(keyOf(c)) {
					found = append(found, r)
				}
			}
			return JSON(http.StatusOK, found)
		}),
		Control("POST /stub/v1/script", func(_ *Call, s Script) Response {
			if err := p.AddScript(s); err != nil {
				return Refuse(http.StatusBadRequest, "%v", err)
			}
			return JSON(http.StatusOK, s)
		}),
		Control("GET /stub/v1/script", func(*Call, none) Response { return JSON(http.StatusOK, p.Scripts()) }),
		Control("DELETE /stub/v1/script", func(c *Call, _ none) Response {
			p.DeleteScripts(keyOf(c))
			return Response{Status: http.StatusNoContent}
		}),
		Control("GET /stub/v1/quirks", func(*Call, none) Response { return p.listQuirks() }),
		Control("PUT /stub/v1/quirks", func(_ *Call, wanted map[string]bool) Response {
			for name := range wanted {
				if !slices.Contains(p.spec.Quirks, name) {
					return Refuse(http.StatusBadRequest, "quirk %q is unknown; use: %s", name,
						strings.Join(p.spec.Quirks, ", "))
				}
			}
			p.quirks = wanted
			return p.listQuirks()
		}),
		Control("POST /stub/v1/revoke-tokens", func(*Call, none) Response {
			return JSON(http.StatusOK, map[string]int{"revoked": p.revokeTokens()})
		}),
	}
}

func (p *steering) listQuirks() Response {
	all := map[string]bool{}
	for _, name := range p.spec.Quirks {
		all[name] = p.quirks[name]
	}
	return JSON(http.StatusOK, all)
}

// Refuse is the refusal of a control path.
func Refuse(status int, format string, args ...any) Response {
	return JSON(status, map[string]string{"error": fmt.Sprintf(format, args...)})
}
