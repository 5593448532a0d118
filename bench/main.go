// Command bench measures what a request costs beside the smallest function that there can be: start-up, size, CPU,
// memory, latency, and how often DynamoDB and the operator are called. It builds the deployed programs with the deploy
// flags and drives them through the Runtime API, all in one run, so that a slow machine is slow for everybody.
//
// It prints its tables and writes them into bench/README.md. It needs Linux, for the peak memory of a process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures and writes the report.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	starts := flags.Int("starts", 41, "starts of each program")
	requests := flags.Int("requests", 300, "requests of each kind")
	write := flags.Bool("write", true, "write the tables into bench/README.md")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := findRoot()
	if err != nil {
		return err
	}
	s, err := newFixture(ctx, root, typicalDelays())
	if err != nil {
		return err
	}
	defer s.close()
	report, err := measureAll(ctx, s, *starts, *requests)
	if err != nil {
		return err
	}
	text := report.markdown()
	if _, err := io.WriteString(out, text); err != nil || !*write {
		return err
	}
	return replaceBetween(filepath.Join(root, "bench", "README.md"), text)
}

// findRoot is the folder of go.mod at or above the working directory.
func findRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("no go.mod above the working directory")
		}
		folder = parent
	}
}
