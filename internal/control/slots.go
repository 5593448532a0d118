package control

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
	// controlToken is the variable of the control port's token, where a sandbox asks for one. A secret is no argument.
	controlToken = "SANDBOX_CONTROL_TOKEN"
	maxSlots     = 4 << 20       // bytes of an answer
	longestSlot  = 8 * time.Hour // that the sandbox takes
)

// calendar calls the sandbox's control port.
type calendar struct {
	context.Context
	address, token string
}

func (s *session) calendar() (*calendar, error) {
	address, err := url.Parse(s.SandboxURL)
	if err != nil || address.Host == "" {
		return nil, usage("SANDBOX_URL is not set, or no address: say where the sandbox operator is, or --local")
	}
	return &calendar{s, strings.TrimRight(s.SandboxURL, "/") + "/sandbox/v1/slots", s.Variable(controlToken)}, nil
}

// call makes one call; into is nil where no answer is wanted.
func (c *calendar) call(method, address string, body, into any) error {
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
	answer, err := (&http.Client{}).Do(request)
	if err != nil {
		return fmt.Errorf("the sandbox does not answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxSlots))
	if err != nil {
		return fmt.Errorf("the sandbox does not answer: %w", err)
	}
	if answer.StatusCode == http.StatusUnauthorized {
		return errors.New("the sandbox asks for its control port's token, in " + controlToken)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		var refusal struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(text, &refusal) // what is no JSON has no words
		return fmt.Errorf("the sandbox refuses (%d): %s", answer.StatusCode, refusal.Error)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

func (c *calendar) list() ([]slot, error) {
	slots := []slot{}
	err := c.call(http.MethodGet, c.address, nil, &slots)
	return slots, err
}

func (c *calendar) book(wanted slot) (booked slot, err error) {
	return booked, c.call(http.MethodPost, c.address, wanted, &booked)
}

func (c *calendar) free(id string) error {
	return c.call(http.MethodDelete, c.address+"/"+url.PathEscape(id), nil, nil)
}

// mayBook says whether a slot would be refused, without booking it.
func (c *calendar) mayBook(wanted slot) error {
	taken, err := c.list()
	for _, other := range taken {
		if wanted.StartsAt.Before(other.EndsAt) && other.StartsAt.Before(wanted.EndsAt) {
			return fmt.Errorf("taken by slot %s of %s until %s", other.ID, other.Merchant, moment(other.EndsAt))
		}
	}
	return err
}

// mayFree says whether there is such a slot.
func (c *calendar) mayFree(id string) error {
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
		rows = append(rows, []string{v.ID, v.Merchant, moment(v.StartsAt), moment(v.EndsAt)})
	}
	return s.show(slots, rows)
}

type slotBook struct {
	named
	At  string        `placeholder:"TIME" help:"When it begins (RFC 3339); without, now."`
	For time.Duration `default:"1h" help:"How long, up to 8 hours."`
}

// Run books the slot. The merchant is one of the gateway's, so that the calendar speaks of it by its name.
func (c *slotBook) Run(s *session) error {
	at := s.Now().UTC().Truncate(time.Second)
	if c.At != "" {
		var err error
		if at, err = parseMoment(c.At); err != nil {
			return err
		}
	}
	if c.For <= 0 || c.For > longestSlot {
		return usage("--for is more than nothing, and up to 8 hours")
	}
	if !at.Add(c.For).After(s.Now()) {
		return usage("the slot would be over: it ends at %s", moment(at.Add(c.For)))
	}
	slots, err := s.calendar()
	if err != nil {
		return err
	}
	p, err := s.merchant(c.Name)
	if err != nil {
		return err
	}
	wanted := slot{Merchant: p.Name, StartsAt: at, EndsAt: at.Add(c.For)}
	err = s.hand.act(Act{"book a slot", p.Name}, func() (string, error) {
		wanted, err = s.hand.bookSlot(slots, wanted)
		return fmt.Sprintf("%s to %s", moment(wanted.StartsAt), moment(wanted.EndsAt)), err
	})
	if err != nil {
		return err
	}
	return showSlots(s, []slot{wanted})
}

type slotList struct{}

// Run lists the slots.
func (c *slotList) Run(s *session) error {
	slots, err := s.calendar()
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

// freed is the slot that is no more.
type freed struct {
	ID string `json:"freed"`
}

// Run frees the slot.
func (c *slotFree) Run(s *session) error {
	slots, err := s.calendar()
	if err != nil {
		return err
	}
	err = s.hand.act(Act{"free a slot", c.ID}, func() (string, error) {
		return "freed", s.hand.freeSlot(slots, c.ID)
	})
	if err != nil {
		return err
	}
	return s.show(freed{c.ID}, table{{"freed", c.ID}})
}
