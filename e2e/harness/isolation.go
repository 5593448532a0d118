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

// Isolation is a program that leaves nothing behind, however it ends: when its work is done or fails, when it is asked to
// end, alone or with its process group, when its parent is gone, and when it is killed.
//
// It is several processes of one program. The leader is the one that was started. A worker is the first process of
// namespaces of its own: the kernel ends it with the leader, and all that it started with it, and its mounts and network are
// nobody else's. The sweeper removes what no namespace holds; it stands outside the leader's process group and session.
type Isolation struct {
	// Name is the program's, and that of its folder below .local, which is emptied first. Nothing is written but there.
	Name string
	// Prepare is what needs the network: installations, modules. It is a worker's.
	Prepare func(ctx context.Context, site Workspace) error
	// NeedsOwnNetwork tells whether the work is to have a network of its own, with the loopback alone.
	NeedsOwnNetwork func(ctx context.Context, root string) bool
	// RunIsolated is all the rest, another worker's.
	RunIsolated func(ctx context.Context, site Workspace) error
	// Cleanup removes what the work leaves outside of its namespaces, and what an earlier program left that was killed together
	// with its sweeper; nil where the work leaves nothing. It runs before all else and after it.
	Cleanup func(site Workspace) error
}

// Workspace is where a program works.
type Workspace struct {
	// Root is the checkout, Dir the program's folder in it.
	Root, Dir string
	// HasOwnNetwork is true where the network is the worker's own.
	HasOwnNetwork bool
	// HostProc is /proc as the leader sees it; in a worker /proc tells of the worker's own processes alone.
	HostProc string
}

// The roles, told by the name that a process is started under, which its own children do not inherit.
const (
	preparer       = " (prepare)"
	worker         = " (work)"
	isolatedWorker = " (work in a network of its own)"
	sweeper        = " (sweep)"
	sweptSignal    = '.' // what the sweeper says when it has swept for the first time
)

const (
	// lockTimeout is how long a second run in a checkout waits for the first one's sweeper.
	lockTimeout = 30 * time.Second
	// orphanCheckInterval is how often the leader looks whether its parent lives.
	orphanCheckInterval = 500 * time.Millisecond
)

// Main plays the role that this process is started in, and returns the program's exit code.
func (e Isolation) Main() int {
	role := map[string]func() error{
		e.Name + preparer:       func() error { return e.runWork(e.Prepare, false) },
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

// errAlreadyReported is the leader's error where a worker has told why it failed.
var errAlreadyReported = errors.New("it failed")

// workspace finds the checkout and the program's folder in it.
func (e Isolation) workspace() (Workspace, error) {
	root, err := repository.Root()
	return Workspace{Root: root, Dir: filepath.Join(root, ".local", e.Name), HostProc: "/proc"}, err
}

// runLeader starts the others and waits for them.
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

// runWorkers has the folder emptied, the preparations done and then the work.
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
	if e.NeedsOwnNetwork(ctx, site.Root) {
		return e.runWorker(ctx, isolatedWorker, syscall.CLONE_NEWNET)
	}
	return e.runWorker(ctx, worker, 0)
}

// cancelWhenOrphaned cancels when the process that started us is gone: make, say, was killed.
func cancelWhenOrphaned(ctx context.Context, cancel func()) {
	for parent := os.Getppid(); ctx.Err() == nil; time.Sleep(orphanCheckInterval) {
		if os.Getppid() != parent {
			cancel()
		}
	}
}

// waitForLock takes the lock of a folder, which is free when the last process that has it open is gone.
func waitForLock(ctx context.Context, path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for started := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := TryLock(lock)
		if err == nil {
			return lock, nil
		}
		if time.Since(started) > lockTimeout || ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("another run in this checkout has %s: %w", path, err), lock.Close())
		}
	}
}

// TryLock takes a file's lock, or fails at once.
func TryLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// startSweeper starts the sweeper, which waits for the leader's end, and returns how to have it sweep now.
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

// runSweeper is the sweeper's role: what an earlier run left goes at once, what this one leaves when the leader has ended.
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
	_, _ = os.Stdout.WriteString(".")    // the leader may go on
	_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the leader
	return e.Cleanup(site)
}

// runWorker starts a worker and waits for its end, or ends it with ctx.
func (e Isolation) runWorker(ctx context.Context, role string, flags uintptr) error {
	runtime.LockOSThread() // Pdeathsig follows the thread: it must live as long as the worker
	defer runtime.UnlockOSThread()
	attributes := &syscall.SysProcAttr{
		Setpgid:    true, // an interrupt from the keyboard is the leader's alone
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | flags,
		Pdeathsig:  syscall.SIGKILL,
	}
	if os.Geteuid() != 0 { // whoever is not root may be it in a namespace of users, where the machine allows that
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	command, err := newSelfCommand(e.Name+role, attributes)
	if err != nil {
		return err
	}
	command.Stdout = os.Stdout
	leaderPipe, err := command.StdinPipe() // it ends with the leader, should that be killed before Pdeathsig is set
	if err != nil {
		return err
	}
	defer func() { _ = leaderPipe.Close() }()
	if err := command.Start(); err != nil {
		return explainPermission(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() }) // and with it all the others
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

// runWork is a worker's role.
func (e Isolation) runWork(task func(context.Context, Workspace) error, ownNetwork bool) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the leader is gone
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
		return fmt.Errorf("mount /proc of our own processes: %w", err)
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

// newSelfCommand is this program once more, in another role and with the same arguments.
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

// explainPermission says what the likely reason is.
func explainPermission(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("namespaces of our own need root: %w", err)
	}
	return err
}
