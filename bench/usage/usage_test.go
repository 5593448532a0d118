package usage_test

import (
	"os"
	"testing"
	"time"

	"mobilegateway/bench/usage"
)

func TestOwnProcess(t *testing.T) {
	before := usage.CPU(os.Getpid())
	for end := time.Now().Add(time.Minute); usage.CPU(os.Getpid()) == before; {
		if time.Now().After(end) {
			t.Fatal("a busy process uses no CPU time")
		}
	}
	if size, err := usage.PeakMemory(os.Getpid()); err != nil || size < 1<<20 {
		t.Errorf("the peak memory is %d bytes, %v", size, err)
	}
}

func TestNoProcess(t *testing.T) {
	const pid = -1
	if used := usage.CPU(pid); used != 0 {
		t.Errorf("%s of CPU time, want none", used)
	}
	if _, err := usage.PeakMemory(pid); err == nil {
		t.Error("no process has a peak memory")
	}
}
