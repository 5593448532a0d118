package runs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"mobilegateway/internal/file"
)

// indexStep is how many records of an index share one start in memory.
const indexStep = 256

// Index finds records by their first text, in a file that is sorted by it.
type Index struct {
	file   *os.File
	starts []start // of each indexStep-th record
}

type start struct {
	key    string
	offset int64
}

// NewIndex writes the sorted records of a sorter to a file in its folder. Of records with one first text the last one
// is found. The caller closes the index.
func NewIndex(s *Sorter) (*Index, error) {
	created, err := file.Create(filepath.Join(s.Folder, s.Name+".index"))
	if err != nil {
		return nil, err
	}
	x, buffer, offset, count := &Index{file: created}, bufio.NewWriter(created), int64(0), 0
	for record, err := range s.Sorted() {
		if err != nil {
			return nil, errors.Join(err, created.Close())
		}
		if count%indexStep == 0 {
			x.starts = append(x.starts, start{First(record), offset})
		}
		count++
		offset += int64(writeRecord(buffer, record))
	}
	if err := buffer.Flush(); err != nil {
		return nil, errors.Join(err, created.Close())
	}
	return x, nil
}

// Find returns the texts of a record, nil if there is none.
func (x *Index) Find(key string) ([]string, error) {
	at, _ := slices.BinarySearchFunc(x.starts, key, func(p start, key string) int {
		return bytes.Compare(Pack(p.key), Pack(key))
	})
	begin := int64(0)
	if at > 0 {
		begin = x.starts[at-1].offset // records with this key may begin before its own start
	}
	p := &part{file: x.file, reader: bufio.NewReader(io.NewSectionReader(x.file, begin, 1<<62))}
	var found []string
	for {
		more, err := p.next()
		if err != nil {
			return nil, fmt.Errorf("find a record: %w", err)
		}
		if !more || First(p.record) > key {
			return found, nil
		}
		if First(p.record) == key {
			found = Unpack(p.record)
		}
	}
}

// Close closes the file.
func (x *Index) Close() error { return x.file.Close() }
