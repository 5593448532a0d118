package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mobilegateway/bench/page"
	"mobilegateway/internal/repository"
	"mobilegateway/local"
	"mobilegateway/world/template"
)

func root(t *testing.T) string {
	t.Helper()
	found, err := repository.Root()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestCapacity measures a few entries of each kind, without a quota. -short skips it, because it starts processes.
func TestCapacity(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the deployed programs")
	}
	f, err := newFixture(t.Context(), root(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	t.Log("without a CPU quota: only make capacity sets one")
	noQuota := func(int) (*quota, error) { return nil, nil }
	report, err := measureAll(t.Context(), &meter{fixture: f, entries: 60, newQuota: noQuota, progress: t.Output()}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.results {
		if r.done != 60 {
			t.Errorf("%s: %d of 60 entries were processed", r.name, r.done)
		}
	}
	text := report.markdown()
	costs, err := parseCosts(text)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	t.Logf("%s\n%s", text, bound(costs, f.deployment))
}

// TestInterrupted ends a measurement. Its processes and its control group end with it.
func TestInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the deployed programs")
	}
	ctx, cancel := context.WithCancel(t.Context())
	f, err := newFixture(ctx, root(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	groups := t.TempDir()
	newFakeQuota := func(int) (*quota, error) {
		cancel()
		return &quota{groups}, nil
	}
	_, err = (&meter{fixture: f, entries: 60, newQuota: newFakeQuota, progress: t.Output()}).measure(ctx, works()[0])
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want that of the context", err)
	}
	if _, err := os.Stat(groups); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the control group is still there: %v", err)
	}
}

// TestPagesAgree compares the bound in docs/reliability.md with the table in docs/scale.md and with template.yaml.
func TestPagesAgree(t *testing.T) {
	section := func(path string, marks page.Marks) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root(t), path))
		if err != nil {
			t.Fatal(err)
		}
		found, err := marks.Section(string(text))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return found
	}
	deployed, err := template.Load(filepath.Join(root(t), "template.yaml"), template.Options{
		StackName: "capacity", Parameters: local.Parameters(),
	})
	if err != nil {
		t.Fatal(err)
	}
	costs, err := parseCosts(section("docs/scale.md", resultMarks()))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(bound(costs, deployed))
	if got := section("docs/reliability.md", boundMarks()); got != want {
		t.Errorf("docs/reliability.md has\n%s\ndocs/scale.md leads to\n%s\nRun make capacity", got, want)
	}
	_, four, _ := strings.Cut(want, "\n| 4 | ")
	if !strings.Contains(four, "| 1 min |") && !strings.Contains(four, "| 2 min |") {
		t.Errorf("four sweeps do not end a backlog in two minutes:\n%s", want)
	}
}

// TestQuota makes groups in folders with the files of both versions, as the kernel has them.
func TestQuota(t *testing.T) {
	for name, c := range map[string]struct {
		parent string   // of the group
		files  []string // that exist before
		want   map[string]string
	}{
		"version 1": {
			"cpu", []string{"cpu/cpu.cfs_quota_us"},
			map[string]string{"cpu.cfs_period_us": "20000", "cpu.cfs_quota_us": "5000"},
		},
		"version 2": {"", []string{"cgroup.subtree_control"}, map[string]string{"cpu.max": "5000 20000"}},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			for _, file := range c.files {
				write(t, filepath.Join(top, file), "")
			}
			got := limitsOf(top, 0.25)
			if difference := cmp.Diff(c.want, got.files); difference != "" || len(got.order) != len(c.want) {
				t.Errorf("the limits differ (-want +got):\n%s", difference)
			}
			if got.parent != filepath.Join(top, c.parent) {
				t.Errorf("the group is in %s", got.parent)
			}
			old := filepath.Join(got.parent, groupPrefix+"1")
			if err := os.Mkdir(old, 0o755); err != nil {
				t.Fatal(err)
			}
			// No kernel makes the files of this group, so it cannot be limited, and is removed.
			if _, err := newQuota(top, 0.25); err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v, want one line", err)
			}
			if left, _ := filepath.Glob(filepath.Join(got.parent, groupPrefix+"*")); len(left) > 0 {
				t.Errorf("groups are left: %v", left)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestQuotaOfThisMachine bounds a process that would use a whole processor.
func TestQuotaOfThisMachine(t *testing.T) {
	q, err := newQuota(controlGroups, 0.2)
	if err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	defer q.remove()
	busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = busy.Process.Kill()
		_ = busy.Wait()
	}()
	if err := q.add(busy.Process.Pid); err != nil {
		t.Fatal(err)
	}
	for q.throttled() < 3 {
		if t.Context().Err() != nil {
			t.Fatal("the process was never throttled")
		}
	}
}
