// Package usage reads what a process has used: its processor time and its peak memory. It needs Linux.
package usage

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTicksPerSecond is the unit of CPU time in /proc on Linux.
const clockTicksPerSecond = 100

// CPU is the user and system time of a process with all its threads; 0 for a process that has ended.
func CPU(pid int) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name of the program is in parentheses and may contain spaces. User and system time are the fields 14 and 15.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	var total time.Duration
	for _, field := range fields[11:13] {
		ticks, _ := strconv.ParseInt(field, 10, 64)
		total += time.Duration(ticks) * time.Second / clockTicksPerSecond
	}
	return total
}

// PeakMemory is the largest resident size of a process, in bytes.
func PeakMemory(pid int) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if size, found := strings.CutPrefix(line, "VmHWM:"); found {
			kilobytes, err := strconv.ParseInt(strings.Fields(size)[0], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, errors.New("the system does not report the peak memory (VmHWM)")
}
