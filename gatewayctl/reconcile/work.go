package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/reconcile/runs"
	"mobilegateway/gatewayctl/reconcile/statement"
	"mobilegateway/internal/file"
)

// workAge is how long an interrupted reconciliation can be continued. The ledger has changed more after it.
const workAge = 24 * time.Hour

// work is the folder of a reconciliation's sorted parts, with how far it is.
type work struct {
	folder string
	unlock func()
	progress
}

// progress is how far a reconciliation is. A continued one has the same command.
type progress struct {
	Command    string         `json:"command"` // the hash of everything that it depends on
	StartedAt  time.Time      `json:"started_at"`
	Statements *statementRead `json:"statements,omitempty"` // nil until all of them are read
	Ledger     ledgerRead     `json:"ledger"`
}

// statementRead is what was read of the statements.
type statementRead struct {
	Parts     []string            `json:"parts"`
	Summaries []statement.Summary `json:"summaries"`
}

// ledgerRead is what was read of the ledger: the pages before the cursor of a merchant.
type ledgerRead struct {
	Merchant string   `json:"merchant,omitempty"`
	Day      string   `json:"day,omitempty"`
	Cursor   string   `json:"cursor,omitempty"`
	Parts    []string `json:"parts,omitempty"`
	Read     int      `json:"read"`     // transactions
	Compared int      `json:"compared"` // of the account
	IsWhole  bool     `json:"is_whole,omitempty"`
}

const progressFile = "progress.json"

// openWork opens the folder, which only this user can read. It continues what an interrupted command has left there.
func openWork(folder, command string, now time.Time, notes io.Writer) (*work, error) {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if info, err := os.Lstat(folder); err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return nil, output.UsageError("%s is not a folder that only you can use (mode 0700): name another with --work",
			folder)
	}
	opened, err := file.OpenPrivate(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, output.UsageError("%w: name another folder with --work", err)
	}
	if err := opened.Close(); err != nil {
		return nil, err
	}
	unlock, err := file.TryLock(filepath.Join(folder, "lock"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: another reconciliation works there, or name another folder with --work", folder,
			err)
	}
	w := &work{folder: folder, unlock: unlock, progress: progress{Command: command, StartedAt: now.UTC()}}
	found, err := readProgress(filepath.Join(folder, progressFile))
	switch {
	case err != nil || found.Command == "":
	case found.Command != command:
		fmt.Fprintf(notes, "%s is of another reconciliation: it begins again.\n", folder)
	case now.Sub(found.StartedAt) > workAge:
		fmt.Fprintf(notes, "%s is older than %v: it begins again.\n", folder, workAge)
	default:
		w.progress = found
		fmt.Fprintf(notes, "Continuing in %s behind %s of the ledger.\n", folder,
			output.Plural(found.Ledger.Read, "transaction"))
		return w, nil
	}
	return w, w.clear()
}

// readProgress reads the progress in a folder. A damaged one counts as none.
func readProgress(path string) (progress, error) {
	var found progress
	opened, err := file.OpenPrivate(path, os.O_RDONLY)
	if err != nil {
		return found, err
	}
	err = json.NewDecoder(opened).Decode(&found)
	return found, errors.Join(err, opened.Close())
}

// clear removes everything but the lock.
func (w *work) clear() error {
	names, err := os.ReadDir(w.folder)
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range names {
		if name.Name() != "lock" {
			faults = append(faults, os.Remove(filepath.Join(w.folder, name.Name())))
		}
	}
	return errors.Join(faults...)
}

// save replaces the progress atomically.
func (w *work) save() error {
	return file.ReplaceJSON(filepath.Join(w.folder, progressFile), w.progress)
}

// sorter returns a sorter in the folder that continues with parts.
func (w *work) sorter(name string, parts []string) *runs.Sorter {
	s := runs.New(w.folder, name)
	s.Files = parts
	return s
}

// close ends the use of the folder. It removes a folder with nothing to continue.
func (w *work) close(isDone bool) error {
	var err error
	if isDone {
		if err = w.clear(); err == nil {
			err = errors.Join(os.Remove(filepath.Join(w.folder, "lock")), os.Remove(w.folder))
		}
	}
	w.unlock()
	return err
}

// hashFile returns the SHA-256 of a file. A pipe is refused, because a statement is read twice, and a device may not
// end.
func hashFile(path string) (string, error) {
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", output.UsageError("%s is not a file: a statement is read twice, so a folder, pipe or device is none",
			path)
	}
	opened, err := os.Open(path)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, opened)
	return hex.EncodeToString(hash.Sum(nil)), errors.Join(err, opened.Close())
}
