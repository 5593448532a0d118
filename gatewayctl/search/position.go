package search

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"time"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/merchant"
)

// position is how far a search came. It has all that the next page needs beside the filters: new merchants,
// new partitions and new transactions change nothing in a search that has begun.
type position struct {
	Version    int          `json:"v"`
	Filter     string       `json:"f"` // identifies the filters
	Since      int64        `json:"s"` // in milliseconds, as Until
	Until      int64        `json:"u"`
	Day        int64        `json:"d"` // when the day begins that is read now
	Merchants  []merchantAt `json:"m"`
	Partitions []progress   `json:"p"` // of that day: those of the first merchant, of the second one, and so on
}

// merchantAt is a merchant of the search, with the number of its partitions when it began.
type merchantAt struct {
	ID     string `json:"i"`
	Shards int    `json:"n,omitempty"`
}

// progress is how far one partition of the day was searched.
type progress struct {
	Cursor string `json:"c,omitempty"` // of the last key that was searched
	Bound  int64  `json:"b,omitempty"` // no other key of it is newer: milliseconds of the day
	Ended  bool   `json:"e,omitempty"`
}

// positionVersion changes with the meaning of a field.
const positionVersion = 1

// Limits of a continuation, in bytes: of its text, and of what it decompresses to.
const (
	maxTokenBytes    = 128 << 10
	maxPositionBytes = 1 << 20

	maxShards = merchant.MaxDayShards
)

// The errors of a continuation.
var (
	errTorn = errors.New("the continuation is damaged or not whole: copy it again from the page before, " +
		"or begin the search again without it")
	errOtherSearch = errors.New("the continuation is of another search: repeat the filters and the time range of its " +
		"search, or begin again without it")
	errOtherVersion = errors.New("the continuation is of another version of gatewayctl: begin the search again " +
		"without it")
)

// identity identifies the filters of a search. It does not contain the payer's digits in a readable form.
func (f Filter) identity() string {
	text, _ := json.Marshal(f) // a struct of strings
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// encode returns the position as a word that a shell and a URL leave as it is. Its checksum finds a torn one.
func (p position) encode() string {
	var packed bytes.Buffer
	packed.Write(make([]byte, crc32.Size))
	writer, _ := flate.NewWriter(&packed, flate.BestCompression) // the level is valid
	_ = json.NewEncoder(writer).Encode(p)                        // a Buffer never fails
	_ = writer.Close()
	binary.BigEndian.PutUint32(packed.Bytes(), crc32.ChecksumIEEE(packed.Bytes()[crc32.Size:]))
	return base64.RawURLEncoding.EncodeToString(packed.Bytes())
}

// decodePosition reads a continuation, and refuses one of other filters.
func decodePosition(token string, f Filter) (position, error) {
	var p position
	packed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(token) > maxTokenBytes || len(packed) < crc32.Size ||
		binary.BigEndian.Uint32(packed) != crc32.ChecksumIEEE(packed[crc32.Size:]) {
		return p, errTorn
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed[crc32.Size:])), maxPositionBytes))
	if err != nil || json.Unmarshal(text, &p) != nil {
		return p, errTorn
	}
	switch {
	case p.Version != positionVersion:
		return p, errOtherVersion
	case p.Filter != f.identity():
		return p, errOtherSearch
	case !p.isWhole():
		return p, errTorn
	}
	return p, nil
}

// isWhole reports whether each partition has its progress, in the bounds of the day.
func (p position) isWhole() bool {
	shards := 0
	for _, m := range p.Merchants {
		if m.ID == "" || m.Shards < 0 || m.Shards > maxShards {
			return false
		}
		shards += max(1, m.Shards)
	}
	for _, s := range p.Partitions {
		if s.Bound < 0 || s.Bound >= day.Milliseconds() {
			return false
		}
	}
	isDay := p.Day%day.Milliseconds() == 0 && p.Day <= p.Until && p.Day > p.Since-day.Milliseconds()
	return isDay && p.Since < p.Until && shards == len(p.Partitions)
}

// partition is one partition of the day index that a page reads.
type partition struct {
	merchantID string
	shard      int
	cursor     string          // of the last key that was searched
	bound      time.Time       // no key that is not ready is newer
	ready      []ledger.DayKey // read and not yet searched
	taken      int             // how many of ready are in the batch that is read now
	next       string          // the store's cursor behind ready
	ended      bool            // the store has no key behind ready
}

// newest returns an upper bound of the time of the next key, and false at the end of the partition. known is false for
// a key that was not read.
func (p *partition) newest() (at time.Time, known, exists bool) {
	switch {
	case p.taken < len(p.ready):
		return p.ready[p.taken].CreatedAt, true, true
	case p.ended:
		return at, false, false
	case p.taken > 0:
		return p.ready[p.taken-1].CreatedAt, false, true
	}
	return p.bound, false, true
}

// searched removes the first ready key.
func (p *partition) searched() {
	p.cursor, p.bound = p.ready[0].Cursor(), p.ready[0].CreatedAt
	p.ready, p.taken = p.ready[1:], p.taken-1
}

// progress returns how far the partition was searched. The keys of the batch are not searched.
func (p *partition) progress() progress {
	p.taken = 0
	at, _, exists := p.newest()
	if !exists {
		return progress{Ended: true}
	}
	return progress{Cursor: p.cursor, Bound: at.UnixMilli() - at.Truncate(day).UnixMilli()}
}
