//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"mobilegateway/internal/repository"
)

// Isolation is a program that leaves nothing behind, however it ends. That includes success, failure, a signal to it or
// to its process group, the end of its parent, and SIGKILL.
//
// It is several processes of one program. The leader is the process that the user started. A worker is the first
// process of its own namespaces: the kernel ends it and all its children with the leader, and its mounts and network
// are private. The sweeper removes leftovers outside the namespaces. It has its own session.
type Isolation struct {
	// Name is the name of the program and of its folder below .local. The program empties the folder first and writes
	// to no other place.
	Name string
	// Tools are installed first, with the network of the machine: sam, localstack, dynamodb or engine. With any tool,
	// the dependencies of the stories are installed too.
	Tools []string
	// NeedsOwnNetwork reports whether the work gets its own network, with the loopback only. nil: it does not.
	NeedsOwnNetwork func(ctx context.Context, root string) bool
	// RunIsolated does the work, in a second worker.
	RunIsolated func(ctx context.Context, site Workspace) error
	// Cleanup removes what the work leaves outside its namespaces. It runs before the work, for the leftovers of an
	// earlier killed run, and after it. nil: the work leaves nothing.
	Cleanup func(site Workspace) error
}

// Workspace is the place where a program works.
type Workspace struct {
	// Root is the checkout, Dir the program's folder in it.
	Root, Dir string
	// HasOwnNetwork is true if the worker's network is its own.
	HasOwnNetwork bool
	// HostProc is the leader's /proc. A worker's /proc lists the worker's own processes only.
	HostProc string

	started time.Time
}

// Logf prints a line with the seconds since the start.
func (w Workspace) Logf(format string, values ...any) {
	fmt.Fprintf(os.Stdout, "[%4.0fs] %s\n", time.Since(w.started).Seconds(), fmt.Sprintf(format, values...))
}

// The roles. The name of a process decides its role, because its own children do not inherit the name.
const (
	preparer       = " (prepare)"
	worker         = " (work)"
	isolatedWorker = " (work in a network of its own)"
	sweeper        = " (sweep)"
)

const (
	// lockTimeout is how long a second run in a checkout waits for the sweeper of the first.
	lockTimeout = 30 * time.Second
	// orphanCheckInterval is how often the leader checks that its parent runs.
	orphanCheckInterval = 500 * time.Millisecond
)

// Main runs the role of this process and returns the exit code.
func (e Isolation) Main() int {
	role := map[string]func() error{
		e.Name + preparer:       func() error { return e.runWork(e.prepare, false) },
		e.Name + worker:         func() error { return e.runWork(e.RunIsolated, false) },
		e.Name + isolatedWorker: func() error { return e.runWork(e.RunIsolated, true) },
		e.Name + sweeper:        e.runSweeper,
	}[os.Args[0]]
	if role == nil {
		role = e.runLeader
	}
	err := role()
	switch {
	case err == nil:
		return 0
	case !errors.Is(err, errAlreadyReported):
		fmt.Fprintf(os.Stderr, "%s: %v\n", e.Name, err)
	}
	return 1
}

// errAlreadyReported is the leader's error if a worker has already printed the reason.
var errAlreadyReported = errors.New("a worker failed")

// workspace returns the checkout and the program's folder in it.
func (e Isolation) workspace() (Workspace, error) {
	root, err := repository.Root()
	return Workspace{Root: root, Dir: filepath.Join(root, ".local", e.Name), HostProc: "/proc", started: time.Now()},
		err
}

// runLeader is the leader's role: it starts the other processes and waits for them.
func (e Isolation) runLeader() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	go cancelWhenOrphaned(ctx, cancel)
	site, err := e.workspace()
	if err != nil {
		return err
	}
	lock, err := waitForLock(ctx, site.Dir+".lock")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	stopSweeper, err := e.startSweeper(lock)
	if err != nil {
		return err
	}
	return errors.Join(e.runWorkers(ctx, site), stopSweeper())
}

// runWorkers empties the folder, then runs the preparation and the work.
func (e Isolation) runWorkers(ctx context.Context, site Workspace) error {
	if err := os.RemoveAll(site.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(site.Dir, "tmp"), 0o700); err != nil {
		return err
	}
	if err := e.runWorker(ctx, preparer, 0); err != nil {
		return err
	}
	if e.NeedsOwnNetwork != nil && e.NeedsOwnNetwork(ctx, site.Root) {
		return e.runWorker(ctx, isolatedWorker, syscall.CLONE_NEWNET)
	}
	return e.runWorker(ctx, worker, 0)
}

// cancelWhenOrphaned cancels when the parent process ends, for example because make was killed.
func cancelWhenOrphaned(ctx context.Context, cancel func()) {
	for parent := os.Getppid(); ctx.Err() == nil; time.Sleep(orphanCheckInterval) {
		if os.Getppid() != parent {
			cancel()
		}
	}
}

// waitForLock takes the lock of a folder. The kernel releases it when the last process that has it open ends.
func waitForLock(ctx context.Context, path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := Poll(ctx, lockTimeout, func() error { return TryLock(lock) }); err != nil {
		return nil, errors.Join(fmt.Errorf("another run in this checkout has the lock %s: %w", path, err), lock.Close())
	}
	return lock, nil
}

// TryLock takes a file's lock or fails at once.
func TryLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// startSweeper starts the sweeper, which waits for the leader's end. stopSweeper makes it sweep now.
func (e Isolation) startSweeper(lock *os.File) (stopSweeper func() error, err error) {
	if e.Cleanup == nil {
		return func() error { return nil }, nil
	}
	command, err := newSelfCommand(e.Name+sweeper, &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS})
	if err != nil {
		return nil, err
	}
	command.ExtraFiles = []*os.File{lock} // the next run waits for the sweeper
	leaderPipe, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	ready, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, explainPermission(err)
	}
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		return nil, errors.Join(err, command.Wait())
	}
	return func() error { return errors.Join(leaderPipe.Close(), command.Wait()) }, nil
}

// runSweeper is the sweeper's role: it removes the leftovers of earlier runs, and those of this run when the leader
// ends.
func (e Isolation) runSweeper() error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	site, err := e.workspace()
	if err != nil {
		return err
	}
	if err := makeMountsPrivate(); err != nil {
		return err
	}
	if err := e.Cleanup(site); err != nil {
		return err
	}
	_, _ = os.Stdout.WriteString(".")    // the leader reads one byte and continues
	_, _ = io.Copy(io.Discard, os.Stdin) // the leader has the other end of this pipe
	return e.Cleanup(site)
}

// runWorker starts a worker and waits for its end. It kills the worker when ctx ends.
func (e Isolation) runWorker(ctx context.Context, role string, flags uintptr) error {
	runtime.LockOSThread() // Pdeathsig follows the thread: the thread must live as long as the worker
	defer runtime.UnlockOSThread()
	attributes := &syscall.SysProcAttr{
		Setpgid:    true, // an interrupt from the keyboard goes to the leader only
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | flags,
		Pdeathsig:  syscall.SIGKILL,
	}
	if os.Geteuid() != 0 { // another user becomes root in a user namespace, if the machine allows it
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	command, err := newSelfCommand(e.Name+role, attributes)
	if err != nil {
		return err
	}
	command.Stdout = os.Stdout
	leaderPipe, err := command.StdinPipe() // detects a leader that was killed before Pdeathsig was set
	if err != nil {
		return err
	}
	defer func() { _ = leaderPipe.Close() }()
	if err := command.Start(); err != nil {
		return explainPermission(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() }) // the kernel kills its children with it
	defer stop()
	err = command.Wait()
	var exitErr *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case errors.As(err, &exitErr) && exitErr.Exited():
		return errAlreadyReported
	}
	return err
}

// runWork is a worker's role: it sets up the namespaces and runs the task.
func (e Isolation) runWork(task func(context.Context, Workspace) error, ownNetwork bool) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the leader has ended
	}()
	site, err := e.workspace()
	if err != nil {
		return err
	}
	site.HasOwnNetwork = ownNetwork
	hostProc, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer func() { _ = hostProc.Close() }()
	site.HostProc = fmt.Sprintf("/proc/self/fd/%d", hostProc.Fd())
	if err := makeMountsPrivate(); err != nil {
		return err
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc of the worker: %w", err)
	}
	if ownNetwork {
		if err := enableLoopback(); err != nil {
			return err
		}
	}
	if err := os.Setenv("TMPDIR", filepath.Join(site.Dir, "tmp")); err != nil {
		return err
	}
	return task(context.Background(), site)
}

// newSelfCommand starts this program in another role, with the same arguments.
func newSelfCommand(role string, attributes *syscall.SysProcAttr) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(self)
	command.Args = append([]string{role}, os.Args[1:]...)
	command.Stderr, command.SysProcAttr = os.Stderr, attributes
	return command, nil
}

// explainPermission adds the likely reason to a permission error.
func explainPermission(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("namespaces need root: %w: start this as root", err)
	}
	return err
}
