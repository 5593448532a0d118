// Command gatewayctl manages merchants and operates the gateway, on AWS and in the local run.
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

	"mobilegateway/gatewayctl"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := gatewayctl.Run(ctx, os.Args[1:], deployment.System{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, User: currentUser(), Now: time.Now, Rand: rand.Reader,
		Connect: deployment.Connect, ReadStack: stack.Read, Terminal: openTerminal(ctx, os.Stdin, os.Stderr),
		Columns: func() int { return columns(os.Stdout) },
	})
	stop()
	os.Exit(code)
}

// currentUser returns user@host for audit records.
func currentUser() string {
	name := "unknown"
	if found, err := user.Current(); err == nil {
		name = found.Username
	}
	host, _ := os.Hostname()
	return name + "@" + cmp.Or(host, "unknown")
}
