//go:build linux

package chaos

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// growthFactor is by how much the median of the last third may exceed that of the first third.
	growthFactor = 1.5
	// minGrowthTime is the shortest run whose growth is checked. Before, processes still start and open connections.
	minGrowthTime = 3 * time.Minute
	// spareMemoryMB and spareDescriptors are allowed on top of it.
	spareMemoryMB    = 20
	spareDescriptors = 20
)

// usage is what a program's largest process uses.
type usage struct {
	memoryMB, descriptors float64
	processes             int
}

// usageTable has the samples of each program in order.
type usageTable map[string][]usage

// sample adds one row for each program that runs. Killed processes may end during the sample.
func (s usageTable) sample(g *gateway) error {
	info, err := readRunJSON(g.dir)
	if err != nil {
		return err
	}
	programs := maps.Clone(info.PIDs.Functions)
	programs["gateway-local and stubs"] = []int{info.PIDs.Run}
	programs["database"] = []int{g.database.current().PID()}
	for name, pids := range programs {
		var largest usage
		for _, pid := range pids {
			u, err := usageOf(pid)
			if err != nil {
				continue
			}
			largest.processes++
			largest.memoryMB = max(largest.memoryMB, u.memoryMB)
			largest.descriptors = max(largest.descriptors, u.descriptors)
		}
		if largest.processes > 0 {
			s[name] = append(s[name], largest)
		}
	}
	return nil
}

// usageOf reads the resident memory and the number of open descriptors of a process.
func usageOf(pid int) (usage, error) {
	folder := filepath.Join("/proc", strconv.Itoa(pid))
	text, err := os.ReadFile(filepath.Join(folder, "statm"))
	if err != nil {
		return usage{}, err
	}
	fields := bytes.Fields(text)
	pages, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return usage{}, err
	}
	open, err := os.ReadDir(filepath.Join(folder, "fd"))
	memory := float64(pages) * float64(os.Getpagesize()) / (1 << 20)
	return usage{memoryMB: memory, descriptors: float64(len(open))}, err
}

// thirds returns the medians of the first and the last third of a column, and its maximum.
func thirds(samples []usage, column func(usage) float64) (first, last, peak float64) {
	values := make([]float64, len(samples))
	for i, u := range samples {
		values[i] = column(u)
	}
	size := max(1, len(values)/3)
	return median(values[:size]), median(values[len(values)-size:]), slices.Max(values)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func memoryColumn(u usage) float64     { return u.memoryMB }
func descriptorColumn(u usage) float64 { return u.descriptors }

// String is the table with a row for each program.
func (s usageTable) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-24s %7s | %8s %8s %8s | %8s %8s %8s\n",
		"largest process of", "samples", "MB first", "MB last", "MB peak", "fd first", "fd last", "fd peak")
	for _, name := range slices.Sorted(maps.Keys(s)) {
		m1, m3, mp := thirds(s[name], memoryColumn)
		d1, d3, dp := thirds(s[name], descriptorColumn)
		fmt.Fprintf(&text, "%-24s %7d | %8.1f %8.1f %8.1f | %8.0f %8.0f %8.0f\n",
			name, len(s[name]), m1, m3, mp, d1, d3, dp)
	}
	return text.String()
}

// findGrowth returns the programs whose memory or descriptors grew more than allowed.
func (s usageTable) findGrowth() []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if first, last, _ := thirds(s[name], memoryColumn); last > growthFactor*first+spareMemoryMB {
			found = append(found, fmt.Sprintf("%s grew from %.1f MB to %.1f MB", name, first, last))
		}
		if first, last, _ := thirds(s[name], descriptorColumn); last > growthFactor*first+spareDescriptors {
			found = append(found, fmt.Sprintf("%s grew from %.0f to %.0f descriptors", name, first, last))
		}
	}
	return found
}

// TestFindGrowth checks that growth is found, and that a peak is not growth.
func TestFindGrowth(t *testing.T) {
	steady, peak, grows, leaks := []usage{}, []usage{}, []usage{}, []usage{}
	for i := range 30 {
		n := float64(i)
		steady = append(steady, usage{30, 10, 1})
		peak = append(peak, usage{30, 10, 1})
		grows = append(grows, usage{30 + 3*n, 10, 1})
		leaks = append(leaks, usage{30, 10 + 2*n, 1})
	}
	peak[20] = usage{500, 500, 1}
	for name, test := range map[string]struct {
		samples []usage
		want    int
	}{"steady": {steady, 0}, "peak": {peak, 0}, "memory": {grows, 1}, "descriptors": {leaks, 1}} {
		if found := (usageTable{name: test.samples}).findGrowth(); len(found) != test.want {
			t.Errorf("%s: found %q, want %d", name, found, test.want)
		}
	}
}
