// Command gateway-stubs serves the stubs of all operators' platforms on one port of this machine
// (world/operators/platforms). make run STANDINS=1 serves them itself and does not need this program.
//
// It writes the accounts to a file for gatewayctl operator set, and prints one line for each call. It ends with the
// program that started it, or at a signal.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"mobilegateway/internal/file"
	"mobilegateway/internal/loopback"
	"mobilegateway/shared/localhost"
	"mobilegateway/shared/pause"
	"mobilegateway/world/operators/kit"
	"mobilegateway/world/operators/platforms"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "gateway-stubs:", err)
		os.Exit(1)
	}
}

// run serves until ctx or the parent ends. Its first line of output is the address.
func run(ctx context.Context, arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("gateway-stubs", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "loopback address and port to listen on; port 0 for a free one")
	gateway := flags.String("gateway", "http://127.0.0.1:3000", "address of the gateway, for static callbacks")
	credentials := flags.String("credentials", "", "file to write with the accounts (mode 0600)")
	speed := flags.Float64("speed", 1, "divides every delay")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if host, _, err := net.SplitHostPort(*listen); err != nil || !localhost.IsLoopback(host) {
		return errors.New("the control paths accept every caller: listen on 127.0.0.1")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	logf := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	config := platforms.Config{
		URL: "http://" + listener.Addr().String(), GatewayURL: *gateway, CallbackSecret: rand.Text() + rand.Text(),
		Kit: kit.Config{Speed: *speed, Logf: logf},
	}
	if *credentials != "" {
		if err := file.ReplaceJSON(*credentials, document(config)); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	logf("gateway-stubs: %s", config.URL)
	server := &http.Server{Handler: loopback.Protect(config.Handler()), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		awaitOrphan(ctx)
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// document returns the accounts in the form of the operators' credentials.
func document(config platforms.Config) map[string]any {
	all := map[string]any{}
	for platform, accounts := range config.Accounts() {
		all[platform] = map[string]any{"accounts": accounts}
	}
	return all
}

// awaitOrphan returns when ctx ends, or when the parent has ended.
func awaitOrphan(ctx context.Context) {
	for parent := os.Getppid(); os.Getppid() == parent && pause.For(ctx, time.Second) == nil; {
	}
}
