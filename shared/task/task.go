// Package task starts goroutines through a function that a simulator can replace. It neither limits nor names them.
package task

import "sync"

// Starter starts a task in a goroutine of its own. nil means the go statement.
type Starter func(task func())

// Start starts a task.
func (s Starter) Start(run func()) {
	if s == nil {
		go run()
		return
	}
	s(run)
}

// Go starts a task that group waits for.
func (s Starter) Go(group *sync.WaitGroup, run func()) {
	group.Add(1)
	s.Start(func() {
		defer group.Done()
		run()
	})
}
