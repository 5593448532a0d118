package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mobilegateway/local"
)

// outputRecorder records the output of a run, and also prints it if E2E_VERBOSE is set.
type outputRecorder struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write records a line.
func (p *outputRecorder) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if os.Getenv("E2E_VERBOSE") != "" {
		_, _ = os.Stderr.Write(text)
	}
	return p.text.Write(text)
}

// checkNoSecretsPrinted searches the output of the run and its functions for data that must never be logged. These are
// credentials, one-time codes, phone numbers, a merchant's state and the text of an SMS (specification,
// Authentication; decisions "authentication" and "pay-otp").
func checkNoSecretsPrinted(t *testing.T, g *target, printed *outputRecorder, folder string) {
	secrets := []string{"CANARY", "Bearer ", "Basic ", "cart%3D42", "Bonjour"}
	for _, s := range []local.MerchantCredentials{g.MerchantCredentials, g.SecondMerchant} {
		secrets = append(secrets, s.AccessToken, s.ClientSecret, s.GWToken, s.GWAlias,
			strings.TrimPrefix(s.WebhookSecret, "whsec_"))
	}
	secrets = append(secrets, "0700002000")
	for digits := 1001; digits <= 1011; digits++ {
		secrets = append(secrets, fmt.Sprintf("070000%d", digits))
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.log"))
	if err != nil || len(files) == 0 {
		t.Errorf("no logs in %s (%v)", folder, err)
	}
	texts := map[string]string{"the terminal": printed.text.String()}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	for name, text := range texts {
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s contains %q: %s", name, secret, text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
}
