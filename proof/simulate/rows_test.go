package simulate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRows runs TestSeeds in a program whose store hands the transition of each write on, which the store as it ships
// drops. So each write must be as the row says that its writer named, and the report counts the writes of each row.
func TestRows(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	const parameter, writers = "_ ledger.Transition) (*ledger.Entry, error) {", 2
	original, err := filepath.Abs("../../shared/ledger/dynamo/store.go")
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	if count := strings.Count(string(shipped), parameter); count != writers {
		t.Fatalf("%s has %q %d times, want %d", original, parameter, count, writers)
	}
	store, overlay := filepath.Join(t.TempDir(), "store.go"), filepath.Join(t.TempDir(), "overlay.json")
	changed := strings.ReplaceAll(string(shipped), parameter,
		"t"+parameter[len("_"):]+"\n\tctx = context.WithValue(ctx, ledger.NoTransition, t)")
	replace := fmt.Sprintf(`{"Replace":{%q:%q}}`, original, store)
	for name, text := range map[string]string{store: changed, overlay: replace} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seeds := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-v",
		"-timeout", "0", "-run", "^TestSeeds$", ".", "-seeds", fmt.Sprint(*seedCount), "-first", fmt.Sprint(*firstSeed),
		"-platforms", fmt.Sprint(*platformStep))
	seeds.Stderr = os.Stderr
	output, err := seeds.Output()
	t.Logf("%s", output)
	if err != nil {
		t.Error(err)
	}
}
