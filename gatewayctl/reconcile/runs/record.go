// Package runs sorts records that do not fit into memory: sorted parts in files, which are merged.
//
// A record is a list of texts. Records are compared as bytes, so that the first text decides, then the second one. It
// does not depend on transactions. Its invariant: the memory that it uses does not grow with the number of records.
package runs

import (
	"bytes"
	"strings"
)

const (
	separator = "\x00"
	escape    = "\x01"
)

// Pack writes the texts of a record as bytes. The order of records is that of their texts.
func Pack(texts ...string) []byte {
	size := len(texts)
	for _, text := range texts {
		size += len(text)
	}
	record := make([]byte, 0, size)
	for _, text := range texts {
		if strings.ContainsAny(text, separator+escape) {
			text = strings.NewReplacer(separator, escape+"\x01", escape, escape+"\x02").Replace(text)
		}
		record = append(record, text...)
		record = append(record, separator...)
	}
	return record
}

// Unpack returns the texts of a record.
func Unpack(record []byte) []string {
	texts := strings.Split(strings.TrimSuffix(string(record), separator), separator)
	for i, text := range texts {
		if strings.Contains(text, escape) {
			texts[i] = strings.NewReplacer(escape+"\x01", separator, escape+"\x02", escape).Replace(text)
		}
	}
	return texts
}

// First returns the first text of a record.
func First(record []byte) string {
	first, _, _ := bytes.Cut(record, []byte(separator))
	if !bytes.Contains(first, []byte(escape)) {
		return string(first)
	}
	return Unpack(record)[0]
}
