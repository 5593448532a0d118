// Package resend sends a notification again that its merchant names by its webhook-id (decision "resend").
//
// It sends nothing itself: it queues the notification, and the relay or the sweep posts it. Its invariants: a merchant
// reaches only its own notifications, at most one notification of a transaction is outstanding, and an earlier status
// is never delivered after a later one.
package resend

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/ledger"
	"mobilegateway/shared/limit"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operation"
	"mobilegateway/shared/resource"
	"mobilegateway/shared/strictjson"
)

// Handler is the resend, and its dependencies.
type Handler struct {
	Merchants   operation.Authenticator
	RateLimiter *limit.RateLimiter
	Book        *ledger.Book
	Days        ledger.DayIndex
	Now         func() time.Time
}

// Route returns the route, as in template.yaml.
func (h *Handler) Route() apigw.Route {
	return apigw.Route{Method: "POST", Resource: "/notifications/v1/{webhookId}/resend", Handle: h.Handle}
}

// The message parts of a request.
const (
	partWebhookID = "webhook-id"
	queryID       = "id"
	queryDay      = "day"
)

// maxIDBytes is the longest id of a transaction that is looked up, in bytes.
const maxIDBytes = 255

// resent is the body of the response.
type resent struct {
	Operation    string                `json:"operation"`
	ID           string                `json:"id"`
	Notification resource.Notification `json:"notification"`
}

// Handle queues the notification, and returns 202 with its new state.
func (h *Handler) Handle(ctx context.Context, req *apigw.Request) (apigw.Response, error) {
	profile, err := operation.Authenticate(ctx, req, h.Merchants, h.RateLimiter)
	if err != nil {
		return apigw.Response{}, err
	}
	wanted, err := readTarget(req)
	if err != nil {
		return apigw.Response{}, err
	}
	if reason := profile.ReasonNotAllowed(merchant.OperationResend, "", ""); reason != nil {
		return apigw.Response{}, fault.NotEntitled(reason)
	}
	entry, err := h.find(ctx, profile, wanted)
	if err != nil {
		return apigw.Response{}, err
	}
	req.LogLine.SetTransactionKey(entry.ID)
	req.LogLine.SetRouting(entry.Route.Operator, entry.Route.Country, entry.Request.Channel)
	stored, err := h.resend(ctx, entry, wanted.webhookID)
	if err != nil {
		return apigw.Response{}, err
	}
	body := resent{Operation: string(stored.Kind), ID: stored.ID}
	for _, n := range resource.Notifications(stored) {
		if n.WebhookID == wanted.webhookID {
			body.Notification = n
		}
	}
	return apigw.Response{Status: http.StatusAccepted, Body: strictjson.Marshal(body)}, nil
}

// resend queues the notification by one write.
func (h *Handler) resend(ctx context.Context, entry *ledger.Entry, webhookID string) (*ledger.Entry, error) {
	stored, _, err := h.Book.ChangeKnown(ctx, entry, func(e *ledger.Entry) (ledger.Transition, error) {
		if refusal := e.Outbox.ResendNotification(webhookID, ledger.Timestamp(h.Now())); refusal != "" {
			return ledger.NoTransition, refused(refusal, webhookID)
		}
		return ledger.Resend, nil
	})
	switch f := (*fault.Fault)(nil); {
	case err == nil || errors.As(err, &f):
		return stored, err
	case errors.Is(err, ledger.ErrNotFound):
		return nil, notFound()
	default: // the write may be stored: then the next request finds it outstanding
		return nil, fault.NewInternal(err)
	}
}

func notFound() *fault.Fault { return fault.ForPart(fault.NotFound, partWebhookID) }

// refused is the fault of a refusal. Each but a missing notification is 409, with the refusal as its reason. That of an
// outstanding one has Retry-After.
func refused(refusal ledger.ResendRefusal, webhookID string) *fault.Fault {
	if refusal == ledger.ResendNoNotification {
		return notFound()
	}
	kind := fault.DuplicateKey
	if refusal == ledger.ResendOutstanding {
		kind = fault.RequestInProgress
	}
	return &fault.Fault{Kind: kind, Part: partWebhookID, Value: webhookID, Reason: string(refusal)}
}

// target is the notification that a request names. id is its transaction's, "" for none; day is the UTC day on which
// that was created, if namesDay.
type target struct {
	webhookID, id string
	namesDay      bool // the zero day is a valid date too
	day           time.Time
}

// readTarget reads the path and the query.
func readTarget(req *apigw.Request) (target, error) {
	wanted := target{webhookID: strings.ToLower(req.Params["webhookId"]), id: req.Query[queryID]}
	for _, name := range []string{queryID, queryDay} {
		if value, isSent := req.Query[name]; isSent && value == "" {
			return target{}, fault.BrokenRule(name, logsafe.New("the parameter is empty"))
		}
		if req.RepeatsQuery(name) {
			return target{}, fault.BrokenRule(name, logsafe.New("the parameter is repeated"))
		}
	}
	if len(wanted.id) > maxIDBytes {
		return target{}, fault.BrokenRule(queryID, logsafe.New("it is longer than any id"))
	}
	if text := req.Query[queryDay]; text != "" {
		day, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return target{}, fault.BrokenRule(queryDay, logsafe.New("it is not a date of the form YYYY-MM-DD"))
		}
		wanted.day, wanted.namesDay = day, true
	}
	return wanted, nil
}

// statuses are the statuses with a notification, by the kind of a transaction.
var statuses = map[ledger.Kind][]ledger.Status{
	ledger.Charge:  {ledger.Successful},
	ledger.Payment: {ledger.Successful, ledger.Failed, ledger.Cancelled, ledger.Expired},
	ledger.SMS: {
		ledger.DeliveredToTerminal, ledger.DeliveredToNetwork, ledger.MessageWaiting, ledger.DeliveryImpossible,
		ledger.DeliveryUncertain, ledger.NotificationNotSupp,
	},
}

// isOf reports whether a webhook-id is of a transaction.
func isOf(webhookID string, key ledger.Key) bool {
	return slices.ContainsFunc(statuses[key.Kind], func(status ledger.Status) bool {
		return ledger.NotificationID(key, status) == webhookID
	})
}

// find reads the transaction of a notification. A missing one, one of another merchant, and one past its retention are
// NotFound.
func (h *Handler) find(ctx context.Context, p *merchant.Profile, wanted target) (*ledger.Entry, error) {
	key, found := ledger.Key{}, false
	for _, kind := range []ledger.Kind{ledger.Payment, ledger.SMS} {
		named := ledger.Key{Kind: kind, ID: wanted.id}
		if wanted.id != "" && isOf(wanted.webhookID, named) {
			key, found = named, true
		}
	}
	if !found && isUUID(wanted.webhookID) {
		// The id of a charge's notification is the charge's own.
		entry, err := h.read(ctx, p, ledger.Key{Kind: ledger.Charge, ID: wanted.webhookID})
		if err != nil || entry != nil && len(entry.Outbox.Waiting)+len(entry.Outbox.Delivered) > 0 {
			return entry, err
		}
		if wanted.id == "" {
			if key, found, err = h.search(ctx, p, wanted); err != nil {
				return nil, err
			}
		}
	}
	if !found {
		return nil, notFound()
	}
	entry, err := h.read(ctx, p, key)
	if err == nil && entry == nil {
		err = notFound()
	}
	return entry, err
}

// read reads one of a merchant's entries, nil for none.
func (h *Handler) read(ctx context.Context, p *merchant.Profile, key ledger.Key) (*ledger.Entry, error) {
	entry, err := h.Book.Find(ctx, key)
	if err != nil {
		return nil, fault.NewInternal(err)
	}
	if entry == nil || entry.Merchant.ID != p.ID {
		return nil, nil
	}
	return entry, nil
}

// isUUID reports whether a text has the form of the webhook-ids: a UUID in lower case.
func isUUID(text string) bool {
	const form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	if len(text) != len(form) {
		return false
	}
	for i := range len(form) {
		isDigit := text[i] >= '0' && text[i] <= '9' || text[i] >= 'a' && text[i] <= 'f'
		if isDigit != (form[i] == 'x') || !isDigit && text[i] != '-' {
			return false
		}
	}
	return true
}

const (
	// searchDays is how many days are searched, from today back: longer than a notification is attempted.
	searchDays = 7
	// maxPages bounds the queries of a search, and pageSize the keys of each. A busier merchant names the transaction.
	maxPages = 64
	pageSize = 1000
)

// search finds the transaction of a webhook-id in the merchant's days: the index has the keys, from which the ids of
// the notifications follow. Without a day it reads searchDays of them, from today back. If more than maxPages are left,
// the transaction must be named: MissingPart.
func (h *Handler) search(
	ctx context.Context, p *merchant.Profile, wanted target,
) (key ledger.Key, found bool, err error) {
	today := h.Now().UTC().Truncate(24 * time.Hour)
	first, days := today, searchDays
	if wanted.namesDay {
		first, days = wanted.day, 1
	}
	pages := 0
	for day := range days {
		for shard := range p.ReadDayShards() {
			query := ledger.DayQuery{
				MerchantID: p.ID, Day: first.AddDate(0, 0, -day), Shard: shard, Limit: pageSize,
			}
			for more := true; more; more = query.Cursor != "" {
				if pages++; pages > maxPages {
					return ledger.Key{}, false, fault.ForPart(fault.MissingPart, queryID)
				}
				var keys []ledger.DayKey
				keys, query.Cursor, err = h.Days.Day(ctx, query)
				if err != nil {
					return ledger.Key{}, false, fault.NewInternal(err)
				}
				for _, k := range keys {
					if isOf(wanted.webhookID, k.Key) {
						return k.Key, true, nil
					}
				}
			}
		}
	}
	return ledger.Key{}, false, nil
}
