package gatewayctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

type slotCommands struct {
	Book slotBook `cmd:"" help:"Book a time for a merchant's end-to-end test."`
	List slotList `cmd:"" help:"List what is booked."`
	Free slotFree `cmd:"" help:"Free a booked time."`
}

// slot is a booked time, as the sandbox's control port has it.
type slot struct {
	ID       string    `json:"id,omitempty"`
	Merchant string    `json:"merchant"`
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
}

// Limits of the calls to the control port.
const (
	slotTimeout = 10 * time.Second
	// controlTokenVariable is the variable of the control port's token, where a sandbox asks for one. A secret is no argument.
	controlTokenVariable = "SANDBOX_CONTROL_TOKEN"
	maxSlotResponseBytes = 4 << 20       // bytes of an answer
	maxSlotLength        = 8 * time.Hour // that the sandbox takes
)

// slotClient calls the sandbox's control port.
type slotClient struct {
	context.Context
	address, token string
}

func (s *session) newSlotClient() (*slotClient, error) {
	address, err := url.Parse(s.SandboxURL)
	if err != nil || address.Host == "" {
		return nil, usageError("SANDBOX_URL is not set, or no address: say where the sandbox operator is, or --local")
	}
	return &slotClient{s, strings.TrimRight(s.SandboxURL, "/") + "/sandbox/v1/slots", s.Getenv(controlTokenVariable)}, nil
}

// do makes one call; into is nil where no answer is wanted.
func (c *slotClient) do(method, address string, body, result any) error {
	ctx, cancel := context.WithTimeout(c, slotTimeout)
	defer cancel()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := (&http.Client{}).Do(request)
	if err != nil {
		return fmt.Errorf("the sandbox does not answer: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(response.Body, maxSlotResponseBytes))
	if err != nil {
		return fmt.Errorf("the sandbox does not answer: %w", err)
	}
	if response.StatusCode == http.StatusUnauthorized {
		return errors.New("the sandbox asks for its control port's token, in " + controlTokenVariable)
	}
	if response.StatusCode >= http.StatusBadRequest {
		var refusal struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(text, &refusal) // what is no JSON has no words
		return fmt.Errorf("the sandbox refuses (%d): %s", response.StatusCode, refusal.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}

func (c *slotClient) list() ([]slot, error) {
	slots := []slot{}
	err := c.do(http.MethodGet, c.address, nil, &slots)
	return slots, err
}

func (c *slotClient) book(requested slot) (booked slot, err error) {
	return booked, c.do(http.MethodPost, c.address, requested, &booked)
}

func (c *slotClient) free(id string) error {
	return c.do(http.MethodDelete, c.address+"/"+url.PathEscape(id), nil, nil)
}

// checkBookable says whether a slot would be refused, without booking it.
func (c *slotClient) checkBookable(requested slot) error {
	taken, err := c.list()
	for _, other := range taken {
		if requested.StartsAt.Before(other.EndsAt) && other.StartsAt.Before(requested.EndsAt) {
			return fmt.Errorf("taken by slot %s of %s until %s", other.ID, other.Merchant, formatTime(other.EndsAt))
		}
	}
	return err
}

// checkExists says whether there is such a slot.
func (c *slotClient) checkExists(id string) error {
	taken, err := c.list()
	if err != nil {
		return err
	}
	for _, other := range taken {
		if other.ID == id {
			return nil
		}
	}
	return errors.New("there is no such slot")
}

func showSlots(s *session, slots []slot) error {
	rows := table{{"ID", "MERCHANT", "FROM", "TO"}}
	for _, v := range slots {
		rows = append(rows, []string{v.ID, v.Merchant, formatTime(v.StartsAt), formatTime(v.EndsAt)})
	}
	return s.show(slots, rows)
}

type slotBook struct {
	merchantArgument
	Start    string        `placeholder:"TIME" help:"When it begins (RFC 3339); without, now."`
	Duration time.Duration `default:"1h" help:"How long, up to 8 hours."`
}

// Run books the slot. The merchant is one of the gateway's, so that the calendar speaks of it by its name.
func (c *slotBook) Run(s *session) error {
	at := s.Now().UTC().Truncate(time.Second)
	if c.Start != "" {
		var err error
		if at, err = parseMoment(c.Start); err != nil {
			return err
		}
	}
	if c.Duration <= 0 || c.Duration > maxSlotLength {
		return usageError("--duration is more than nothing, and up to 8 hours")
	}
	if !at.Add(c.Duration).After(s.Now()) {
		return usageError("the slot would be over: it ends at %s", formatTime(at.Add(c.Duration)))
	}
	slots, err := s.newSlotClient()
	if err != nil {
		return err
	}
	p, err := s.findMerchant(c.Name)
	if err != nil {
		return err
	}
	requested := slot{Merchant: p.Name, StartsAt: at, EndsAt: at.Add(c.Duration)}
	err = s.changes.execute(Action{"book a slot", p.Name}, func() (string, error) {
		requested, err = s.changes.bookSlot(slots, requested)
		return fmt.Sprintf("%s to %s", formatTime(requested.StartsAt), formatTime(requested.EndsAt)), err
	})
	if err != nil {
		return err
	}
	return showSlots(s, []slot{requested})
}

type slotList struct{}

// Run lists the slots.
func (c *slotList) Run(s *session) error {
	slots, err := s.newSlotClient()
	if err != nil {
		return err
	}
	booked, err := slots.list()
	if err != nil {
		return err
	}
	return showSlots(s, booked)
}

type slotFree struct {
	ID string `arg:"" help:"The slot's id in the list."`
}

// freedSlot is the slot that is no more.
type freedSlot struct {
	ID string `json:"freed"`
}

// Run frees the slot.
func (c *slotFree) Run(s *session) error {
	slots, err := s.newSlotClient()
	if err != nil {
		return err
	}
	err = s.changes.execute(Action{"free a slot", c.ID}, func() (string, error) {
		return "freed", s.changes.freeSlot(slots, c.ID)
	})
	if err != nil {
		return err
	}
	return s.show(freedSlot{c.ID}, table{{"freed", c.ID}})
}
