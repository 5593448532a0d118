package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// journalFileName is the file under Config.Dir: one JSON record a line, the last record of a thing holds. It is written
// through to the system with each change, so that it survives the end of the process at any moment.
const journalFileName = "sandbox.jsonl"

// compactionThreshold is how many bytes the file grows before it is written anew without what is out of date; at least that,
// and at least three times what it held then.
const compactionThreshold = 64 << 20

// journalRecord is one line: one of its fields is set.
type journalRecord struct {
	Transaction *transaction `json:"transaction,omitempty"`
	PIN         *pin         `json:"pin,omitempty"`
	Slot        *slot        `json:"slot,omitempty"`
	FreedSlotID string       `json:"slot_gone,omitempty"`
}

// journal is the open file; nil where there is none.
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

func (j *journal) needsCompaction() bool {
	return j.size-j.sizeAfterCompaction > max(compactionThreshold, 3*j.sizeAfterCompaction)
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}

// saveTransaction keeps a transaction. A file that cannot be written is told once a change in the log; the sandbox goes on.
func (s *Sandbox) saveTransaction(t *transaction) { s.appendToJournal(journalRecord{Transaction: t}) }

func (s *Sandbox) appendToJournal(r journalRecord) {
	if s.journal == nil || s.closed {
		return
	}
	err := s.journal.append(r)
	if err == nil && s.journal.needsCompaction() {
		err = s.compactJournal()
	}
	if err != nil {
		s.config.Logf("sandbox: cannot keep state: %v", err)
	}
}

// openJournal reads the file, writes it anew without what is out of date, and takes up what was under way.
func (s *Sandbox) openJournal() error {
	if s.config.Dir == "" {
		return nil
	}
	err := os.MkdirAll(s.config.Dir, 0o700)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	s.journal = &journal{path: filepath.Join(s.config.Dir, journalFileName)}
	err = s.loadJournal()
	if err != nil {
		return fmt.Errorf("sandbox: reading %s: %w", s.journal.path, err)
	}
	err = s.compactJournal()
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.transactions.all {
		s.resumeTimers(t)
	}
	return nil
}

func (s *Sandbox) loadJournal() error {
	file, err := os.Open(s.journal.path)
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
			return nil // what stands after the last line end was never written whole
		}
		if err != nil {
			return err
		}
		var r journalRecord
		err = json.Unmarshal(bytes.TrimSpace(line), &r)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		s.restoreRecord(r)
	}
}

func (s *Sandbox) restoreRecord(r journalRecord) {
	switch {
	case r.Transaction != nil:
		t := s.transactions.findOrCreate(r.Transaction.Kind, r.Transaction.Key)
		*t = *r.Transaction
		s.transactions.indexPage(t)
	case r.PIN != nil:
		s.storePIN(r.PIN)
	case r.Slot != nil:
		s.slots = append(s.slots, r.Slot)
	case r.FreedSlotID != "":
		s.removeSlot(r.FreedSlotID)
	}
}

// resumeTimers sets the timers that a transaction had when the sandbox ended.
func (s *Sandbox) resumeTimers(t *transaction) {
	switch {
	case t.State == received:
		s.applyLater(t)
	case t.State == pending && !t.FinalizeAt.IsZero():
		s.finalizeLater(t)
	}
	s.scheduleCallback(t)
}

// compactJournal writes what is known to a new file and puts it in the place of the old one.
func (s *Sandbox) compactJournal() error {
	next := &journal{path: s.journal.path}
	file, err := os.OpenFile(next.path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
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
	err = os.Rename(next.path+".new", next.path)
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

// liveRecords are all that is worth keeping: PINs until a while after they expire, the rest for ever.
func (s *Sandbox) liveRecords() []journalRecord {
	var all []journalRecord
	for _, t := range s.transactions.all {
		all = append(all, journalRecord{Transaction: t})
	}
	for _, p := range s.pins {
		if !s.pinForgotten(p, s.now()) {
			all = append(all, journalRecord{PIN: p})
		}
	}
	for _, v := range s.slots {
		all = append(all, journalRecord{Slot: v})
	}
	return all
}
