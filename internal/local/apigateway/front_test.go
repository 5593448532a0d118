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

	"mobilegateway/internal/local/apigateway"
	"mobilegateway/internal/runtimeapi"
	"mobilegateway/internal/template"
)

// fakeFunction is a function that records its last event.
type fakeFunction struct {
	event  map[string]any
	calls  int
	result runtimeapi.Result
	err    error
}

func (f *fakeFunction) InvokeEvent(ctx context.Context, event runtimeapi.Event) (runtimeapi.Result, error) {
	f.calls++
	f.event = nil
	if err := json.Unmarshal(event.Payload, &f.event); err != nil {
		return runtimeapi.Result{}, err
	}
	if deadline, set := ctx.Deadline(); !set || time.Until(deadline) > apigateway.IntegrationTimeout {
		return runtimeapi.Result{}, errors.New("no deadline")
	}
	return f.result, f.err
}

// at walks down the event.
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

const okResponse = `{"statusCode":201,"headers":{"Content-Type":"application/json","Location":"/x"},"body":"{\"done\":true}"}`

// testServer is a front over the deployed template with one fake for all functions.
type testServer struct {
	function *fakeFunction
	url      string
	lines    []apigateway.AccessLogEntry
	now      time.Time
}

func newTestServer(t *testing.T, change func(*template.Template)) *testServer {
	t.Helper()
	deployed, err := template.Load("../../../template.yaml", template.Options{Parameters: map[string]string{"Stage": "local"}})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(deployed)
	}
	r := &testServer{function: &fakeFunction{result: runtimeapi.Result{Payload: []byte(okResponse)}}, now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	functions := map[string]apigateway.Invoker{}
	for _, f := range deployed.Functions {
		functions[f.LogicalID] = r.function
	}
	delete(functions, "ReceiptFunction") // a function without a program
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = apigateway.New(apigateway.Config{
		Template: deployed, Functions: functions, Address: server.Listener.Addr().String(),
		Now: func() time.Time { return r.now }, LogRequest: func(l apigateway.AccessLogEntry) { r.lines = append(r.lines, l) },
	})
	server.Start()
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// do sends a request and gives status, headers and body.
func (r *testServer) do(t *testing.T, method, path, body string, header http.Header) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		request.Header = header
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

func TestEventOfEncodedPath(t *testing.T) {
	r := newTestServer(t, nil)
	status, header, body := r.do(t, "POST", "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests?a=1&a=b%20c", `{"x":1}`, http.Header{
		"Content-Type": {"application/json"}, "X-Twice": {"one", "two"},
	})
	if status != 201 || body != `{"done":true}` || header.Get("Location") != "/x" || header.Get("X-Amzn-Requestid") == "" {
		t.Errorf("answer %d %v %s", status, header, body)
	}
	host := strings.TrimPrefix(r.url, "http://")
	want := map[string]any{
		"resource": "/smsmessaging/v1/outbound/{senderAddress}/requests", "httpMethod": "POST", "body": `{"x":1}`,
		"path":            "/smsmessaging/v1/outbound/tel%3A%2B2250000/requests",
		"isBase64Encoded": false,
	}
	for name, value := range want {
		if r.function.at(name) != value {
			t.Errorf("%s is %v, want %v", name, r.function.at(name), value)
		}
	}
	deep := []struct {
		path []string
		want any
	}{
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
		if got := r.function.at(d.path...); got != d.want {
			t.Errorf("%v is %v, want %v", d.path, got, d.want)
		}
	}
	if twice, _ := r.function.at("multiValueHeaders", "X-Twice").([]any); len(twice) != 2 {
		t.Errorf("multiValueHeaders X-Twice is %v", twice)
	}
}

func TestBodyPassesUnchanged(t *testing.T) {
	cases := map[string]string{"none": "", "text": `{"é":"\u00e9 ✓"}`, "not UTF-8": "\xff\xfe\x00bytes", "form": "grant_type=client_credentials"}
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
				t.Errorf("the function got %q, want %q", got, sent)
			}
			if sent == "" && r.function.at("body") != nil {
				t.Error("an empty body is not null")
			}
		})
	}
}

func TestRoutes(t *testing.T) {
	cases := map[string]struct {
		method, path string
		resource     string // "" for an unknown route
	}{
		"charge":                  {"POST", "/payment/v1/acr%3AOperatorAPIToken/transactions/amount", "/payment/v1/{endUserId}/transactions/amount"},
		"charge, not encoded":     {"POST", "/payment/v1/acr:OperatorAPIToken/transactions/amount", "/payment/v1/{endUserId}/transactions/amount"},
		"a charge by its id":      {"GET", "/payment/v1/acr%3AOperatorAPIToken/transactions/amount/1", "/payment/v1/{endUserId}/transactions/amount/{transactionId}"},
		"token":                   {"POST", "/token", "/token"},
		"token, trailing slash":   {"POST", "/token/", "/token"},
		"token, two slashes":      {"POST", "/token//", ""},
		"getStatus":               {"GET", "/mobilemoney/v1/getStatus/Demo_1", "/mobilemoney/v1/getStatus/{orderId}"},
		"the other getStatus":     {"GET", "/mobilemoney/getstatus/v1/Demo_1", "/mobilemoney/getstatus/v1/{orderId}"},
		"a parameter that is not": {"POST", "/payment/v1//transactions/amount", ""},
		"another method":          {"PUT", "/mobilemoney/v1", ""},
		"another case":            {"POST", "/Token", ""},
		"the root":                {"GET", "/", ""},
		"an encoded slash":        {"POST", "/payment/v1/a%2Fb/transactions/amount", "/payment/v1/{endUserId}/transactions/amount"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newTestServer(t, nil)
			status, header, body := r.do(t, c.method, c.path, "", http.Header{"Authorization": {"Bearer x"}})
			if c.resource == "" {
				if status != 404 || !strings.Contains(body, `"messageId":"900906"`) || header.Get("Content-Type") != "application/json" || r.function.calls != 0 {
					t.Errorf("got %d %s, %d calls", status, body, r.function.calls)
				}
				return
			}
			if status != 201 || r.function.at("resource") != c.resource || r.function.at("path") != c.path {
				t.Errorf("got %d, resource %v, path %v", status, r.function.at("resource"), r.function.at("path"))
			}
		})
	}
}

func TestGatewayResponses(t *testing.T) {
	failed := runtimeapi.Result{Payload: []byte(`{"errorType":"Runtime.ExitError"}`), FunctionError: true}
	cases := map[string]struct {
		path     string
		result   runtimeapi.Result
		err      error
		status   int
		contains string
	}{
		"function error":      {"/token", failed, nil, 504, "PDK_SMSW_0011"},
		"not a response":      {"/token", runtimeapi.Result{Payload: []byte(`"hello"`)}, nil, 504, "PDK_SMSW_0011"},
		"no status":           {"/token", runtimeapi.Result{Payload: []byte(`{"body":"x"}`)}, nil, 504, "PDK_SMSW_0011"},
		"not base64":          {"/token", runtimeapi.Result{Payload: []byte(`{"statusCode":200,"isBase64Encoded":true,"body":"?"}`)}, nil, 504, "PDK_SMSW_0011"},
		"no answer in time":   {"/token", runtimeapi.Result{}, context.DeadlineExceeded, 504, "PDK_SMSW_0011"},
		"the function closed": {"/token", runtimeapi.Result{}, runtimeapi.ErrClosed, 504, "PDK_SMSW_0011"},
		"no such program":     {"/callbacks/v1/receipts/sandbox/1/t", runtimeapi.Result{}, nil, 504, "PDK_SMSW_0011"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newTestServer(t, nil)
			r.function.result, r.function.err = c.result, c.err
			status, header, body := r.do(t, "POST", c.path, "{}", nil)
			if status != c.status || !strings.Contains(body, c.contains) || header.Get("X-Amzn-Errortype") == "" {
				t.Errorf("got %d %v %s", status, header, body)
			}
		})
	}
}

func TestBodyTooLarge(t *testing.T) {
	r := newTestServer(t, nil)
	status, _, body := r.do(t, "POST", "/token", strings.Repeat("x", apigateway.MaxBodyBytes+1), nil)
	if status != 413 || !strings.Contains(body, "SVC0002") || r.function.calls != 0 {
		t.Errorf("got %d %s, %d calls", status, body, r.function.calls)
	}
	if status, _, _ := r.do(t, "POST", "/token", strings.Repeat("x", apigateway.MaxBodyBytes), nil); status != 201 {
		t.Errorf("a body at the limit: %d", status)
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
	if got[0] != 201 || got[1] != 201 || got[2] != 429 {
		t.Errorf("a burst of 2: %v", got)
	}
	r.now = r.now.Add(time.Second)
	if status, _, _ := r.do(t, "POST", "/token", "", nil); status != 201 {
		t.Errorf("after a second: %d", status)
	}
}

func TestFunctionResponses(t *testing.T) {
	r := newTestServer(t, nil)
	r.function.result.Payload = []byte(`{"statusCode":200,"isBase64Encoded":true,"body":"aGk=","headers":{"Retry-After":1},"multiValueHeaders":{"Set-Cookie":["a","b"]}}`)
	status, header, body := r.do(t, "POST", "/token", "", nil)
	if status != 200 || body != "hi" || header.Get("Retry-After") != "1" || len(header.Values("Set-Cookie")) != 2 {
		t.Errorf("got %d %q %v", status, body, header)
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
	if bytes.Contains(bytes.ToLower(text), []byte("secret")) || r.lines[0].Function != "NotifFunction" || r.lines[0].Status != 201 {
		t.Errorf("log %s", text)
	}
}

// TestNetHTTPRejections holds the package's comment: these get no API's answer, and reach no function.
func TestNetHTTPRejections(t *testing.T) {
	for name, c := range map[string]struct {
		head   string
		status int
	}{
		"a path that cannot be decoded": {"POST /%zz HTTP/1.1\r\nHost: x\r\n", 400},
		"a control character":           {"POST /token HTTP/1.1\r\nHost: x\r\nX-Name: a\x01b\r\n", 400},
		"two lengths":                   {"POST /token HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n", 400},
		"headers of two megabytes":      {"POST /token HTTP/1.1\r\nHost: x\r\nX-Name: " + strings.Repeat("x", 2<<20) + "\r\n", 431},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestServer(t, nil)
			connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = connection.Close() }()
			go func() { _, _ = io.WriteString(connection, c.head+"\r\n") }() // refused before all of it is read
			response, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != c.status || r.function.calls != 0 || response.Header.Get("X-Amzn-Requestid") != "" {
				t.Errorf("%d, %d calls, %v", response.StatusCode, r.function.calls, response.Header)
			}
		})
	}
}

// TestClientDisconnect sends half a body and goes.
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
		t.Errorf("half a body: %d", response.StatusCode)
	}
	if r.function.calls != 0 {
		t.Error("the function was invoked with half a body")
	}
	_ = connection.Close()
}
