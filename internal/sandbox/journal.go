package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// journal is the open file. A nil journal keeps nothing.
type journal struct {
	path                string
	file                *os.File
	size                int64
	sizeAfterCompaction int64
}

func (j *journal) append(r journalRecord) error {
	n, err := j.file.Write(append(encode(r), '\n'))
	j.size += int64(n)
	return err
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}

func (s *Sandbox) saveTransaction(t *transaction) { s.save(journalRecord{Transaction: t}) }

// save appends a record. If that fails, the sandbox logs it and continues.
func (s *Sandbox) save(r journalRecord) {
	if s.journal == nil || s.closed() {
		return
	}
	err := s.journal.append(r)
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
	err := os.MkdirAll(s.config.Dir, 0o700)
	if err != nil {
		return err
	}
	path := filepath.Join(s.config.Dir, journalFileName)
	err = s.loadJournal(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	s.journal = &journal{path: path}
	err = s.compactJournal()
	if err != nil {
		return err
	}
	for _, t := range s.transactions.all {
		s.resumeTimers(t)
	}
	return nil
}

func (s *Sandbox) loadJournal(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // text after the last line end is an incomplete record
		}
		if err != nil {
			return err
		}
		var r journalRecord
		err = json.Unmarshal(line, &r)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		s.restoreRecord(r)
	}
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

// resumeTimers sets a transaction's timers again.
func (s *Sandbox) resumeTimers(t *transaction) {
	switch {
	case t.State == received:
		s.applyLater(t)
	case t.State == pending && !t.FinalizeAt.IsZero():
		s.finalizeLater(t)
	}
	s.scheduleCallback(t)
}

// compactJournal writes the state to a new file, which replaces the old one.
func (s *Sandbox) compactJournal() error {
	next := &journal{path: s.journal.path}
	newPath := next.path + ".new"
	file, err := os.OpenFile(newPath, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	next.file = file
	for _, r := range s.liveRecords() {
		err = next.append(r)
		if err != nil {
			return errors.Join(err, file.Close())
		}
	}
	err = os.Rename(newPath, next.path)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	next.sizeAfterCompaction = next.size
	if s.journal.file != nil {
		err = s.journal.file.Close()
	}
	s.journal = next
	return err
}

// liveRecords returns the whole state, without the PINs that are forgotten.
func (s *Sandbox) liveRecords() []journalRecord {
	s.forgetPINs()
	var all []journalRecord
	for _, t := range s.transactions.all {
		all = append(all, journalRecord{Transaction: t})
	}
	for _, p := range s.pins {
		all = append(all, journalRecord{PIN: p})
	}
	for _, v := range s.slots {
		all = append(all, journalRecord{Slot: v})
	}
	return all
}
