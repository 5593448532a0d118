//go:build linux

package harness

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

// makeMountsPrivate keeps what this process mounts from everybody else.
func makeMountsPrivate() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts our own: %w", err)
	}
	return nil
}

// enableLoopback brings up the loopback of a new network.
func enableLoopback() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(socket) }()
	request := struct { // struct ifreq of netdevice(7)
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{name: [syscall.IFNAMSIZ]byte{'l', 'o'}, flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))) //nolint:gosec // G103: as ioctl(2) wants it
	if errno != 0 {
		return fmt.Errorf("bring up the loopback: %w", errno)
	}
	return nil
}

// sysSetns is setns(2), which package syscall does not name everywhere.
var sysSetns = map[string]uintptr{"amd64": 308, "arm64": 268}[runtime.GOARCH]

// ListenInNetwork listens in another process's network, as its own programs would: at its loopback, say. proc is the folder of
// that process below a /proc.
func ListenInNetwork(proc, address string) (listener net.Listener, err error) {
	var group sync.WaitGroup
	group.Go(func() {
		runtime.LockOSThread() // a network is a thread's own; never unlocked, the thread ends with this goroutine
		var network *os.File
		if network, err = os.Open(proc + "/ns/net"); err != nil {
			return
		}
		defer func() { _ = network.Close() }()
		if _, _, errno := syscall.RawSyscall(sysSetns, network.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
			err = fmt.Errorf("enter the network of %s: %w", proc, errno)
			return
		}
		listener, err = net.Listen("tcp", address) // a socket stays in the network that it was made in
	})
	group.Wait()
	return listener, err
}
