package statement

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// The encodings of a mapping and of --encoding.
const (
	UTF8    = "utf-8"
	UTF16LE = "utf-16le"
	UTF16BE = "utf-16be"
	Latin1  = "latin-1"
)

// Encodings lists the encodings.
func Encodings() []string { return []string{UTF8, UTF16LE, UTF16BE, Latin1} }

// MaxLine is the longest line, in bytes of UTF-8.
const MaxLine = 64 << 10

var byteOrderMarks = []struct {
	mark     string
	encoding string
}{{"\xef\xbb\xbf", UTF8}, {"\xff\xfe", UTF16LE}, {"\xfe\xff", UTF16BE}}

// errNotUTF8 is what a line of another encoding gets, without one that was declared.
var errNotUTF8 = errors.New("is not UTF-8: give --encoding latin-1, or \"encoding\" in the mapping")

// lineReader reads the lines of a file as UTF-8.
type lineReader struct {
	in     *bufio.Reader
	number int  // of the last line
	isOpen bool // the last line has no line end
}

// newLineReader reads the byte order mark. A declared encoding must agree with it.
func newLineReader(in io.Reader, declared string) (*lineReader, error) {
	buffered := bufio.NewReaderSize(in, MaxLine)
	const longestMark = 3
	start, err := buffered.Peek(longestMark)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	found := ""
	for _, m := range byteOrderMarks {
		if bytes.HasPrefix(start, []byte(m.mark)) {
			found = m.encoding
			_, _ = buffered.Discard(len(m.mark)) // it was peeked
			break
		}
	}
	switch {
	case found != "" && declared != "" && found != declared:
		return nil, &Fault{Line: 1, Problem: fmt.Sprintf("the file begins with the byte order mark of %s, and the "+
			"encoding is given as %s", found, declared)}
	case found == "":
		found = declared
	}
	if found == "" {
		found = UTF8
	}
	r := &lineReader{in: buffered}
	switch found {
	case UTF16LE, UTF16BE:
		r.in = bufio.NewReaderSize(&utf16Reader{in: buffered, isBig: found == UTF16BE}, MaxLine)
	case Latin1:
		r.in = bufio.NewReaderSize(&latin1Reader{in: buffered}, MaxLine)
	}
	return r, nil
}

// next returns the next line without its end; io.EOF behind the last one.
func (r *lineReader) next() (string, error) {
	line, err := r.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", &Fault{Line: r.number + 1, Problem: fmt.Sprintf("is longer than %d bytes", MaxLine)}
	case errors.Is(err, io.EOF) && len(line) == 0:
		return "", io.EOF
	case err != nil && !errors.Is(err, io.EOF):
		return "", fmt.Errorf("line %d: %w", r.number+1, err)
	}
	r.number++
	r.isOpen = err != nil
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	switch {
	case bytes.IndexByte(line, 0) >= 0:
		return "", &Fault{Line: r.number, Problem: "has zero bytes: if the file is UTF-16, give --encoding utf-16le " +
			"or utf-16be"}
	case !utf8.Valid(line):
		return "", &Fault{Line: r.number, Problem: errNotUTF8.Error()}
	}
	return string(line), nil
}

// utf16Reader reads UTF-16 as UTF-8.
type utf16Reader struct {
	in    *bufio.Reader
	isBig bool
	ready []byte
}

// Read implements io.Reader.
func (r *utf16Reader) Read(to []byte) (int, error) {
	for len(r.ready) == 0 {
		char, err := r.unit()
		if err != nil {
			return 0, err
		}
		if utf16.IsSurrogate(rune(char)) {
			low, err := r.unit()
			if errors.Is(err, io.EOF) {
				return 0, errCutUTF16
			} else if err != nil {
				return 0, err
			}
			if combined := utf16.DecodeRune(rune(char), rune(low)); combined != utf8.RuneError {
				r.ready = utf8.AppendRune(nil, combined)
				continue
			}
			return 0, errors.New("is not UTF-16: half a surrogate pair")
		}
		r.ready = utf8.AppendRune(nil, rune(char))
	}
	n := copy(to, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

var errCutUTF16 = errors.New("the file ends within a character of UTF-16: it is truncated")

// unit reads one code unit.
func (r *utf16Reader) unit() (uint16, error) {
	var pair [2]byte
	_, err := io.ReadFull(r.in, pair[:])
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return 0, errCutUTF16
	case err != nil:
		return 0, err
	case r.isBig:
		return uint16(pair[0])<<8 | uint16(pair[1]), nil
	}
	return uint16(pair[1])<<8 | uint16(pair[0]), nil
}

// latin1Reader reads ISO 8859-1 as UTF-8.
type latin1Reader struct {
	in    *bufio.Reader
	ready []byte
}

// Read implements io.Reader.
func (r *latin1Reader) Read(to []byte) (int, error) {
	if len(r.ready) == 0 {
		char, err := r.in.ReadByte()
		if err != nil {
			return 0, err
		}
		r.ready = utf8.AppendRune(nil, rune(char))
	}
	n := copy(to, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}
