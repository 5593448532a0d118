// Package dynamo does for the local run what CloudFormation and the Lambda service do with the template's tables: it
// creates them, and it reads a table's stream and hands its records to a function.
//
// It speaks DynamoDB's own JSON protocol, because the records of a stream have the very form there that the function's
// event has. It reads and writes no items. The invariant of the stream: a record is passed over only after the function
// took it, or after the retries that the template allows it.
package dynamo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// The two services behind one endpoint.
const (
	tableService  = "DynamoDB_20120810"
	streamService = "DynamoDBStreams_20120810"
)

// maxAnswer bounds an answer in bytes; a page of a stream has at most 1 MB of records.
const maxAnswer = 16 << 20

// callTimeout is how long one call may take.
const callTimeout = 10 * time.Second

// Client calls a DynamoDB endpoint.
type Client struct {
	endpoint string
	region   string
	keys     aws.Credentials
	http     *http.Client
	now      func() time.Time
}

// Error is an error of the service.
type Error struct {
	// Kind is the exception's name, such as ResourceNotFoundException.
	Kind    string
	Message string
	Status  int
}

// Error tells kind and message.
func (e *Error) Error() string { return e.Kind + ": " + e.Message }

// NewClient makes a client for an endpoint without a trailing slash.
func NewClient(endpoint, region, accessKey, secretKey string, now func() time.Time) *Client {
	return &Client{
		endpoint: endpoint, region: region, now: now,
		keys: aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey},
		http: &http.Client{Timeout: callTimeout},
	}
}

// call does one operation: in as its JSON parameters, out filled from its answer. The error is an *Error where the
// service refused.
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
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	if response.StatusCode != http.StatusOK {
		return refusal(response.StatusCode, text)
	}
	return json.Unmarshal(text, out)
}

// refusal reads an error of the service.
func refusal(status int, text []byte) error {
	var document struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(text, &document) // whatever came, the status stands
	kind := document.Type
	if i := strings.LastIndex(kind, "#"); i >= 0 {
		kind = kind[i+1:]
	}
	if kind == "" {
		kind = fmt.Sprintf("HTTP %d", status)
	}
	return &Error{Kind: kind, Message: document.Message, Status: status}
}
