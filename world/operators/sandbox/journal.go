package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mobilegateway/internal/file"
	"mobilegateway/world/operators/kit"
)

// journalFileName is the file under Config.Dir. It has one JSON record a line; a later record of the same thing
// replaces the earlier one. Each change is written to the operating system at once, so it survives the end of the
// process.
const journalFileName = "sandbox.jsonl"

// compactionThreshold is the least growth in bytes before a compaction. The file also grows to four times its size
// after the last compaction.
const compactionThreshold = 64 << 20

// journalRecord is one line. Exactly one of its fields is set.
type journalRecord struct {
	Transaction *transaction `json:"transaction,omitempty"`
	PIN         *pin         `json:"pin,omitempty"`
	Slot        *slot        `json:"slot,omitempty"`
	FreedSlotID string       `json:"slot_gone,omitempty"`
}

func (r journalRecord) line() []byte { return append(marshal(r), '\n') }

// journal keeps the state in a file; without Config.Dir in none.
type journal struct {
	*Sandbox
	file                *os.File // nil: the state is in memory only
	size                int64
	sizeAfterCompaction int64
}

func (s *journal) saveTransaction(t transaction) { s.save(journalRecord{Transaction: &t}) }

// save appends a record. If that fails, the sandbox logs it and continues.
func (s *journal) save(r journalRecord) {
	if s.file == nil || s.Closed() {
		return
	}
	n, err := s.file.Write(r.line())
	s.size += int64(n)
	growth := s.size - s.sizeAfterCompaction
	if err == nil && growth > max(compactionThreshold, 3*s.sizeAfterCompaction) {
		err = s.compact()
	}
	if err != nil {
		s.config.Logf("sandbox: cannot write the journal: %v", err)
	}
}

// open reads the file, compacts it, and resumes the work in progress. Without Config.Dir it does nothing.
func (s *journal) open() error {
	if s.config.Dir == "" {
		return nil
	}
	if err := os.MkdirAll(s.config.Dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(s.config.Dir, journalFileName)
	if err := s.load(path); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := s.compact(); err != nil {
		return err
	}
	for _, k := range s.Transactions() {
		t := of(k)
		switch {
		case t.Status == received:
			s.applyLater(t)
		case !t.FinalizeAt.IsZero():
			s.finalizeLater(t)
		}
		s.Unblock(k)
	}
	return nil
}

func (s *journal) load(path string) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	number := 0
	for line := range bytes.Lines(text[:bytes.LastIndexByte(text, '\n')+1]) { // without an incomplete last record
		number++
		empty := newTransaction("", "")
		r := journalRecord{Transaction: &empty}
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		s.restoreRecord(r)
	}
	return nil
}

func (s *journal) restoreRecord(r journalRecord) {
	switch {
	case r.Transaction.Kind != "":
		s.restoreTransaction(*r.Transaction)
	case r.PIN != nil:
		s.pins.byCode[r.PIN.PIN] = r.PIN
	case r.Slot != nil:
		s.calendar.slots = append(s.calendar.slots, r.Slot)
	case r.FreedSlotID != "":
		s.calendar.removeSlot(r.FreedSlotID)
	}
}

// restoreTransaction takes the state of a transaction, in place of an earlier one since which it has changed.
func (s *journal) restoreTransaction(t transaction) {
	for _, c := range t.Callbacks {
		c.Retries = callbackRetries
	}
	if t.Payment != nil && t.Outcome.Result == kit.Undecided { // also a record of a version that stored no outcome
		t.Outcome = s.OutcomeFor(cmp.Or(t.Payment.RequestedMSISDN, t.Payment.TypedMSISDN))
	}
	if known, found := s.find(t.Kind, t.Key); found {
		*known.Details = *t.Details
		t.Own = known.Details
		*known.Transaction = *t.Transaction
		return
	}
	s.Insert(t.Transaction, false)
}

// compact replaces the file by the state, without the PINs that are forgotten. After an error the next save
// tries again.
func (s *journal) compact() error {
	path := filepath.Join(s.config.Dir, journalFileName)
	var text []byte
	for _, k := range s.Transactions() {
		t := of(k)
		text = append(text, journalRecord{Transaction: &t}.line()...)
	}
	s.pins.forgetPINs()
	for _, p := range s.pins.byCode {
		text = append(text, journalRecord{PIN: p}.line()...)
	}
	for _, v := range s.calendar.slots {
		text = append(text, journalRecord{Slot: v}.line()...)
	}
	if err := file.Replace(path, text); err != nil {
		return err
	}
	next, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if s.file != nil {
		err = s.file.Close()
	}
	s.file, s.size = next, int64(len(text))
	s.sizeAfterCompaction = s.size
	return err
}
