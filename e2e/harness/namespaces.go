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

// makeMountsPrivate hides the mounts of this process from other processes.
func makeMountsPrivate() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	return nil
}

// enableLoopback brings up the loopback interface of a new network namespace.
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
	pointer := uintptr(unsafe.Pointer(&request)) //nolint:gosec // G103: the argument of ioctl(2)
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS, pointer)
	if errno != 0 {
		return fmt.Errorf("bring up the loopback: %w", errno)
	}
	return nil
}

// sysSetns is the number of setns(2), which package syscall lacks on some processors.
var sysSetns = map[string]uintptr{"amd64": 308, "arm64": 268}[runtime.GOARCH]

// ListenInNetwork listens in the network namespace of another process, for example at its loopback. proc is the folder
// of that process in a /proc.
func ListenInNetwork(proc, address string) (listener net.Listener, err error) {
	var group sync.WaitGroup
	group.Go(func() {
		runtime.LockOSThread() // setns changes the thread, which ends with this goroutine because it is never unlocked
		var network *os.File
		if network, err = os.Open(proc + "/ns/net"); err != nil {
			return
		}
		defer func() { _ = network.Close() }()
		if _, _, errno := syscall.RawSyscall(sysSetns, network.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
			err = fmt.Errorf("enter the network of %s: %w", proc, errno)
			return
		}
		listener, err = net.Listen("tcp", address) // a socket stays in the network where it was created
	})
	group.Wait()
	return listener, err
}
