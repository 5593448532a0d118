// Command bench compares each request with a minimal function: start-up, size, CPU, memory, latency, and calls of
// DynamoDB and the operator. It builds the deployed programs with the deploy flags and drives them through the Runtime
// API, all in one run, so a slow machine slows down all of them.
//
// It also measures whether the local run slows down as its data grows; -local measures only that. It prints its tables
// and writes them into bench/README.md. With -console 100000 it measures the pages of gatewayctl's console instead, and
// writes docs/console.md. It needs Linux, for the peak memory of a process.
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
	"time"

	"mobilegateway/internal/repository"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	starts := flags.Int("starts", 41, "starts of each program")
	requests := flags.Int("requests", 300, "requests of each kind")
	write := flags.Bool("write", true, "write the tables into bench/README.md")
	localOnly := flags.Bool("local", false, "measure only the local run")
	charges := flags.Int("charges", 1000, "charges of each round of the local run")
	consoleOf := flags.Int("console", 0, "measure only the console's pages, among this many transactions of today")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := repository.Root()
	if err != nil {
		return err
	}
	if *consoleOf > 0 {
		return measureAndPublishConsole(ctx, root, *consoleOf, *write, out)
	}
	path := filepath.Join(root, "bench", "README.md")
	if !*write {
		path = ""
	}
	if !*localOnly {
		s, err := newFixture(ctx, root, typicalDelays())
		if err != nil {
			return err
		}
		report, err := measureAll(ctx, s, *starts, *requests)
		s.close()
		if err != nil {
			return err
		}
		if err := publish(out, path, tableMarks(), report.markdown()); err != nil {
			return err
		}
	}
	growth, err := measureGrowth(ctx, root, *charges)
	if err != nil {
		return err
	}
	return errors.Join(publish(out, path, growthMarks(), growth.markdown()), growth.check())
}

func measureAndPublishConsole(ctx context.Context, root string, transactions int, write bool, out io.Writer) error {
	costs, err := measureConsole(ctx, root, transactions, out)
	if err != nil {
		return err
	}
	path := ""
	if write {
		path = filepath.Join(root, "docs", "console.md")
	}
	err = publish(out, path, consoleMarks(), consoleTable(costs, transactions))
	return errors.Join(err, checkConsole(costs))
}

// typicalDelays are about what a function sees in a region: DynamoDB, Secrets Manager, and a quick operator.
func typicalDelays() delays {
	return delays{table: 3 * time.Millisecond, secrets: 10 * time.Millisecond, operator: 30 * time.Millisecond}
}
