// Package page writes the generated sections of Markdown pages: what two marks enclose.
package page

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Marks are the two lines around a generated section, each with its line feed.
type Marks struct{ Begin, End string }

// NewMarks returns the marks of the section with a name: HTML comments, which no reader sees.
func NewMarks(name string) Marks {
	return Marks{"<!-- " + name + ": begin -->\n", "<!-- " + name + ": end -->\n"}
}

// Section returns what the marks enclose in the text of a page, without the blank lines around it.
func (m Marks) Section(text string) (string, error) {
	_, rest, begun := strings.Cut(text, m.Begin)
	section, _, ended := strings.Cut(rest, m.End)
	if !begun || !ended {
		return "", m.missing()
	}
	return strings.Trim(section, "\n"), nil
}

// Replace writes a section into a file, between its marks. A file without the marks is an error.
func (m Marks) Replace(path, section string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, begun := strings.Cut(string(old), m.Begin)
	_, tail, ended := strings.Cut(rest, m.End)
	if !begun || !ended {
		return fmt.Errorf("%s: %w", path, m.missing())
	}
	text := head + m.Begin + "\n" + strings.Trim(section, "\n") + "\n\n" + m.End + tail
	return os.WriteFile(path, []byte(text), 0o644)
}

func (m Marks) missing() error {
	return fmt.Errorf("the page has no marks %q and %q: add them where the section belongs", m.Begin, m.End)
}

// Machine names the compiler and the machine of a measurement.
func Machine() string {
	return fmt.Sprintf("%s on %s/%s, %d processors", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}
