package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mobilegateway/internal/file"
	"mobilegateway/shared/strictjson"
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

func (r journalRecord) line() []byte { return append(strictjson.Marshal(r), '\n') }

// journal is the open file.
type journal struct {
	*os.File
	size                int64
	sizeAfterCompaction int64
}

func (s *Sandbox) saveTransaction(t *transaction) { s.save(journalRecord{Transaction: t}) }

// save appends a record. If that fails, the sandbox logs it and continues.
func (s *Sandbox) save(r journalRecord) {
	if s.journal == nil || s.closed() {
		return
	}
	n, err := s.journal.Write(r.line())
	s.journal.size += int64(n)
	growth := s.journal.size - s.journal.sizeAfterCompaction
	if err == nil && growth > max(compactionThreshold, 3*s.journal.sizeAfterCompaction) {
		err = s.compactJournal()
	}
	if err != nil {
		s.config.Logf("sandbox: cannot write the journal: %v", err)
	}
}

// openJournal reads the file, compacts it, and resumes the work in progress. Without Config.Dir it does nothing.
func (s *Sandbox) openJournal() error {
	if s.config.Dir == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.config.Dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(s.config.Dir, journalFileName)
	if err := s.loadJournal(path); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := s.compactJournal(); err != nil {
		return err
	}
	for _, t := range s.transactions.all {
		switch {
		case t.State == received:
			s.applyLater(t)
		case t.State == pending && !t.FinalizeAt.IsZero():
			s.finalizeLater(t)
		}
		s.scheduleCallback(t)
	}
	return nil
}

func (s *Sandbox) loadJournal(path string) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	number := 0
	for line := range bytes.Lines(text[:bytes.LastIndexByte(text, '\n')+1]) { // without an incomplete last record
		number++
		var r journalRecord
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		s.restoreRecord(r)
	}
	return nil
}

func (s *Sandbox) restoreRecord(r journalRecord) {
	switch {
	case r.Transaction != nil:
		*s.transactions.findOrCreate(r.Transaction.Kind, r.Transaction.Key) = *r.Transaction
	case r.PIN != nil:
		s.pins[r.PIN.PIN] = r.PIN
	case r.Slot != nil:
		s.slots = append(s.slots, r.Slot)
	case r.FreedSlotID != "":
		s.removeSlot(r.FreedSlotID)
	}
}

// compactJournal replaces the file by the state, without the PINs that are forgotten. After an error the next save
// tries again.
func (s *Sandbox) compactJournal() error {
	path := filepath.Join(s.config.Dir, journalFileName)
	var text []byte
	for _, t := range s.transactions.all {
		text = append(text, journalRecord{Transaction: t}.line()...)
	}
	s.forgetPINs()
	for _, p := range s.pins {
		text = append(text, journalRecord{PIN: p}.line()...)
	}
	for _, v := range s.slots {
		text = append(text, journalRecord{Slot: v}.line()...)
	}
	if err := file.Replace(path, text); err != nil {
		return err
	}
	next, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if s.journal != nil {
		err = s.journal.Close()
	}
	size := int64(len(text))
	s.journal = &journal{next, size, size}
	return err
}
