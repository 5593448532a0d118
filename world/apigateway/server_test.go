package apigateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/localtest"
	"mobilegateway/world/apigateway"
	"mobilegateway/world/lambda"
	"mobilegateway/world/template"
)

// fakeFunction is a function that records its last event.
type fakeFunction struct {
	event  map[string]any
	calls  int
	result lambda.Result
	err    error
}

func (f *fakeFunction) Invoke(ctx context.Context, event lambda.Event) (lambda.Result, error) {
	f.calls++
	f.event = nil
	if err := json.Unmarshal(event.Payload, &f.event); err != nil {
		return lambda.Result{}, err
	}
	if deadline, set := ctx.Deadline(); !set || time.Until(deadline) > apigateway.IntegrationTimeout {
		return lambda.Result{}, errors.New("no deadline")
	}
	return f.result, f.err
}

// at returns the event's value below nested objects, nil if there is none.
func (f *fakeFunction) at(path ...string) any {
	var value any = f.event
	for _, name := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[name]
	}
	return value
}

const okResponse = `{"statusCode":201,"headers":{"Content-Type":"application/json","Location":"/x"},` +
	`"body":"{\"done\":true}"}`

// testServer is a server over the deployed template with one fake for all functions.
type testServer struct {
	function *fakeFunction
	url      string
	lines    []apigateway.AccessLogEntry
	now      time.Time
}

func newTestServer(t *testing.T, change func(*template.Template)) *testServer {
	t.Helper()
	options := template.Options{Parameters: map[string]string{"Stage": "local"}}
	deployed, err := template.Load("../../template.yaml", options)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(deployed)
	}
	r := &testServer{
		function: &fakeFunction{result: lambda.Result{Payload: []byte(okResponse)}},
		now:      time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC),
	}
	functions := map[string]lambda.Invoker{}
	for _, f := range deployed.Functions {
		functions[f.LogicalID] = r.function
	}
	delete(functions, "ReceiptFunction") // a function without a program
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = apigateway.New(apigateway.Config{
		Template: deployed, Functions: functions, Address: server.Listener.Addr().String(),
		Now:        func() time.Time { return r.now },
		LogRequest: func(l apigateway.AccessLogEntry) { r.lines = append(r.lines, l) },
	})
	server.Start()
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// do sends a request and returns status, headers and body of the response.
func (r *testServer) do(t *testing.T, method, path, body string, header http.Header) (int, http.Header, string) {
	t.Helper()
	return localtest.Send(t, method, r.url+path, body, header)
}

// wantNoCall checks that no function was invoked.
func (r *testServer) wantNoCall(t *testing.T) {
	t.Helper()
	if r.function.calls != 0 {
		t.Errorf("functions were invoked %d times, want no call", r.function.calls)
	}
}

func TestEventOfEncodedPath(t *testing.T) {
	r := newTestServer(t, nil)
	const path = "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests"
	sent := http.Header{"Content-Type": {"application/json"}, "X-Twice": {"one", "two"}}
	status, header, body := r.do(t, "POST", path+"?a=1&a=b%20c", `{"x":1}`, sent)
	if status != 201 || body != `{"done":true}` {
		t.Errorf("the response is %d %s, want the function's 201", status, body)
	}
	if location := header.Get("Location"); location != "/x" {
		t.Errorf("the response has Location %q, want the function's /x", location)
	}
	if header.Get("X-Amzn-Requestid") == "" {
		t.Error("the response has no request id")
	}
	host := strings.TrimPrefix(r.url, "http://")
	deep := []struct {
		path []string
		want any
	}{
		{[]string{"resource"}, "/smsmessaging/v1/outbound/{senderAddress}/requests"},
		{[]string{"httpMethod"}, "POST"},
		{[]string{"body"}, `{"x":1}`},
		{[]string{"path"}, path},
		{[]string{"isBase64Encoded"}, false},
		{[]string{"multiValueHeaders", "X-Twice"}, []any{"one", "two"}},
		{[]string{"pathParameters", "senderAddress"}, "tel%3A%2B2250000"},
		{[]string{"queryStringParameters", "a"}, "b c"},
		{[]string{"headers", "X-Twice"}, "two"},
		{[]string{"headers", "Host"}, host},
		{[]string{"headers", "X-Forwarded-For"}, "127.0.0.1"},
		{[]string{"requestContext", "domainName"}, host},
		{[]string{"requestContext", "stage"}, "local"},
		{[]string{"requestContext", "identity", "sourceIp"}, "127.0.0.1"},
		{[]string{"requestContext", "resourcePath"}, "/smsmessaging/v1/outbound/{senderAddress}/requests"},
		{[]string{"requestContext", "requestId"}, header.Get("X-Amzn-Requestid")},
	}
	for _, d := range deep {
		if difference := cmp.Diff(d.want, r.function.at(d.path...)); difference != "" {
			t.Errorf("the event's %v differs (-want +got):\n%s", d.path, difference)
		}
	}
}

func TestBodyPassesUnchanged(t *testing.T) {
	cases := map[string]string{
		"none": "", "text": `{"é":"\u00e9 ✓"}`, "not UTF-8": "\xff\xfe\x00bytes",
		"form": "grant_type=client_credentials",
	}
	for name, sent := range cases {
		t.Run(name, func(t *testing.T) {
			r := newTestServer(t, nil)
			r.do(t, "POST", "/token", sent, nil)
			got, _ := r.function.at("body").(string)
			if encoded, _ := r.function.at("isBase64Encoded").(bool); encoded {
				decoded, err := base64.StdEncoding.DecodeString(got)
				if err != nil {
					t.Fatal(err)
				}
				got = string(decoded)
			}
			if got != sent {
				t.Errorf("the function got the body %q, want %q", got, sent)
			}
			if sent == "" && r.function.at("body") != nil {
				t.Error("an empty body is not null")
			}
		})
	}
}

func TestRoutes(t *testing.T) {
	const charges = "/payment/v1/{endUserId}/transactions/amount"
	cases := map[string]struct {
		method, path string
		resource     string // "" for an unknown route
	}{
		"charge":                {"POST", "/payment/v1/acr%3AOperatorAPIToken/transactions/amount", charges},
		"charge, not encoded":   {"POST", "/payment/v1/acr:OperatorAPIToken/transactions/amount", charges},
		"a charge by its id":    {"GET", "/payment/v1/acr%3AToken/transactions/amount/1", charges + "/{transactionId}"},
		"token":                 {"POST", "/token", "/token"},
		"token, trailing slash": {"POST", "/token/", "/token"},
		"token, two slashes":    {"POST", "/token//", ""},
		"getStatus":             {"GET", "/mobilemoney/v1/getStatus/Demo_1", "/mobilemoney/v1/getStatus/{orderId}"},
		"the other getStatus":   {"GET", "/mobilemoney/getstatus/v1/Demo_1", "/mobilemoney/getstatus/v1/{orderId}"},
		"an empty parameter":    {"POST", "/payment/v1//transactions/amount", ""},
		"another method":        {"PUT", "/mobilemoney/v1", ""},
		"another case":          {"POST", "/Token", ""},
		"the root":              {"GET", "/", ""},
		"an encoded slash":      {"POST", "/payment/v1/a%2Fb/transactions/amount", charges},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newTestServer(t, nil)
			status, header, body := r.do(t, c.method, c.path, "", http.Header{"Authorization": {"Bearer x"}})
			if c.resource == "" {
				if status != 404 || !strings.Contains(body, `"messageId":"900906"`) {
					t.Errorf("the response is %d %s, want 404 with the code 900906", status, body)
				}
				if kind := header.Get("Content-Type"); kind != "application/json" {
					t.Errorf("the response has Content-Type %q, want JSON", kind)
				}
				r.wantNoCall(t)
				return
			}
			if status != 201 {
				t.Errorf("the status is %d, want 201", status)
			}
			for name, want := range map[string]string{"resource": c.resource, "path": c.path} {
				if got := r.function.at(name); got != want {
					t.Errorf("the event's %s is %v, want %s", name, got, want)
				}
			}
		})
	}
}

func TestGatewayResponses(t *testing.T) {
	failed := lambda.Result{Payload: []byte(`{"errorType":"Runtime.ExitError"}`), FunctionError: true}
	responded := func(payload string) lambda.Result { return lambda.Result{Payload: []byte(payload)} }
	cases := map[string]struct {
		path   string
		result lambda.Result
		err    error
	}{
		"function error":      {"/token", failed, nil},
		"not a response":      {"/token", responded(`"hello"`), nil},
		"no status":           {"/token", responded(`{"body":"x"}`), nil},
		"not base64":          {"/token", responded(`{"statusCode":200,"isBase64Encoded":true,"body":"?"}`), nil},
		"no response in time": {"/token", lambda.Result{}, context.DeadlineExceeded},
		"the function closed": {"/token", lambda.Result{}, lambda.ErrClosed},
		"no such program":     {"/callbacks/v1/receipts/sandbox/1/t", lambda.Result{}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newTestServer(t, nil)
			r.function.result, r.function.err = c.result, c.err
			status, header, body := r.do(t, "POST", c.path, "{}", nil)
			if status != 504 || !strings.Contains(body, "PDK_SMSW_0011") {
				t.Errorf("the response is %d %s, want 504 with the code PDK_SMSW_0011", status, body)
			}
			if header.Get("X-Amzn-Errortype") == "" {
				t.Error("the response does not have API Gateway's error type")
			}
		})
	}
}

func TestBodyTooLarge(t *testing.T) {
	r := newTestServer(t, nil)
	status, _, body := r.do(t, "POST", "/token", strings.Repeat("x", apigateway.MaxBodyBytes+1), nil)
	if status != 413 || !strings.Contains(body, "SVC0002") {
		t.Errorf("the response is %d %s, want 413 with the code SVC0002", status, body)
	}
	r.wantNoCall(t)
	if status, _, _ := r.do(t, "POST", "/token", strings.Repeat("x", apigateway.MaxBodyBytes), nil); status != 201 {
		t.Errorf("a body at the limit gets status %d, want 201", status)
	}
}

func TestThrottle(t *testing.T) {
	r := newTestServer(t, func(deployed *template.Template) {
		deployed.Throttle = template.Throttle{RequestsPerSecond: 1, Burst: 2}
	})
	var got []int
	for range 3 {
		status, header, _ := r.do(t, "POST", "/token", "", nil)
		got = append(got, status)
		if status == 429 && header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q", header.Get("Retry-After"))
		}
	}
	if difference := cmp.Diff([]int{201, 201, 429}, got); difference != "" {
		t.Errorf("the statuses after a burst of 2 differ (-want +got):\n%s", difference)
	}
	r.now = r.now.Add(time.Second)
	if status, _, _ := r.do(t, "POST", "/token", "", nil); status != 201 {
		t.Errorf("after a second the status is %d, want 201", status)
	}
}

func TestFunctionResponses(t *testing.T) {
	r := newTestServer(t, nil)
	r.function.result.Payload = []byte(`{"statusCode":200,"isBase64Encoded":true,"body":"aGk=",` +
		`"headers":{"Retry-After":1},"multiValueHeaders":{"Set-Cookie":["a","b"]}}`)
	status, header, body := r.do(t, "POST", "/token", "", nil)
	if status != 200 || body != "hi" {
		t.Errorf("the response is %d %q, want 200 and the decoded body", status, body)
	}
	got := map[string][]string{"Retry-After": header.Values("Retry-After"), "Set-Cookie": header.Values("Set-Cookie")}
	want := map[string][]string{"Retry-After": {"1"}, "Set-Cookie": {"a", "b"}}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Errorf("the headers differ (-want +got):\n%s", difference)
	}
}

func TestAccessLogOmitsClientInput(t *testing.T) {
	r := newTestServer(t, nil)
	r.do(t, "POST", "/callbacks/v1/payments/sandbox/Demo_1/secret-token", "{}", nil)
	r.do(t, "SECRET", "/secret-token", "", nil)
	text, err := json.Marshal(r.lines)
	if err != nil || len(r.lines) != 2 {
		t.Fatal(r.lines, err)
	}
	if bytes.Contains(bytes.ToLower(text), []byte("secret")) {
		t.Errorf("the log contains what the client sent: %s", text)
	}
	if first := r.lines[0]; !strings.HasSuffix(first.Resource, "{token}") || first.Status != 201 {
		t.Errorf("the log has %s with status %d, want the callback's resource with 201", first.Resource, first.Status)
	}
}

// TestNetHTTPRejections checks what the package comment says: these requests reach no function.
func TestNetHTTPRejections(t *testing.T) {
	const start = "POST /token HTTP/1.1\r\nHost: x\r\n"
	for name, c := range map[string]struct {
		head   string
		status int
	}{
		"a path that cannot be decoded": {"POST /%zz HTTP/1.1\r\nHost: x\r\n", 400},
		"a control character":           {start + "X-Name: a\x01b\r\n", 400},
		"two lengths":                   {start + "Content-Length: 1\r\nContent-Length: 2\r\n", 400},
		"headers of two megabytes":      {start + "X-Name: " + strings.Repeat("x", 2<<20) + "\r\n", 431},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestServer(t, nil)
			connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = connection.Close() }()
			go func() { _, _ = io.WriteString(connection, c.head+"\r\n") }() // the server may stop reading
			response, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != c.status {
				t.Errorf("the status is %d, want %d", response.StatusCode, c.status)
			}
			if id := response.Header.Get("X-Amzn-Requestid"); id != "" {
				t.Errorf("the response has the request id %q: a handler sent it", id)
			}
			r.wantNoCall(t)
		})
	}
}

// TestClientDisconnect sends half a body and disconnects.
func TestClientDisconnect(t *testing.T) {
	r := newTestServer(t, nil)
	connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(connection, "POST /token HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
	_ = connection.(*net.TCPConn).CloseWrite()
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err == nil && response.StatusCode != 400 {
		t.Errorf("half a body gets status %d, want 400", response.StatusCode)
	}
	r.wantNoCall(t)
	_ = connection.Close()
}
