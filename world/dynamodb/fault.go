package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// responseError wraps the error of one attempt as the SDK does. status is 0 if no response came.
func responseError(status int, err error) error {
	return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status, Header: http.Header{}}}, Err: err,
	}}
}

// endpoint is the address in the texts of errors.
const endpoint = "https://dynamodb.eu-west-1.amazonaws.com/"

// newTimeoutError returns the error of an attempt without a response within the attempt's timeout. It matches
// context.DeadlineExceeded, although the caller's context has not ended.
func newTimeoutError() error {
	return responseError(0, &smithyhttp.RequestSendError{
		Err: &url.Error{Op: "Post", URL: endpoint, Err: context.DeadlineExceeded},
	})
}

// newConnectionError returns the error of an attempt whose connection was reset.
func newConnectionError() error {
	return responseError(0, &smithyhttp.RequestSendError{
		Err: &url.Error{Op: "Post", URL: endpoint, Err: errors.New("read: connection reset by peer")},
	})
}

func newThrottlingError() error {
	return responseError(http.StatusBadRequest, &types.ProvisionedThroughputExceededException{
		Message: aws.String("The level of configured provisioned throughput for the table was exceeded."),
	})
}

func newInternalError() error {
	return responseError(http.StatusInternalServerError, &types.InternalServerError{
		Message: aws.String("Internal server error"),
	})
}

func cancelledError(reasons []types.CancellationReason) error {
	codes := make([]string, len(reasons))
	for i, reason := range reasons {
		codes[i] = aws.ToString(reason.Code)
	}
	return &types.TransactionCanceledException{
		Message: aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(codes, ", ") + "]"),
		CancellationReasons: reasons,
	}
}

// invalidRequest is the reason of a request that the service refuses (ValidationException).
type invalidRequest string

// refuse stops the program, because a caller sends an invalid request.
func refuse(format string, args ...any) {
	panic(invalidRequest("dynamodb: invalid request: " + fmt.Sprintf(format, args...)))
}

// notModelled stops the program, because a caller needs a part of DynamoDB that the model does not have.
func notModelled(format string, args ...any) {
	panic("dynamodb: not modelled: " + fmt.Sprintf(format, args...))
}
