package localtest_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/gatewayctl"
	"mobilegateway/internal/local"
	"mobilegateway/internal/localtest"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/callback"
	"mobilegateway/shared/keyring"
	"mobilegateway/shared/secret"
)

// maxRevocation is the longest time from the revocation of a leaked key until nothing that it signed is accepted.
const maxRevocation = time.Minute

// TestLeakedKeysEndWithinAMinute revokes a token key and a callback key on a local run, as docs/operations.md does, and
// measures until what they signed is refused.
func TestLeakedKeysEndWithinAMinute(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a whole gateway")
	}
	gateway := localtest.Start(t, localtest.Options{})
	status := gateway.Info().BaseURL + "/mobilemoney/v1/getStatus/DemoShop_absent"
	bearer := http.Header{"Authorization": {"Bearer " + shortLivedToken(t, gateway)}}
	stolen := signedCallback(t, gateway)
	probes := map[string]func() int{
		"tokens": func() int {
			code, _, _ := localtest.Send(t, http.MethodGet, status, "", bearer)
			return code
		},
		"callbacks": func() int { // an authentic address with a body that nothing can decode
			code, _, _ := localtest.Send(t, http.MethodPost, stolen, "{}", nil)
			return code
		},
	}
	accepted := map[string]int{"tokens": http.StatusNotFound, "callbacks": http.StatusBadRequest}
	refused := map[string]int{"tokens": http.StatusUnauthorized, "callbacks": http.StatusNotFound}
	for ring, probe := range probes {
		if code := probe(); code != accepted[ring] {
			t.Fatalf("%s: %d before the revocation, want %d", ring, code, accepted[ring])
		}
	}
	revokedAt := time.Now()
	for ring := range probes {
		runTool(t, gateway.Dir, "keys", "revoke", ring, "1", "--compromised")
	}
	poll := time.NewTicker(500 * time.Millisecond)
	defer poll.Stop()
	for len(probes) > 0 && time.Since(revokedAt) < maxRevocation {
		<-poll.C
		for ring, probe := range probes {
			if probe() == refused[ring] {
				elapsed := time.Since(revokedAt).Round(100 * time.Millisecond)
				t.Logf("ring %s: refused %s after the revocation", ring, elapsed)
				delete(probes, ring)
			}
		}
	}
	for ring := range probes {
		t.Errorf("ring %s: what leaked is accepted after %s", ring, maxRevocation)
	}
	bearer.Set("Authorization", "Bearer "+shortLivedToken(t, gateway))
	if code, _, text := localtest.Send(t, http.MethodGet, status, "", bearer); code != http.StatusNotFound {
		t.Errorf("a new token: %d %s, want 404 for an unknown order", code, text)
	}
	bearer.Set("Authorization", "Bearer "+gateway.Info().AccessToken)
	if code, _, text := localtest.Send(t, http.MethodGet, status, "", bearer); code != http.StatusNotFound {
		t.Errorf("the long-lived token: %d %s, want 404 for an unknown order", code, text)
	}
}

// shortLivedToken requests a token.
func shortLivedToken(t *testing.T, gateway *localtest.Gateway) string {
	t.Helper()
	info := gateway.Info()
	credentials := base64.StdEncoding.EncodeToString([]byte(info.ClientID + ":" + info.ClientSecret))
	header := http.Header{
		"Authorization": {"Basic " + credentials}, "Content-Type": {"application/x-www-form-urlencoded"},
	}
	_, _, text := localtest.Send(t, http.MethodPost, info.BaseURL+"/token", "grant_type=client_credentials", header)
	var response struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(text), &response); err != nil || response.AccessToken == "" {
		t.Fatalf("no token: %s", text)
	}
	return response.AccessToken
}

// signedCallback signs a callback address with the ring that leaked.
func signedCallback(t *testing.T, gateway *localtest.Gateway) string {
	t.Helper()
	environment := gateway.Environment()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	leaked, err := local.Deployment{Client: client}.SecretValue(t.Context(), environment["CALLBACK_KEY_SECRET"])
	if err != nil {
		t.Fatal(err)
	}
	keys := callback.New(keyring.NewRefreshingRing(secret.Static(leaked), time.Minute, time.Now), time.Minute)
	ring, err := keys.Ring(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ring.PaymentURL(gateway.Info().BaseURL, "orange", "DemoShop_absent")
}

// runTool runs gatewayctl on the local run.
func runTool(t *testing.T, folder string, arguments ...string) {
	t.Helper()
	var output bytes.Buffer
	code := gatewayctl.Run(t.Context(), append([]string{"--local", "--yes", "--reason", "leaked"}, arguments...),
		gatewayctl.System{
			Stdin: strings.NewReader(""), Stdout: &output, Stderr: &output, User: "test",
			Now: time.Now, Rand: rand.Reader,
			Getenv: func(name string) string {
				if name == "LOCAL_DIR" {
					return folder
				}
				return os.Getenv(name)
			},
			Connect: gatewayctl.Connect,
		})
	if code != gatewayctl.ExitDone {
		t.Fatalf("%v: exit %d: %s", arguments, code, output.String())
	}
}
