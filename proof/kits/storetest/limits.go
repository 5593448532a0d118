package storetest

import (
	"context"
	"strings"

	"mobilegateway/shared/dailyamount"
	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/limit/dynamo"
	model "mobilegateway/world/dynamodb"
)

// Limits is the store of rates and daily amounts. A ConcurrentWrite gives them the error of a conflict. Any number of
// goroutines may use it.
type Limits struct {
	Faults
	store  *dynamo.Store
	client *model.Client
}

var (
	_ limit.RateStore   = (*Limits)(nil)
	_ dailyamount.Store = (*Limits)(nil)
)

// NewLimits makes an empty store without faults.
func NewLimits() *Limits {
	client := newClient()
	return &Limits{store: dynamo.New(client, table), client: client}
}

// UpdateRate implements limit.RateStore.
func (l *Limits) UpdateRate(
	ctx context.Context, merchantID string, u limit.RateUpdate,
) (stored int64, updated bool, err error) {
	call := Call{Operation: UpdateRate, writeConcurrently: func() error { return limit.ErrThrottled }}
	stored, err = run(ctx, &l.Faults, call, func() (fullAt int64, err error) {
		fullAt, updated, err = l.store.UpdateRate(ctx, merchantID, u)
		return fullAt, err
	})
	return stored, updated && err == nil, err
}

// Adjust implements dailyamount.Store.
func (l *Limits) Adjust(ctx context.Context, a dailyamount.Adjustment) (dailyamount.AdjustmentResult, error) {
	call := Call{Operation: Adjust, writeConcurrently: func() error { return dailyamount.ErrConflict }}
	return run(ctx, &l.Faults, call, func() (dailyamount.AdjustmentResult, error) { return l.store.Adjust(ctx, a) })
}

// Sum adds up all days of a merchant and currency.
func (l *Limits) Sum(merchantID, currency string) int64 {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	total := int64(0)
	for key, item := range l.client.Database.Items(table) {
		if strings.HasPrefix(key, "day#"+merchantID+"#"+currency+"#") {
			sum, err := dynamoitem.ReadNumber(item, "spent")
			mustSucceed("read "+key, err)
			total += sum
		}
	}
	return total
}
