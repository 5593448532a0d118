package dynoxide

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"mobilegateway/internal/file"
)

// SQLite keeps an application's own version of a file at this offset of its header, as a big-endian number of 4 bytes.
const (
	versionOffset = 60
	versionBytes  = 4
)

// prepareStorage makes sure that the data file at path has the index and the trigger of npm/storage.sql. A new file is
// a copy of the installation's empty one. An older file, or one from Import, gets both once. No process may have the
// file open. If the file is not a database, the error's text contains "database".
func prepareStorage(ctx context.Context, tool, path string) error {
	found, err := fileVersion(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return createStorage(tool, path)
	case err != nil:
		return fmt.Errorf("read the database %s: %w", path, err)
	case found == storageVersion():
		return os.Chmod(path, 0o600) // a file of an earlier version, which others could read
	}
	return runStorageSQL(ctx, tool, path)
}

// createStorage copies the installation's empty data file.
func createStorage(tool, path string) error {
	empty, err := os.ReadFile(emptyStorage(tool))
	if err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm"} { // SQLite would replay the log of a file that was deleted
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return file.Replace(path, empty)
}

// makeEmptyStorage makes the empty data file of an installation: the engine creates its tables, then storage.sql runs.
func makeEmptyStorage(ctx context.Context, tool string) error {
	server, err := launchOnFreePort(ctx, engine(tool), emptyStorage(tool))
	if err != nil {
		return err
	}
	server.Stop()
	return runStorageSQL(ctx, tool, emptyStorage(tool))
}

func emptyStorage(tool string) string { return filepath.Join(tool, "empty.db") }

// runStorageSQL runs npm/storage.sql on a data file and marks the file with storageVersion.
func runStorageSQL(ctx context.Context, tool, path string) error {
	node, err := exec.LookPath("node")
	if err != nil {
		return errors.New("node is not on the PATH: install Node.js with npm, " + otherServer)
	}
	script := filepath.Join(tool, "prepare.js")
	command := exec.CommandContext(ctx, node, script, path, strconv.FormatUint(uint64(storageVersion()), 10))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s (%w)", lastLine(string(output)), err)
	}
	return nil
}

// storageVersion identifies the content of npm/storage.sql. SQLite reads the number as signed, so it has 31 bits.
func storageVersion() uint32 {
	text, _ := pins.ReadFile("npm/storage.sql") // it is in the program
	return crc32.ChecksumIEEE(text) >> 1
}

// fileVersion reads the version from a data file's header. A file that is too short for one has version 0.
func fileVersion(path string) (uint32, error) {
	data, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = data.Close() }() // it was only read
	header := make([]byte, versionBytes)
	if _, err := data.ReadAt(header, versionOffset); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return binary.BigEndian.Uint32(header), nil
}
