package logsafe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/smithy-go"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/logsafe"
)

func TestText(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for want, err := range map[string]error{
		"":                              nil,
		"no units":                      logsafe.New("no units"),
		"responded 503 PAYER_LIMIT":     logsafe.Errorf("responded %d %s", 503, logsafe.Code("PAYER_LIMIT")),
		"responded 400 ***":             logsafe.Errorf("responded %d %s", 400, logsafe.Code("the payer's name")),
		"lacks the country TN":          logsafe.Errorf("lacks the country %s", logsafe.Name("TN")),
		"key 7: fetch: EOF":             logsafe.Errorf("key %d: %w", 7, logsafe.Errorf("fetch: %w", io.EOF)),
		"panic *errors.errorString":     logsafe.Errorf("panic %s", logsafe.TypeOf(errors.New("x"))),
		"item \"***\": unexpected EOF":  logsafe.Errorf("item %q: %w", "Shop_1", io.ErrUnexpectedEOF),
		"*errors.errorString":           fmt.Errorf("read %s: %w", "x", errors.New("y")),
		"no units; *errors.errorString": errors.Join(logsafe.New("no units"), errors.New("x")),
		"*url.Error: *net.OpError: *os.SyscallError: connection refused": &url.Error{
			Op: "Post", URL: "https://x.example/?otp=4829", Err: refused},
		"context.deadlineExceededError": fmt.Errorf("wait: %w", context.DeadlineExceeded),
		"*smithy.OperationError: ThrottlingException": &smithy.OperationError{ServiceID: "DynamoDB",
			OperationName: "PutItem", Err: &smithy.GenericAPIError{Code: "ThrottlingException", Message: "Shop_1"}},
		"invalid in amount: no units": fmt.Errorf("x: %w", fault.BrokenRule("amount", logsafe.New("no units"))),
		"operator error operator POL1000: *errors.errorString": &fault.Fault{Kind: fault.OperatorError,
			OperatorException: &fault.OperatorException{MessageID: "POL1000", Text: "x"}, Cause: errors.New("y")},
	} {
		if got := logsafe.Text(err); got != want {
			t.Errorf("%v is described as %q, want %q", err, got, want)
		}
	}
}

func TestErrorsKeepTheirChain(t *testing.T) {
	sentinel := logsafe.New("no units")
	err := logsafe.Errorf("order %s: %w: %w", "Shop_1", sentinel, context.Canceled)
	if !errors.Is(err, sentinel) || !errors.Is(err, context.Canceled) || errors.Is(err, logsafe.New("no units")) {
		t.Errorf("%v does not wrap its two causes, or it wraps another", err)
	}
	if err.Error() != "order Shop_1: no units: context canceled" {
		t.Errorf("the error is %q", err)
	}
}

func TestCode(t *testing.T) {
	for text, isVisible := range map[string]bool{
		"": true, "PAYER_NOT_FOUND": true, "SVC0001": true, "POL1000": true, "PDK_SMSW_0013": true, "900901": true,
		"E-12.a": true, "42": true, "ProvisionedThroughputExceededException": true,
		"amountTransaction.paymentAmount.chargingInformation.amount": true,
		"4829": false, "code482913x": false, "901": true, "9012345": false, "two words": false, "a:b": false,
		"canaryTOKENa1b2c3d4e5": false, "whsec_" + strings.Repeat("MfKQ9r8G", 4): false, "é": false, "a\nb": false,
		strings.Repeat("a", 65): false,
	} {
		want := logsafe.Hidden
		if isVisible {
			want = text
		}
		if got := logsafe.FilterCode(text); got != want {
			t.Errorf("the code %q is shown as %q, want %q", text, got, want)
		}
	}
}

// FuzzForeignText puts a text in each place where an error of another system can have one. The description must be the
// same for every text.
func FuzzForeignText(f *testing.F) {
	f.Add("otp 4829 refused")
	f.Add("Bearer gwl_m1x9_" + strings.Repeat("Zm9vYmFy", 6))
	f.Add(`Post "https://api.example.test/?otp=482913&msisdn=2250701021001": EOF`)
	f.Add("%s %d %w %!")
	describe := func(text string) string {
		foreign := errors.New(text)
		return logsafe.Text(errors.Join(
			foreign, fmt.Errorf("%s: %w", text, foreign), &url.Error{Op: text, URL: text, Err: foreign},
			&net.DNSError{Err: text, Name: text}, &os.PathError{Op: text, Path: text, Err: foreign},
			&smithy.GenericAPIError{Code: "X", Message: text}, fault.NewInternal(foreign),
			logsafe.Errorf("a %s %q %v: %w", text, []string{text}, []byte(text), foreign),
			&fault.Fault{Kind: fault.DuplicateKey, Part: text, ClientKey: true, Value: text, Cause: foreign},
		))
	}
	want := describe("")
	f.Fuzz(func(t *testing.T, text string) {
		if got := describe(text); got != want {
			t.Errorf("the description is %q with %q, want %q", got, text, want)
		}
	})
}
