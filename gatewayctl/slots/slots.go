// Package slots has gatewayctl's commands for the bookable test times at the sandbox operator.
package slots

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
	"mobilegateway/shared/merchant"
	"mobilegateway/shared/operator"
)

// Limits of the calls to the control port.
const (
	slotTimeout = 10 * time.Second
	// controlTokenVariable has the control port's token if a sandbox needs one. No flag has it, because it is a secret.
	controlTokenVariable = "SANDBOX_CONTROL_TOKEN"
	maxSlotResponseBytes = 4 << 20
	maxSlotLength        = 8 * time.Hour // the sandbox's own limit
)

type slotClient struct {
	*session.Session
	address string
}

// call sends one request and decodes the response into result, unless that is nil.
func (c *slotClient) call(method, address string, body []byte, result any) error {
	request, err := http.NewRequestWithContext(c, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if token := c.Getenv(controlTokenVariable); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{
		Timeout: slotTimeout,
		// A redirect would carry the token to another address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var text []byte
	response, err := client.Do(request)
	if err == nil {
		defer func() { _ = response.Body.Close() }() // it was only read
		text, err = io.ReadAll(io.LimitReader(response.Body, maxSlotResponseBytes))
	}
	if err != nil {
		return fmt.Errorf("the sandbox does not respond, check SANDBOX_URL: %w", err)
	}
	if response.StatusCode == http.StatusUnauthorized {
		return errors.New("the sandbox refuses the control port's token: set " + controlTokenVariable)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		var refusal struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(text, &refusal) // without JSON only the status is reported
		return fmt.Errorf("the sandbox refuses (%d): %s", response.StatusCode, refusal.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}

func (c *slotClient) list() (slots []Slot, err error) {
	err = c.call(http.MethodGet, c.address, nil, &slots)
	return slots, err
}

// book books a slot. A dry run only checks that no other slot has the same time.
func (c *slotClient) book(requested Slot) (booked Slot, err error) {
	if c.Yes {
		body, err := json.Marshal(requested)
		if err == nil {
			err = c.call(http.MethodPost, c.address, body, &booked)
		}
		return booked, err
	}
	slots, err := c.list()
	for _, other := range slots {
		if requested.StartsAt.Before(other.EndsAt) && other.StartsAt.Before(requested.EndsAt) {
			return booked, fmt.Errorf("taken by slot %s of %s until %s",
				other.ID, other.Merchant, output.FormatTime(other.EndsAt))
		}
	}
	return requested, err
}

// free frees a slot. A dry run only checks that it exists.
func (c *slotClient) free(id string) error {
	if c.Yes {
		return c.call(http.MethodDelete, c.address+"/"+url.PathEscape(id), nil, nil)
	}
	booked, err := c.list()
	if err == nil && !slices.ContainsFunc(booked, func(other Slot) bool { return other.ID == id }) {
		err = fmt.Errorf("there is no such slot %q: slot list shows all", id)
	}
	return err
}

// Commands are the commands below slot.
type Commands struct {
	Book slotBook `cmd:"" help:"Book a time for a merchant's end-to-end test."`
	List slotList `cmd:"" help:"List the booked times."`
	Free slotFree `cmd:"" help:"Free a booked time."`
}

// ProvideClient returns the client for the Run methods below slot (kong's provider).
func (Commands) ProvideClient(s *session.Session) (*slotClient, error) {
	if err := operator.CheckBaseURL(s.SandboxURL); err != nil {
		return nil, output.UsageError("SANDBOX_URL %w: set it to the sandbox's address, or use --local", err)
	}
	return &slotClient{s, strings.TrimRight(s.SandboxURL, "/") + "/sandbox/v1/slots"}, nil
}

// Slot is a booked time.
type Slot struct {
	ID       string    `json:"id,omitempty" col:"ID"`
	Merchant string    `json:"merchant" col:"MERCHANT"`
	StartsAt time.Time `json:"starts_at" col:"FROM"`
	EndsAt   time.Time `json:"ends_at" col:"TO"`
}

type slotBook struct {
	session.MerchantArgument
	Start    session.Moment `placeholder:"TIME" help:"When it begins (RFC 3339); now if not given."`
	Duration time.Duration  `default:"1h" help:"How long, up to 8 hours."`
}

// Validate refuses a duration that the sandbox would refuse.
func (c *slotBook) Validate() error {
	if c.Duration <= 0 || c.Duration > maxSlotLength {
		return fmt.Errorf("--duration %s is not more than 0 and up to 8 hours", c.Duration)
	}
	return nil
}

// Run books the slot for a merchant of the gateway, under its name.
func (c *slotBook) Run(s *session.Session, p *merchant.Profile, slots *slotClient) error {
	starts := cmp.Or(c.Start.Time, s.Now().UTC().Truncate(time.Second))
	requested := Slot{Merchant: p.Name, StartsAt: starts, EndsAt: starts.Add(c.Duration)}
	if !requested.EndsAt.After(s.Now()) {
		return output.UsageError("the slot would be over: it ends at %s; choose a later --start",
			output.FormatTime(requested.EndsAt))
	}
	return s.ExecuteAndShow("book a slot", p.Name, func() (_ string, err error) {
		requested, err = slots.book(requested)
		return fmt.Sprintf("%s to %s", output.FormatTime(requested.StartsAt), output.FormatTime(requested.EndsAt)), err
	}, func() error { return session.ShowList(s, []Slot{requested}) })
}

type slotList struct{}

// Run lists the slots.
func (c *slotList) Run(s *session.Session, slots *slotClient) error {
	booked, err := slots.list()
	if err != nil {
		return err
	}
	return session.ShowList(s, booked)
}

type slotFree struct {
	ID string `arg:"" help:"The slot's id in the list."`
}

// Run frees the slot.
func (c *slotFree) Run(s *session.Session, slots *slotClient) error {
	return s.ExecuteAndShow("free a slot", c.ID,
		func() (string, error) { return "freed", slots.free(c.ID) },
		func() error { return s.ShowView(FreedSlot{c.ID}) })
}

// FreedSlot is a slot that was freed.
type FreedSlot struct {
	ID string `json:"freed" row:"freed"`
}
