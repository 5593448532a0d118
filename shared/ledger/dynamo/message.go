package dynamo

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/dynamoitem"
	"mobilegateway/shared/ledger"
)

// The attributes of the item that finds a message by its operator's id.
const (
	attributeMessageID     = "si" // the entry's id; absent until the response to the send is stored
	attributeEarlyStatuses = "er" // statuses that came before it, in their order
)

// maxMessageWrites bounds the attempts to write one item, because receipts come at the same time.
const maxMessageWrites = 8

// BindMessage implements ledger.MessageIndex.
func (s *Store) BindMessage(
	ctx context.Context, account, reference, id string, expireAt time.Time,
) ([]ledger.Status, error) {
	before, err := s.writeMessage(ctx, account, reference, expireAt, func(stored item) (item, bool) {
		if dynamoitem.ReadText(stored, attributeMessageID) != "" {
			return nil, false
		}
		next := item{attributeMessageID: dynamoitem.Text(id)}
		if early := dynamoitem.ReadText(stored, attributeEarlyStatuses); early != "" {
			next[attributeEarlyStatuses] = dynamoitem.Text(early)
		}
		return next, true
	})
	return earlyStatuses(before), err
}

// FindMessage implements ledger.MessageIndex.
func (s *Store) FindMessage(
	ctx context.Context, account, reference string, statuses []ledger.Status, expireAt time.Time,
) (id string, early []ledger.Status, err error) {
	before, err := s.writeMessage(ctx, account, reference, expireAt, func(stored item) (item, bool) {
		if dynamoitem.ReadText(stored, attributeMessageID) != "" {
			return nil, false
		}
		kept := earlyStatuses(stored)
		before := len(kept)
		for _, status := range statuses {
			if !slices.Contains(kept, status) { // a repeated status changes no message
				kept = append(kept, status)
			}
		}
		if len(kept) == before {
			return nil, false
		}
		return item{attributeEarlyStatuses: dynamoitem.Text(joinStatuses(kept))}, true
	})
	return dynamoitem.ReadText(before, attributeMessageID), earlyStatuses(before), err
}

// writeMessage changes the item of an operator's id, from nothing or from what is stored, and returns what was stored
// before. change returns false if nothing is left to write.
func (s *Store) writeMessage(
	ctx context.Context, account, reference string, expireAt time.Time,
	change func(stored item) (item, bool),
) (before item, err error) {
	const (
		isAbsent = "attribute_not_exists(" + dynamoitem.KeyAttribute + ")"
		isEarly  = "attribute_not_exists(" + attributeMessageID + ") AND " + attributeEarlyStatuses + " = :value"
	)
	sum := sha256.Sum256([]byte(account + "\x00" + reference))
	key := ledger.Key{Kind: ledger.MessageID, ID: base64.RawURLEncoding.EncodeToString(sum[:])}
	var stored item
	for range maxMessageWrites {
		next, changed := change(stored)
		if !changed {
			return stored, nil
		}
		written := dynamoitem.Key(key.String())
		for name, value := range next {
			written[name] = value
		}
		if !expireAt.IsZero() {
			written[attributeExpireAt] = dynamoitem.Number(expireAt.Unix())
		}
		put := s.conditionalPut(written, isAbsent, nil)
		if stored != nil {
			early := dynamoitem.ReadText(stored, attributeEarlyStatuses)
			put = s.conditionalPut(written, isEarly, dynamoitem.Text(early))
		} else {
			put.ExpressionAttributeValues = nil
		}
		_, err := s.client.PutItem(ctx, put)
		if err == nil {
			return stored, nil
		}
		conflicting, refused := conflictingItem(err)
		if !refused {
			return nil, dynamoitem.DescribeError("ledger: finding a message by its operator's id", err)
		}
		stored = conflicting
	}
	return nil, ledger.ErrContended
}

// earlyStatuses are the statuses in an item that came before the response to the send.
func earlyStatuses(stored item) (statuses []ledger.Status) {
	text := dynamoitem.ReadText(stored, attributeEarlyStatuses)
	for _, status := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		statuses = append(statuses, ledger.Status(status))
	}
	return statuses
}

func joinStatuses(statuses []ledger.Status) string {
	texts := make([]string, len(statuses))
	for i, status := range statuses {
		texts[i] = string(status)
	}
	return strings.Join(texts, ",")
}
