package gatewayctltest

import (
	"strconv"
	"time"

	"mobilegateway/gatewayctl/deliveries"
	"mobilegateway/gatewayctl/merchants"
	"mobilegateway/proof/kits/storetest"
	"mobilegateway/shared/ledger"
)

// AddDeliveredPayment stores a payment whose success was delivered, with changes.
func (d *Tool) AddDeliveredPayment(
	shop merchants.Onboarding, number int, at time.Time, changes ...func(*ledger.Entry),
) *ledger.Entry {
	id := shop.Name + "_" + strconv.Itoa(number)
	key := ledger.Key{Kind: ledger.Payment, ID: id}
	e := &ledger.Entry{
		Key: key, Merchant: ledger.Merchant{ID: shop.ID, Name: shop.Name}, Version: 3,
		Call:      ledger.Call{State: ledger.Done, SentAt: at, ReservedAt: at},
		Progress:  ledger.Progress{Status: ledger.Successful, FinalAt: at.Add(time.Second)},
		CreatedAt: at, UpdatedAt: at.Add(time.Second),
		Route:   ledger.Route{Operator: "sandbox", Account: "a1", Country: "CI", UpstreamKey: id},
		Request: ledger.Request{Channel: "ussd", MSISDN: "0707072000"},
		Amount:  ledger.Amount{Minor: 1000, Currency: "XOF"}, Response: ledger.Response{Status: 201},
		Outbox: ledger.Outbox{
			URL: "https://shop.example/n", Delivered: []ledger.Notification{{
				ID: ledger.NotificationID(key, ledger.Successful), Status: ledger.Successful, At: at.Add(time.Second),
				Attempts: 1, DeliveredAt: at.Add(2 * time.Second),
			}},
		},
	}
	d.change(e, changes)
	return e
}

// change stores an entry with changes, which the due index follows.
func (d *Tool) change(e *ledger.Entry, changes []func(*ledger.Entry)) {
	for _, change := range changes {
		change(e)
	}
	e.Reschedule()
	d.Ledger.Overwrite(e)
}

// AddPendingPayment stores a payment without a final status, which is looked up a minute later, with changes.
func (d *Tool) AddPendingPayment(
	shop merchants.Onboarding, number int, at time.Time, changes ...func(*ledger.Entry),
) *ledger.Entry {
	return d.AddDeliveredPayment(shop, number, at, append([]func(*ledger.Entry){func(e *ledger.Entry) {
		e.Status, e.FinalAt, e.Outbox.Delivered, e.Poll.At = ledger.Pending, time.Time{}, nil, at.Add(time.Minute)
	}}, changes...)...)
}

// AddUnknownCharge stores a charge whose outcome is unknown.
func (d *Tool) AddUnknownCharge(shop merchants.Onboarding, correlator string) ledger.Key {
	return d.addUnknown(shop, &ledger.Entry{
		Key:     ledger.Key{Kind: ledger.Charge, ID: ledger.ChargeID(shop.ID, correlator, "")},
		Amount:  ledger.Amount{Minor: 150, Exponent: 2, Currency: "USD"},
		Request: ledger.Request{Correlator: correlator, ReferenceCode: "=1+1"},
	})
}

// addUnknown stores an entry whose outcome is unknown.
func (d *Tool) addUnknown(shop merchants.Onboarding, e *ledger.Entry) ledger.Key {
	e.Merchant.ID, e.Merchant.Name, e.Owner, e.Route.Operator = shop.ID, shop.Name, "o", "sandbox"
	e.State, e.EverUnknown, e.Version = ledger.Unknown, true, 2
	e.CreatedAt, e.SentAt, e.ReservedAt, e.Poll.At = d.Now, d.Now, d.Now, d.Now.Add(time.Hour)
	e.Reschedule()
	d.Ledger.Overwrite(e)
	return e.Key
}

// AddUnknownSMS stores an SMS whose outcome is unknown.
func (d *Tool) AddUnknownSMS(shop merchants.Onboarding, correlator string) ledger.Key {
	return d.addUnknown(shop, &ledger.Entry{
		Key:     ledger.Key{Kind: ledger.SMS, ID: ledger.SMSID(shop.ID, correlator)},
		Request: ledger.Request{Correlator: correlator}, Outbox: ledger.Outbox{URL: "https://shop.example/r"},
	})
}

// AddUnknownPayment stores a payment whose outcome is unknown.
func (d *Tool) AddUnknownPayment(shop merchants.Onboarding) ledger.Key {
	return d.AddPendingPayment(shop, 1, d.Now, func(e *ledger.Entry) { e.State = ledger.Unknown }).Key
}

// AddWaitingPayment stores a payment whose notification failed four times and waits for five hours.
func (d *Tool) AddWaitingPayment(
	shop merchants.Onboarding, number int, changes ...func(*ledger.Entry),
) *ledger.Entry {
	e := d.AddDeliveredPayment(shop, number, d.Now)
	e.Outbox.Waiting, e.Outbox.Delivered = e.Outbox.Delivered, nil
	head := &e.Outbox.Waiting[0]
	head.DeliveredAt, head.Attempts, head.NextAttemptAt = time.Time{}, 4, d.Now.Add(5*time.Hour)
	d.change(e, changes)
	return e
}

// FailWritesOf makes each write of a transaction fail.
func (d *Tool) FailWritesOf(id string) {
	d.Ledger.InjectFaults(func(c storetest.Call) storetest.Fault {
		if c.Operation == storetest.Replace && c.Key.ID == id {
			return storetest.FailedBeforeApply
		}
		return storetest.NoFault
	})
}

// ShopURL is the notif_url of ShopA.
const ShopURL = "https://shop.example/n"

// ToShop is the destination of transactions to ShopA's address.
func ToShop(count int) []deliveries.DestinationCount {
	return []deliveries.DestinationCount{{Destination: deliveries.Destination{URL: ShopURL}, Transactions: count}}
}
