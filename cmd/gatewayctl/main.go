// Command gatewayctl onboards merchants and looks after a deployment of the gateway, on AWS and in the local run alike.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"os"
	"os/signal"
	"os/user"
	"syscall"
	"time"

	"mobilegateway/internal/control"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := control.Run(ctx, os.Args[1:], control.System{
		In: os.Stdin, Out: os.Stdout, Notes: os.Stderr,
		Variable: os.Getenv, Who: who(), Now: time.Now, Rand: rand.Reader,
		Connect: control.Connect,
	})
	stop()
	os.Exit(code)
}

// who names the person at this machine.
func who() string {
	name := "somebody"
	if found, err := user.Current(); err == nil {
		name = found.Username
	}
	host, _ := os.Hostname()
	return name + "@" + cmp.Or(host, "unknown")
}
