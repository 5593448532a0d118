package dynamo_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/proof/kits/dynamotest"
	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/limit/dynamo"
)

// newStore returns a store over an empty table, and the transport of its requests.
func newStore(t *testing.T) (*dynamo.Store, *dynamotest.Transport) {
	t.Helper()
	table := dynamotest.NewTable(t)
	return dynamo.New(table.Client, table.Name), table.Transport
}

func newKey(transaction string) dailyamount.Key {
	return dailyamount.Key{MerchantID: "m1", Currency: "XOF", Day: "d", TransactionKey: transaction}
}

// stubTransport returns the same response to every request.
type stubTransport struct {
	status int
	body   string
}

func (a *stubTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(a.body)),
	}, nil
}

// Some errors come only from AWS's own table. The texts are the service's.
func TestErrorMapping(t *testing.T) {
	const space = "com.amazonaws.dynamodb.v20120810#"
	reasons := func(day, countedUpdate string) string {
		return `{"__type":"` + space + `TransactionCanceledException","Message":"m1 XOF",` +
			`"CancellationReasons":[{"Code":"` + day + `"},{"Code":"` + countedUpdate + `"}]}`
	}
	one := func(name string) string { return `{"__type":"` + space + name + `","message":"m1 XOF"}` }
	count := dailyamount.Adjustment{Key: newKey("k"), NewAmount: 5, Fence: 1}
	touch := count
	touch.OldAmount = 5
	cases := []struct {
		name, body string
		transfer   *dailyamount.Adjustment // nil: a rate
		want       error                   // nil: any other error
	}{
		{"another transaction on the day", reasons("TransactionConflict", "None"), &count, dailyamount.ErrConflict},
		{"another transaction on the record", reasons("None", "TransactionConflict"), &count, dailyamount.ErrConflict},
		{"a conflict beside a refusal", reasons("TransactionConflict", "ConditionalCheckFailed"), &count,
			dailyamount.ErrConflict},
		{"the partition's limit", reasons("ThrottlingError", "None"), &count, dailyamount.ErrConflict},
		{"an unknown reason", reasons("ValidationError", "None"), &count, nil},
		{"an adjustment that is throttled", one("ProvisionedThroughputExceededException"), &count,
			dailyamount.ErrConflict},
		{"an adjustment that is not allowed", one("AccessDeniedException"), &count, nil},
		{"another transaction on a fence", one("TransactionConflictException"), &touch, dailyamount.ErrConflict},
		{"a fence update that is not allowed", one("AccessDeniedException"), &touch, nil},
		{"a rate's partition is full", one("ProvisionedThroughputExceededException"), nil, limit.ErrThrottled},
		{"a rate that is not allowed", one("AccessDeniedException"), nil, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			client := dynamotest.NewClient("http://127.0.0.1:1", &stubTransport{status: 400, body: c.body})
			s := dynamo.New(client, "limits")
			var err error
			if c.transfer == nil {
				_, _, err = s.UpdateRate(context.Background(), "m1", limit.RateUpdate{AllowAbsent: true, Set: 1})
			} else {
				_, err = s.Adjust(context.Background(), *c.transfer)
			}
			switch {
			case err == nil, c.want != nil && !errors.Is(err, c.want):
				t.Errorf("error %v, want %v", err, c.want)
			case c.want == nil && errors.Is(err, dailyamount.ErrConflict):
				t.Error("the error is taken for a conflict")
			}
			if err != nil && strings.Contains(err.Error(), "m1") {
				t.Errorf("the error quotes the request: %v", err)
			}
		})
	}
}

// Each call of the store is one request, also if the condition fails.
func TestOneRequestPerCall(t *testing.T) {
	ctx := context.Background()
	s, wire := newStore(t)
	end := time.Now().Add(time.Hour)
	for _, m := range []limit.RateUpdate{
		{AllowAbsent: true, Set: 5}, {Max: 1, AllowAbsent: true, Set: 7}, {Min: 5, Max: 5, Add: 1},
	} {
		m.ExpireAt = end
		if _, _, err := s.UpdateRate(ctx, "m1", m); err != nil {
			t.Error(err)
		}
	}
	for _, x := range []dailyamount.Adjustment{
		{NewAmount: 5, MaxSumBefore: 4, Fence: 1}, {NewAmount: 5, MaxSumBefore: 4, Fence: 1},
		{OldAmount: 5, NewAmount: 5, Fence: 2}, {OldAmount: 5, Fence: 3}, {NewAmount: 9, MaxSumBefore: -1, Fence: 4},
	} {
		x.Key, x.ExpireAt = newKey("k"), end
		if _, err := s.Adjust(ctx, x); err != nil {
			t.Error(err)
		}
	}
	want := map[string]int{"UpdateItem": 3 + 1, "TransactWriteItems": 4}
	if diff := cmp.Diff(want, wire.TakeCounts()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// The SDK retries an adjustment whose response was lost: it counts once, and the retry finds it applied.
func TestLostResponseIsCountedOnce(t *testing.T) {
	ctx := context.Background()
	s, wire := newStore(t)
	count := dailyamount.Adjustment{
		Key: newKey("k"), NewAmount: 5, Fence: 1, MaxSumBefore: 100, ExpireAt: time.Now().Add(time.Hour),
	}
	wire.Losses = 1
	first, err := s.Adjust(ctx, count)
	if err != nil || !first.Applied && (first.Existing == nil || first.Existing.Amount != 5) {
		t.Errorf("%+v, %v", first, err)
	}
	overLimit := count
	overLimit.TransactionKey, overLimit.MaxSumBefore = "z", 4
	if full, err := s.Adjust(ctx, overLimit); err != nil || full.Applied || full.DaySum != 5 {
		t.Errorf("%+v, %v", full, err)
	}
}
