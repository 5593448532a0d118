package runs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"mobilegateway/internal/file"
)

// The limits of a sorter.
const (
	MaxMemory    = 16 << 20 // bytes of records in memory
	MaxOpen      = 32       // files that are merged at once
	maxRecord    = 1 << 20  // bytes of one record
	bufferedRead = 32 << 10 // bytes of each file that is merged
)

// Sorter sorts records in files of one folder, whose names begin with a name. The files stay until Remove.
type Sorter struct {
	Folder, Name string
	// Files are the finished parts. A sorter that is made with them continues.
	Files []string

	merged  []string // parts of the files, merged
	last    []string // those that Sorted merges, at most MaxOpen
	records [][]byte
	size    int
	memory  int
}

// New returns a sorter that keeps at most MaxMemory bytes of records in memory.
func New(folder, name string) *Sorter { return &Sorter{Folder: folder, Name: name, memory: MaxMemory} }

// Add adds a record, which the caller does not change any more.
func (s *Sorter) Add(record []byte) error {
	if len(record) > maxRecord {
		return fmt.Errorf("a record of %d bytes is longer than %d", len(record), maxRecord)
	}
	const overhead = 40 // of a slice and its allocation
	s.records, s.size = append(s.records, record), s.size+len(record)+overhead
	if s.size > s.memory {
		return s.Flush()
	}
	return nil
}

// Full reports whether a page of records more could exceed half of the memory: the caller flushes at a place that it
// can continue from.
func (s *Sorter) Full() bool { return s.size > s.memory/2 }

// Flush writes what is in memory as a sorted part.
func (s *Sorter) Flush() error {
	if len(s.records) == 0 {
		return nil
	}
	slices.SortFunc(s.records, bytes.Compare)
	name := fmt.Sprintf("%s.%d", s.Name, len(s.Files))
	err := writeAll(filepath.Join(s.Folder, name), slices.Values(s.records))
	if err != nil {
		return err
	}
	s.Files, s.records, s.size = append(s.Files, name), nil, 0
	return nil
}

// Sorted returns all records in order, and may be read again. An error ends them. No record may be added any more.
func (s *Sorter) Sorted() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := s.Flush()
		if s.last == nil {
			s.last = s.Files
		}
		for generation := 0; err == nil && len(s.last) > MaxOpen; generation++ {
			s.last, err = s.mergeGroups(s.last, generation)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		merge(s.paths(s.last))(yield)
	}
}

// mergeGroups merges each MaxOpen files to one. The files stay: a sorter that continues has them.
func (s *Sorter) mergeGroups(files []string, generation int) (merged []string, err error) {
	for group := range slices.Chunk(files, MaxOpen) {
		name := fmt.Sprintf("%s.%d.%d", s.Name, generation, len(merged))
		if err := writeMerged(filepath.Join(s.Folder, name), merge(s.paths(group))); err != nil {
			return nil, err
		}
		merged = append(merged, name)
	}
	s.merged = append(s.merged, merged...)
	return merged, nil
}

func (s *Sorter) paths(names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(s.Folder, name)
	}
	return paths
}

// Remove removes the files, and forgets what is in memory.
func (s *Sorter) Remove() error {
	var faults []error
	for _, path := range s.paths(slices.Concat(s.Files, s.merged)) {
		faults = append(faults, os.Remove(path))
	}
	s.Files, s.merged, s.last, s.records, s.size = nil, nil, nil, nil, 0
	return errors.Join(faults...)
}

// writeMerged writes records that may end with an error.
func writeMerged(path string, records iter.Seq2[[]byte, error]) (err error) {
	failed := writeAll(path, func(yield func([]byte) bool) {
		for record, readErr := range records {
			if err = readErr; err != nil || !yield(record) {
				return
			}
		}
	})
	return errors.Join(err, failed)
}

// writeAll writes records, each behind its length.
func writeAll(path string, records iter.Seq[[]byte]) error {
	created, err := file.Create(path)
	if err != nil {
		return err
	}
	buffer := bufio.NewWriter(created)
	for record := range records {
		writeRecord(buffer, record)
	}
	return errors.Join(buffer.Flush(), created.Close())
}

// writeRecord writes a record behind its length, and returns the number of bytes. Flush returns the first error.
func writeRecord(buffer *bufio.Writer, record []byte) int {
	length := binary.AppendUvarint(nil, uint64(len(record)))
	_, _ = buffer.Write(length)
	_, _ = buffer.Write(record)
	return len(length) + len(record)
}

// part is a file that is read, at its next record.
type part struct {
	file   *os.File
	reader *bufio.Reader
	record []byte
}

// next reads the next record; false at the end.
func (p *part) next() (bool, error) {
	length, err := binary.ReadUvarint(p.reader)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil || length > maxRecord {
		return false, fmt.Errorf("%s is damaged: %w", p.file.Name(), errors.Join(err, errDamaged))
	}
	p.record = make([]byte, length)
	if _, err := io.ReadFull(p.reader, p.record); err != nil {
		return false, fmt.Errorf("%s is damaged: %w", p.file.Name(), err)
	}
	return true, nil
}

var errDamaged = errors.New("a record has no length")

// merge reads sorted files as one.
func merge(paths []string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var open []*part
		defer func() {
			for _, p := range open {
				_ = p.file.Close() // it was only read
			}
		}()
		for _, path := range paths {
			opened, err := os.Open(path)
			if err != nil {
				yield(nil, err)
				return
			}
			p := &part{file: opened, reader: bufio.NewReaderSize(opened, bufferedRead)}
			more, err := p.next()
			if err != nil {
				_ = opened.Close() // it was only read
				yield(nil, err)
				return
			}
			if more {
				open = append(open, p)
			} else {
				_ = opened.Close() // it was only read
			}
		}
		for len(open) > 0 {
			first := slices.MinFunc(open, func(a, b *part) int { return bytes.Compare(a.record, b.record) })
			if !yield(first.record, nil) {
				return
			}
			more, err := first.next()
			if err != nil {
				yield(nil, err)
				return
			}
			if !more {
				open = slices.DeleteFunc(open, func(p *part) bool { return p == first })
				_ = first.file.Close() // it was only read
			}
		}
	}
}
