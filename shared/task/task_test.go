package task_test

import (
	"sync"
	"testing"

	"mobilegateway/shared/task"
)

// A Starter starts each task once, also without a function of its own, and the group waits for it.
func TestStarter(t *testing.T) {
	started := 0
	for name, starter := range map[string]task.Starter{
		"the go statement": nil,
		"a function": func(run func()) {
			started++
			go run()
		},
	} {
		var group sync.WaitGroup
		done := false
		starter.Go(&group, func() { done = true })
		group.Wait()
		if !done {
			t.Errorf("%s: the task did not run before the group's end", name)
		}
	}
	if started != 1 {
		t.Errorf("the function started %d tasks, want 1", started)
	}
}
