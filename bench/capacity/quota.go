package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// period is the period of the quota. Lambda does not document its own; 20 ms is what programs on it observe.
const period = 20 * time.Millisecond

// groupPrefix begins the names of the control groups, so that a run finds what a killed one has left behind.
const groupPrefix = "mobilegateway-capacity-"

// quota is a control group of Linux that bounds the processor time of its processes. nil bounds nothing.
type quota struct{ folder string }

// limits are where a control group is made, and what is written into its files.
type limits struct {
	parent string
	order  []string // the names of the files
	files  map[string]string
}

// limitsOf returns the limits of a group below the root of the control groups, version 1 or 2, that gets this many
// processors in each period.
func limitsOf(root string, processors float64) limits {
	length := strconv.FormatInt(period.Microseconds(), 10)
	quota := strconv.Itoa(int(processors * float64(period.Microseconds())))
	if _, err := os.Stat(filepath.Join(root, "cpu", "cpu.cfs_quota_us")); err == nil {
		return limits{
			filepath.Join(root, "cpu"), []string{"cpu.cfs_period_us", "cpu.cfs_quota_us"},
			map[string]string{"cpu.cfs_period_us": length, "cpu.cfs_quota_us": quota},
		}
	}
	return limits{root, []string{"cpu.max"}, map[string]string{"cpu.max": quota + " " + length}}
}

// newQuota makes a group that gets this many processors in each period. The caller must remove it.
func newQuota(root string, processors float64) (*quota, error) {
	of := limitsOf(root, processors)
	// Version 2 has the controller in a group only if its parent passes it on. Version 1 has no such file.
	_ = writeExisting(filepath.Join(root, "cgroup.subtree_control"), "+cpu")
	removeOldGroups(of.parent)
	q := &quota{filepath.Join(of.parent, groupPrefix+strconv.Itoa(os.Getpid()))}
	err := os.Mkdir(q.folder, 0o755)
	for _, name := range of.order {
		if err == nil {
			err = writeExisting(filepath.Join(q.folder, name), of.files[name])
		}
	}
	if err != nil {
		q.remove()
		return nil, fmt.Errorf("a CPU quota needs a writable control group below %s, version 1 or 2: "+
			"run as root on a machine that has one (%w)", root, err)
	}
	return q, nil
}

// removeOldGroups removes the groups of runs that were killed. A group with processes stays.
func removeOldGroups(parent string) {
	old, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*")) // the pattern is valid
	for _, folder := range old {
		_ = os.Remove(folder)
	}
}

// add moves a process with all its threads into the group.
func (q *quota) add(pid int) error {
	if q == nil {
		return nil
	}
	return writeExisting(filepath.Join(q.folder, "cgroup.procs"), strconv.Itoa(pid))
}

// writeExisting writes into a file of the kernel, which the caller does not create.
func writeExisting(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// throttled is the number of periods so far in which the group had used up its quota.
func (q *quota) throttled() int {
	if q == nil {
		return 0
	}
	text, _ := os.ReadFile(filepath.Join(q.folder, "cpu.stat"))
	for line := range strings.Lines(string(text)) {
		if number, found := strings.CutPrefix(line, "nr_throttled "); found {
			periods, _ := strconv.Atoi(strings.TrimSpace(number)) // the kernel writes numbers
			return periods
		}
	}
	return 0
}

// remove removes the group, whose processes must have ended. The kernel may need a moment until it is empty.
func (q *quota) remove() {
	if q == nil {
		return
	}
	for range 100 {
		if err := os.Remove(q.folder); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
