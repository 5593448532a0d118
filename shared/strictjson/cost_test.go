// The race detector makes parsing many times slower.

//go:build !race

package strictjson_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"mobilegateway/shared/strictjson"
)

// The limits of reading a body: 2 MB and 5 ms for a request of 64 KiB, 8 MB for an operator's response of 256 KiB.
const (
	requestBytes      = 64 << 10
	responseBytes     = 256 << 10
	maxBytesPerByte   = 30 // 30 * 64 KiB < 2 MB, 30 * 256 KiB < 8 MB
	maxFixedBytes     = 16 << 10
	maxRequestParsing = 5 * time.Millisecond
)

// fillWith repeats an item inside a frame up to a size. Each "%" of the item is its number.
func fillWith(size int, before, item, after string) []byte {
	body := append(make([]byte, 0, size), before...)
	for i := 0; ; i++ {
		next := strings.ReplaceAll(item, "%", fmt.Sprintf("%x", i))
		if len(body)+1+len(next)+len(after) > size {
			return append(body, after...)
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, next...)
	}
}

// costlyBodies are bodies that are costly for a decoder: many paths, many keys, many small values, long keys.
func costlyBodies(size int) map[string][]byte {
	deep, longKey := strings.Repeat(`{"a":`, 14), strings.Repeat("k", size/2)
	return map[string][]byte{
		"numbers in an array":         fillWith(size, `{"a":[`, `0`, `]}`),
		"empty arrays":                fillWith(size, `{"a":[`, `[]`, `]}`),
		"empty objects":               fillWith(size, `{"a":[`, `{}`, `]}`),
		"objects of one key":          fillWith(size, `{"a":[`, `{"":0}`, `]}`),
		"objects of nine keys":        fillWith(size, `{"a":[`, objectOfKeys(9), `]}`),
		"objects of 17 keys":          fillWith(size, `{"a":[`, objectOfKeys(17), `]}`),
		"keys":                        fillWith(size, `{`, `"%":0`, `}`),
		"escaped keys":                fillWith(size, `{`, `"\n%":0`, `}`),
		"texts":                       fillWith(size, `{"a":[`, `""`, `]}`),
		"escaped texts":               fillWith(size, `{"a":[`, `"\n"`, `]}`),
		"elements under a long key":   fillWith(size, `{"`+longKey+`":[`, `0`, `]}`),
		"objects under a long key":    fillWith(size, `{"`+longKey+`":[`, `{"":0}`, `]}`),
		"elements at the last level":  fillWith(size, deep+`{"a":[`, `0`, `]}`+strings.Repeat("}", 14)),
		"keys at the last level":      fillWith(size, deep+`{`, `"%":0`, `}`+strings.Repeat("}", 14)),
		"one text":                    fillWith(size, `{"a":"`, strings.Repeat(`,`, size-10), `"}`),
		"one escaped text":            fillWith(size, `{"a":"`, strings.Repeat(`\u0001`, size/6-10), `"}`),
		"one number":                  fillWith(size, `{"a":`, strings.Repeat(`9`, size-10), `}`),
		"spaces":                      fillWith(size, `{"a":0`, strings.Repeat(` `, size-10), `}`),
		"a duplicate at the end":      fillWith(size, `{"a":[`, `{"":0}`, `],"a":0}`),
		"a duplicate under long keys": fillWith(size, `{"`+longKey+`":[`, `0`, `,{"":0,"":0}]}`),
	}
}

func objectOfKeys(count int) string {
	members := make([]string, count)
	for i := range members {
		members[i] = fmt.Sprintf(`"%d":0`, i)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// costOfParsing returns what Parse and Canonical allocate for a body in bytes, and how long they take.
func costOfParsing(body []byte) (allocated uint64, elapsed time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	if reader, err := strictjson.Parse(body); err == nil {
		reader.Canonical("a")
		for range 15 {
			reader.Text("b", 1)
		}
	}
	elapsed = time.Since(start)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, elapsed
}

// The best of some runs counts, because other programs share the machine.
func TestParsingHasLinearCost(t *testing.T) {
	for _, size := range []int{requestBytes, responseBytes} {
		for name, body := range costlyBodies(size) {
			t.Run(fmt.Sprintf("%s, %d KiB", name, size>>10), func(t *testing.T) {
				if len(body) < size*9/10 {
					t.Fatalf("the body has %d bytes, want about %d", len(body), size)
				}
				allocated, fastest := costOfParsing(body)
				for runs := 1; size == requestBytes && runs < 400 && fastest > maxRequestParsing; runs++ {
					_, elapsed := costOfParsing(body)
					fastest = min(fastest, elapsed)
				}
				t.Logf("%d KB, %v", allocated/1000, fastest)
				if limit := uint64(maxFixedBytes + maxBytesPerByte*len(body)); allocated > limit {
					t.Errorf("%d bytes are allocated, want at most %d", allocated, limit)
				}
				if size == requestBytes && fastest > maxRequestParsing {
					t.Errorf("it takes %v, want at most %v", fastest, maxRequestParsing)
				}
			})
		}
	}
}

// FuzzCost holds the allocation for each byte of a body. Go's fuzzer prefers small bodies, so each is repeated as the
// elements of a large one too.
func FuzzCost(f *testing.F) {
	for _, body := range costlyBodies(200) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		repeated := append([]byte(`{"a":[`), bytes.Repeat(append(bytes.Clone(body), ','), 16<<10/(len(body)+1)+1)...)
		for _, b := range [][]byte{body, append(repeated, `0]}`...)} {
			if allocated, _ := costOfParsing(b); allocated > uint64(maxFixedBytes+maxBytesPerByte*len(b)) {
				t.Fatalf("%d bytes are allocated for %d", allocated, len(b))
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for name, body := range costlyBodies(requestBytes) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				costOfParsing(body)
			}
		})
	}
}
