package result

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/internal/file"
)

// version is the version of the form of a file of --result.
const version = 1

// head is the first line of a file of --result, and end the last one. The lines between are rows.
type head struct {
	Version int `json:"reconciliation"`
	View
}

type end struct {
	Rows int `json:"rows"`
	Summary
}

// Write writes a result to a new file, one JSON object a line. each calls its argument with each row. The file appears
// when it is whole.
func Write(path string, view View, summary Summary, each func(func(Row) error) error) error {
	if _, err := os.Lstat(path); err == nil {
		return output.UsageError("--result: %s exists: name a new file", path)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	buffer := bufio.NewWriter(temporary)
	lines := json.NewEncoder(buffer)
	lines.SetEscapeHTML(false)
	count := 0
	err = errors.Join(lines.Encode(head{version, view}), each(func(row Row) error {
		count++
		return lines.Encode(row)
	}), lines.Encode(end{count, summary}), buffer.Flush(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name()) // the first error is the cause
	}
	return err
}

// Read reads a file of reconcile --result and yields each row. It ends with an error unless the file is whole.
func Read(path string, yield func(Row) error) (View, error) {
	opened, err := file.OpenPrivate(path, os.O_RDONLY)
	if err != nil {
		return View{}, err
	}
	view, err := readLines(opened, yield)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return view, errors.Join(err, opened.Close())
}

var errNoResult = errors.New("is not a whole result of reconcile --result: run reconcile again")

func readLines(in io.Reader, yield func(Row) error) (View, error) {
	lines := json.NewDecoder(in)
	var first head
	if err := lines.Decode(&first); err != nil || first.Version != version {
		return first.View, errNoResult
	}
	for count := 0; ; count++ {
		var line struct {
			Row
			Rows *int `json:"rows"`
		}
		if err := lines.Decode(&line); err != nil {
			return first.View, errNoResult
		}
		if line.Rows != nil {
			if *line.Rows != count || lines.More() {
				return first.View, errNoResult
			}
			return first.View, nil
		}
		if line.Class == "" {
			return first.View, errNoResult
		}
		if err := yield(line.Row); err != nil {
			return first.View, err
		}
	}
}
