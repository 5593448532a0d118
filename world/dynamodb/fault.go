package dynamodb

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const codeValidation = "ValidationException"

func validationError(message string) error {
	return &smithy.GenericAPIError{Code: codeValidation, Message: message}
}

// errorMessage returns the service's message of an error.
func errorMessage(err error) string {
	var service smithy.APIError
	if errors.As(err, &service) {
		return service.ErrorMessage()
	}
	return err.Error()
}

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

// newConflictError returns the error of a write of an item that a transaction is writing. For a transaction with
// several writes, at is the one that met the other transaction.
func newConflictError(call Call, at int) error {
	message := aws.String("Transaction is ongoing for the item")
	if call.Operation != operationTransact {
		return responseError(http.StatusBadRequest, &types.TransactionConflictException{Message: message})
	}
	reasons := make([]types.CancellationReason, len(call.Items))
	for i := range reasons {
		reasons[i] = types.CancellationReason{Code: aws.String("None")}
	}
	reasons[at%len(reasons)] = types.CancellationReason{Code: aws.String("TransactionConflict"), Message: message}
	return responseError(http.StatusBadRequest, cancelledError(reasons))
}

// newInProgressError returns the error of a repeated transaction whose first request is still being processed. Other
// writes meet a conflict.
func newInProgressError(call Call) error {
	if call.Operation != operationTransact {
		return newConflictError(call, 0)
	}
	return responseError(http.StatusBadRequest, &types.TransactionInProgressException{
		Message: aws.String("The transaction with the given request token is already in progress."),
	})
}
