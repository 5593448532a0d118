package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"mobilegateway/world/template"
)

// unreservedMinimum is the part of an account's concurrency that no function can reserve.
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html, 2026-11-27.
const unreservedMinimum = 100

// account is what one value of AccountConcurrency selects.
type account struct {
	concurrency int
	parallelism int            // batches of one shard of the stream at once
	sweeps      []string       // the events of the sweeps of a minute
	share       int            // percent of concurrency for the waiting calls of one operator
	reserved    map[string]int // by function; 0: it shares what is left
}

// unreserved is the concurrency that functions without a reservation share.
func (a account) unreserved() int {
	left := a.concurrency
	for _, reserved := range a.reserved {
		left -= reserved
	}
	return left
}

// available is the concurrency that a function can use.
func (a account) available(function string) int { return cmp.Or(a.reserved[function], a.unreserved()) }

// operatorCalls is how many calls of one operator may wait at once.
func (a account) operatorCalls() int { return a.concurrency * a.share / 100 }

// loadAccounts reads what template.yaml selects for each value of AccountConcurrency, the smallest first.
func loadAccounts(root string) ([]account, error) {
	path := filepath.Join(root, "template.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Mappings struct {
			Concurrency map[string]map[string]string `yaml:"Concurrency"`
		} `yaml:"Mappings"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all []account
	for _, value := range slices.Collect(maps.Keys(file.Mappings.Concurrency)) {
		one, err := loadAccount(path, value, file.Mappings.Concurrency[value]["OperatorShare"])
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b account) int { return cmp.Compare(a.concurrency, b.concurrency) })
	return all, nil
}

func loadAccount(path, value, share string) (account, error) {
	deployed, err := template.Load(path, template.Options{Parameters: map[string]string{"AccountConcurrency": value}})
	if err != nil {
		return account{}, err
	}
	a := account{reserved: map[string]int{}}
	for number, text := range map[*int]string{&a.concurrency: value, &a.share: share} {
		if *number, err = strconv.Atoi(text); err != nil {
			return account{}, fmt.Errorf("%s: the mapping Concurrency has %q: %w", path, text, err)
		}
	}
	for _, f := range deployed.Functions {
		a.reserved[f.Name] = f.ReservedConcurrency
		for _, stream := range f.Streams {
			a.parallelism = stream.ParallelizationFactor
		}
		for _, schedule := range f.Schedules {
			a.sweeps = append(a.sweeps, schedule.Input)
		}
	}
	return a, nil
}

// tableColumns are the functions in the order of the table.
var tableColumns = [...]string{
	"charge", "pay", "sms", "status", "token", "report", "resend", "notif", "receipt", "relay", "sweep",
}

func concurrencyTable(all []account) string {
	var b strings.Builder
	b.WriteString("| `AccountConcurrency` | batches of a shard at once | sweeps | `OperatorShare`: calls |")
	for _, name := range tableColumns {
		fmt.Fprintf(&b, " `%s` |", name)
	}
	b.WriteString(" left for `-` |\n|" + strings.Repeat("---|", 5+len(tableColumns)) + "\n")
	for _, a := range all {
		fmt.Fprintf(&b, "| %d | %d | %d | %d %%: %d |",
			a.concurrency, a.parallelism, len(a.sweeps), a.share, a.operatorCalls())
		for _, name := range tableColumns {
			fmt.Fprintf(&b, " %s |", cmp.Or(strings.TrimPrefix(strconv.Itoa(a.reserved[name]), "0"), "-"))
		}
		fmt.Fprintf(&b, " %d |\n", a.unreserved())
	}
	return b.String()
}
