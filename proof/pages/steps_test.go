package pages

import (
	"regexp"
	"strings"
	"testing"
)

// TestStepsAreDocumented compares the parts of a request on the architecture page with the comments of the function
// that handles it, in each operation.
func TestStepsAreDocumented(t *testing.T) {
	_, section, _ := strings.Cut(readFile(t, architecturePage), "\n## How does a request run?\n")
	section, _, _ = strings.Cut(section, "\n### ")
	documented := regexp.MustCompile(`(?m)^\d\. \*\*([^*]+)\*\*`).FindAllStringSubmatch(section, -1)
	for _, file := range []string{"functions/charge/charge.go", "functions/pay/pay.go", "functions/sms/sms.go"} {
		_, body, _ := strings.Cut(readFile(t, file), ") Handle(ctx ")
		body, _, _ = strings.Cut(body, "\n}\n")
		commented := regexp.MustCompile(`(?m)^\t// (.*)$`).FindAllStringSubmatch(body, -1)
		if len(commented) != len(documented) || len(documented) == 0 {
			t.Errorf("%s has %d commented parts, docs/architecture.md has %d", file, len(commented), len(documented))
			continue
		}
		for i, part := range documented {
			if name := strings.TrimSuffix(part[1], "."); !strings.HasPrefix(commented[i][1], name) {
				t.Errorf("%s: part %d is %q, docs/architecture.md has %q", file, i+1, commented[i][1], name)
			}
		}
	}
}
