package statement

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Format is a form of statements that is known.
type Format struct {
	Name string
	// Platform has statements of this form; "" for every platform.
	Platform string
	// Source is the public page that has the form.
	Source string
	read   func(in io.Reader, m Mapping, yield func(Row) error) (Summary, error)
}

// Generic is the name of the generic form.
const Generic = "generic"

// formats lists the forms. Only forms that the platform itself has published are rows; docs/operators has, for each
// other platform, that it has published none.
var formats = []Format{
	{Name: Generic, Source: "docs/reconciliation.md", read: Read},
	{Name: "wave", Platform: "wave-checkout", Source: "https://docs.wave.com/balance-api", read: readWave},
}

// Formats lists the forms.
func Formats() []Format { return slices.Clone(formats) }

// FindFormat returns the form with a name.
func FindFormat(name string) (Format, error) {
	var names []string
	for _, f := range formats {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Format{}, fmt.Errorf("%q is not a form of statements: use %s", name, strings.Join(names, " or "))
}

// Read reads a statement of the form, as the function Read does.
func (f Format) Read(in io.Reader, m Mapping, yield func(Row) error) (Summary, error) {
	return f.read(in, m, yield)
}
