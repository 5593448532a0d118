//go:build linux

package stage

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
)

// Enclosure is a program that leaves nothing behind, however it ends: when its work is done or fails, when it is asked to
// end, alone or with its process group, when its parent is gone, and when it is killed.
//
// It is several processes of one program. The leader is the one that was started. A worker is the first process of
// namespaces of its own: the kernel ends it with the leader, and all that it started with it, and its mounts and network are
// nobody else's. The sweeper removes what no namespace holds; it stands outside the leader's process group and session.
type Enclosure struct {
	// Name is the program's, and that of its folder below .local, which is emptied first. Nothing is written but there.
	Name string
	// Prepare is what needs the network: installations, modules. It is a worker's.
	Prepare func(ctx context.Context, site Site) error
	// OwnNetwork tells whether the work is to have a network of its own, with the loopback alone.
	OwnNetwork func(ctx context.Context, root string) bool
	// Work is all the rest, another worker's.
	Work func(ctx context.Context, site Site) error
	// Sweep removes what the work leaves outside of its namespaces, and what an earlier program left that was killed together
	// with its sweeper; nil where the work leaves nothing. It runs before all else and after it.
	Sweep func(site Site) error
}

// Site is where a program works.
type Site struct {
	// Root is the checkout, Dir the program's folder in it.
	Root, Dir string
	// OwnNetwork is true where the network is the worker's own.
	OwnNetwork bool
	// Machine is /proc as the leader sees it; in a worker /proc tells of the worker's own processes alone.
	Machine string
}

// The roles, told by the name that a process is started under, which its own children do not inherit.
const (
	preparer     = " (prepare)"
	worker       = " (work)"
	loneWorker   = " (work in a network of its own)"
	sweeper      = " (sweep)"
	machineAlive = '.' // what the sweeper says when it has swept for the first time
)

const (
	// busyTimeout is how long a second run in a checkout waits for the first one's sweeper.
	busyTimeout = 30 * time.Second
	// orphanCheck is how often the leader looks whether its parent lives.
	orphanCheck = 500 * time.Millisecond
)

// Main plays the role that this process is started in, and returns the program's exit code.
func (e Enclosure) Main() int {
	role := map[string]func() error{
		e.Name + preparer:   func() error { return e.work(e.Prepare, false) },
		e.Name + worker:     func() error { return e.work(e.Work, false) },
		e.Name + loneWorker: func() error { return e.work(e.Work, true) },
		e.Name + sweeper:    e.sweep,
	}[os.Args[0]]
	if role == nil {
		role = e.lead
	}
	err := role()
	switch {
	case err == nil:
		return 0
	case !errors.Is(err, errTold):
		fmt.Fprintf(os.Stderr, "%s: %v\n", e.Name, err)
	}
	return 1
}

// errTold is the leader's error where a worker has told why it failed.
var errTold = errors.New("it failed")

// site finds the checkout and the program's folder in it.
func (e Enclosure) site() (Site, error) {
	root, err := Root()
	return Site{Root: root, Dir: filepath.Join(root, ".local", e.Name), Machine: "/proc"}, err
}

// lead starts the others and waits for them.
func (e Enclosure) lead() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	go orphaned(ctx, cancel)
	site, err := e.site()
	if err != nil {
		return err
	}
	lock, err := take(ctx, site.Dir+".lock")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	swept, err := e.startSweeper(lock)
	if err != nil {
		return err
	}
	return errors.Join(e.leadWorkers(ctx, site), swept())
}

// leadWorkers has the folder emptied, the preparations done and then the work.
func (e Enclosure) leadWorkers(ctx context.Context, site Site) error {
	if err := os.RemoveAll(site.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(site.Dir, "tmp"), 0o700); err != nil {
		return err
	}
	if err := e.runWorker(ctx, preparer, 0); err != nil {
		return err
	}
	if e.OwnNetwork(ctx, site.Root) {
		return e.runWorker(ctx, loneWorker, syscall.CLONE_NEWNET)
	}
	return e.runWorker(ctx, worker, 0)
}

// orphaned cancels when the process that started us is gone: make, say, was killed.
func orphaned(ctx context.Context, cancel func()) {
	for parent := os.Getppid(); ctx.Err() == nil; time.Sleep(orphanCheck) {
		if os.Getppid() != parent {
			cancel()
		}
	}
}

// take takes the lock of a folder, which is free when the last process that has it open is gone.
func take(ctx context.Context, path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := Lock(lock)
		if err == nil {
			return lock, nil
		}
		if time.Since(began) > busyTimeout || ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("another run in this checkout has %s: %w", path, err), lock.Close())
		}
	}
}

// Lock takes a file's lock, or fails at once.
func Lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// startSweeper starts the sweeper, which waits for the leader's end, and returns how to have it sweep now.
func (e Enclosure) startSweeper(lock *os.File) (swept func() error, err error) {
	if e.Sweep == nil {
		return func() error { return nil }, nil
	}
	command, err := again(e.Name+sweeper, &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS})
	if err != nil {
		return nil, err
	}
	command.ExtraFiles = []*os.File{lock} // the next run waits for the sweeper
	leaderLives, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	answer, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, needsRoot(err)
	}
	if _, err := io.ReadFull(answer, make([]byte, 1)); err != nil {
		return nil, errors.Join(err, command.Wait())
	}
	return func() error { return errors.Join(leaderLives.Close(), command.Wait()) }, nil
}

// sweep is the sweeper's role: what an earlier run left goes at once, what this one leaves when the leader has ended.
func (e Enclosure) sweep() error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	site, err := e.site()
	if err != nil {
		return err
	}
	if err := privateMounts(); err != nil {
		return err
	}
	if err := e.Sweep(site); err != nil {
		return err
	}
	_, _ = os.Stdout.WriteString(".")    // the leader may go on
	_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the leader
	return e.Sweep(site)
}

// runWorker starts a worker and waits for its end, or ends it with ctx.
func (e Enclosure) runWorker(ctx context.Context, role string, flags uintptr) error {
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
	command, err := again(e.Name+role, attributes)
	if err != nil {
		return err
	}
	command.Stdout = os.Stdout
	leaderLives, err := command.StdinPipe() // it ends with the leader, should that be killed before Pdeathsig is set
	if err != nil {
		return err
	}
	defer func() { _ = leaderLives.Close() }()
	if err := command.Start(); err != nil {
		return needsRoot(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() }) // and with it all the others
	defer stop()
	err = command.Wait()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case errors.As(err, &ended) && ended.Exited():
		return errTold
	}
	return err
}

// work is a worker's role.
func (e Enclosure) work(do func(context.Context, Site) error, ownNetwork bool) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the leader is gone
	}()
	site, err := e.site()
	if err != nil {
		return err
	}
	site.OwnNetwork = ownNetwork
	machine, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer func() { _ = machine.Close() }()
	site.Machine = fmt.Sprintf("/proc/self/fd/%d", machine.Fd())
	if err := privateMounts(); err != nil {
		return err
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc of our own processes: %w", err)
	}
	if ownNetwork {
		if err := loopbackUp(); err != nil {
			return err
		}
	}
	if err := os.Setenv("TMPDIR", filepath.Join(site.Dir, "tmp")); err != nil {
		return err
	}
	return do(context.Background(), site)
}

// again is this program once more, in another role and with the same arguments.
func again(role string, attributes *syscall.SysProcAttr) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(self)
	command.Args = append([]string{role}, os.Args[1:]...)
	command.Stderr, command.SysProcAttr = os.Stderr, attributes
	return command, nil
}

// needsRoot says what the likely reason is.
func needsRoot(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("namespaces of our own need root: %w", err)
	}
	return err
}
