// Package streams replaces CloudFormation and Lambda for the tables of the local run: it creates the tables of the
// template, reads their streams and invokes functions with the records.
//
// It uses DynamoDB's JSON protocol directly, because a function's event contains stream records in that format. It
// reads and writes no items. The invariant: the checkpoint passes a record only after the function has processed it or
// the retries that the template allows have failed.
package streams

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
)

// The two services that share an endpoint.
const (
	tableService  = "DynamoDB_20120810"
	streamService = "DynamoDBStreams_20120810"
)

// maxResponse bounds a response in bytes; a page of a stream has at most 1 MB of records.
const maxResponse = 16 << 20

const callTimeout = 10 * time.Second

// Client calls a DynamoDB endpoint. It is safe for concurrent use.
type Client struct {
	endpoint string
	region   string
	keys     aws.Credentials
	http     *http.Client
	now      func() time.Time
}

// isKind reports whether an error is the service's exception of a name, such as ResourceNotFoundException.
func isKind(err error, kind string) bool {
	refused, isRefused := errors.AsType[*smithy.GenericAPIError](err)
	return isRefused && refused.Code == kind
}

// NewClient returns a client for an endpoint, which must not end in a slash.
func NewClient(endpoint, region, accessKey, secretKey string, now func() time.Time) *Client {
	return &Client{
		endpoint: endpoint, region: region, now: now,
		keys: aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey},
		http: &http.Client{Timeout: callTimeout},
	}
}

// call performs one operation. in holds its JSON parameters, and out receives its response. An error response of the
// service is a *smithy.GenericAPIError.
func (c *Client) call(ctx context.Context, service, operation string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint+"/", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	request.Header.Set("X-Amz-Target", service+"."+operation)
	sum := sha256.Sum256(body)
	err = v4.NewSigner().SignHTTP(ctx, c.keys, request, hex.EncodeToString(sum[:]), "dynamodb", c.region, c.now())
	if err != nil {
		return fmt.Errorf("sign %s: %w", operation, err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	if response.StatusCode != http.StatusOK {
		return decodeError(response.StatusCode, text)
	}
	return json.Unmarshal(text, out)
}

func decodeError(status int, text []byte) error {
	var document struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(text, &document) // without a body, the status is the error
	kind := document.Type[strings.LastIndex(document.Type, "#")+1:]
	return &smithy.GenericAPIError{Code: cmp.Or(kind, fmt.Sprintf("HTTP %d", status)), Message: document.Message}
}

// maxIdleConnections bounds the connections to DynamoDB that stay open: one for each function that may run.
const maxIdleConnections = 128

// NewProxy returns a handler that passes every request unchanged to a DynamoDB endpoint.
func NewProxy(endpoint *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Transport: &http.Transport{
			MaxIdleConns: maxIdleConnections, MaxIdleConnsPerHost: maxIdleConnections, DisableCompression: true,
		},
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(endpoint)
			p.Out.Host = p.In.Host
		},
		// Cut the connection, so that an unreachable service does not look like one that responds.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
}
