package gatewayctl

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"
)

// auditFileVariable has the path of the file with the copies of a local run.
const auditFileVariable = "AUDIT_LOG_FILE"

// fileCopies are AuditCopies in a file of this machine, one line for each record. Only a local run uses it, because its
// user may change the file.
type fileCopies struct{ path string }

var _ AuditCopies = fileCopies{}

// Write implements AuditCopies.
func (f fileCopies) Write(_ context.Context, _ time.Time, document string) error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(document + "\n")
	return errors.Join(err, file.Close())
}

// Documents implements AuditCopies.
func (f fileCopies) Documents(context.Context) (documents []string, err error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		documents = append(documents, strings.TrimSuffix(line, "\n"))
	}
	return documents, err
}
