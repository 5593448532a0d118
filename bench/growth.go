package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"mobilegateway/bench/page"
	"mobilegateway/local"
	"mobilegateway/shared/resource"
)

// The load on the local run: growthRounds rounds of the same number of charges, growthClients at a time.
const (
	growthRounds  = 5
	growthClients = 10
	// minRateRatio is the lowest rate of the last round that passes, as a part of the first round's.
	minRateRatio = 0.8
	// clockTicksPerSecond is the unit of CPU time in /proc on Linux.
	clockTicksPerSecond = 100
)

// growth is how fast a local run was while its data grew.
type growth struct {
	charges int // of each round
	rounds  []round
}

type round struct {
	rate float64       // charges per second
	cpu  time.Duration // CPU time per charge, of all processes of the run
}

// measureGrowth starts a local run with empty data and sends it rounds of charges. Each round leaves its data for the
// next one, so a falling rate shows work that grows with the data. The first charges start the processes and are not
// measured.
func measureGrowth(ctx context.Context, root string, chargesPerRound int) (*growth, error) {
	folder, err := os.MkdirTemp("", "bench-growth-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	run, err := local.Start(ctx, local.Config{Root: root, Dir: folder})
	if err != nil {
		return nil, fmt.Errorf("start the local run: %w", err)
	}
	defer run.Close()
	c := &chargeClient{info: run.Info(), http: &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: growthClients},
	}}
	if _, err := c.sendRound(ctx, "warm-up", 10*growthClients); err != nil {
		return nil, err
	}
	measured := &growth{charges: chargesPerRound}
	for number := range growthRounds {
		before := cpuTime()
		rate, err := c.sendRound(ctx, fmt.Sprint("round-", number+1), chargesPerRound)
		if err != nil {
			return nil, err
		}
		cpu := (cpuTime() - before) / time.Duration(chargesPerRound)
		measured.rounds = append(measured.rounds, round{rate, cpu})
	}
	return measured, nil
}

// cpuTime is the CPU time so far of this process and of all processes that it has started.
func cpuTime() time.Duration {
	own := strconv.Itoa(os.Getpid())
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	var total time.Duration
	for _, path := range paths {
		text, _ := os.ReadFile(path) // a process that has ended counts with its parent
		pid, _, _ := strings.Cut(string(text), " ")
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest) // from the third field on: the parent is the 4th, the times are the 14th to 17th
		if len(fields) < 15 || pid != own && fields[1] != own {
			continue
		}
		for _, field := range fields[11:15] {
			ticks, _ := strconv.ParseInt(field, 10, 64) // the kernel writes numbers
			total += time.Duration(ticks) * time.Second / clockTicksPerSecond
		}
	}
	return total
}

// check returns an error if the last round was slower than minRateRatio allows and took more CPU time by as much.
// Without the CPU time, other programs slowed it down.
func (g *growth) check() error {
	first, last := g.rounds[0], g.rounds[len(g.rounds)-1]
	if last.rate >= minRateRatio*first.rate || float64(first.cpu) >= minRateRatio*float64(last.cpu) {
		return nil
	}
	return fmt.Errorf("the local run slows down: its last %d charges ran at %.2f of the first rate, "+
		"want at least %.1f; look for work that grows with the data", g.charges, last.rate/first.rate, minRateRatio)
}

func (g *growth) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured with %s: %d rounds of %d charges, %d at a time.\n\n",
		page.Machine(), len(g.rounds), g.charges, growthClients)
	b.WriteString("| Round | Charges per second | to round 1 | CPU per charge, ms | to round 1 |\n")
	b.WriteString("|---|---|---|---|---|\n")
	first := g.rounds[0]
	for i, r := range g.rounds {
		fmt.Fprintf(&b, "| %d | %.0f | %.2f | %s | %.2f |\n",
			i+1, r.rate, r.rate/first.rate, millis(r.cpu), float64(r.cpu)/float64(first.cpu))
	}
	return b.String()
}

type chargeClient struct {
	info local.Info
	http *http.Client
}

// sendRound sends count charges, each under a key of its own, and returns how many succeeded per second. It returns the
// error of the first charge that fails.
func (c *chargeClient) sendRound(ctx context.Context, name string, count int) (float64, error) {
	charges, ctx := errgroup.WithContext(ctx)
	charges.SetLimit(growthClients)
	began := time.Now()
	for number := range count {
		charges.Go(func() error { return c.charge(ctx, fmt.Sprintf("%s-%d", name, number)) })
	}
	err := charges.Wait()
	return float64(count) / time.Since(began).Seconds(), err
}

func (c *chargeClient) charge(ctx context.Context, key string) error {
	body := bytes.NewReader(chargeBody(c.info.MerchantCredentials, key))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.info.BaseURL+resource.ChargesPath, body)
	if err != nil {
		return err
	}
	request.Header = http.Header{
		"Authorization": {"Bearer " + c.info.AccessToken}, "Content-Type": {"application/json"},
		"Gw-Token": {c.info.GWToken}, "Gw-Alias": {c.info.GWAlias},
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusCreated {
		err = fmt.Errorf("charge %s: status %d: %s", key, response.StatusCode, text)
	}
	return err
}
