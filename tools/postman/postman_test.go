// Package postman makes the Postman collection of docs/postman from the contract, and runs it by newman against a local
// run: `make postman`.
package postman

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"mobilegateway/internal/childprocess"
	"mobilegateway/internal/file"
	"mobilegateway/internal/repository"
	"mobilegateway/local"
)

// stopTimeout limits how long newman may take to end after an interrupt.
const stopTimeout = 5 * time.Second

// TestCollection makes the collection, starts the local run and lets newman send every request. The local run ends with
// the test, also after an interrupt.
func TestCollection(t *testing.T) {
	if os.Getenv("POSTMAN") == "" {
		t.Skip("make postman runs this: it installs newman")
	}
	ctx, cancel := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	root, err := repository.Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := execute(ctx, filepath.Join(root, "tools", "postman", "render")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, ".local", "postman")
	gateway, err := local.Start(ctx, local.Config{Root: root, Dir: dir, Reset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer gateway.Close()
	environment := filepath.Join(dir, "environment.json")
	if err := file.ReplaceJSON(environment, newEnvironment(gateway.Info())); err != nil {
		t.Fatal(err)
	}
	newman := filepath.Join(root, ".local", "tools", "postman", "node_modules", ".bin", "newman")
	err = execute(ctx, newman, "run", filepath.Join(root, "docs", "postman", "gateway.postman_collection.json"),
		"--environment", environment, "--timeout-request", "30000", "--color", "off")
	if err != nil {
		t.Error("postman:", err)
	}
}

// variable is a variable of a Postman environment.
type variable struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// newEnvironment returns the environment of the run's first merchant, in Postman's form.
func newEnvironment(info local.Info) map[string]any {
	return map[string]any{"name": "local run", "values": []variable{
		{"baseUrl", info.BaseURL}, {"accessToken", info.AccessToken},
		{"clientId", info.ClientID}, {"clientSecret", info.ClientSecret},
		{"merchant", info.Merchant}, {"onBehalfOf", info.OnBehalfOf}, {"serviceId", info.ServiceID},
		{"applicationId", info.ApplicationID}, {"contactId", info.ContactID}, {"notifyUrl", info.InboxURL},
		{"gwToken", info.GWToken}, {"gwAlias", info.GWAlias},
	}}
}

// execute runs a program. An interrupt ends its process group.
func execute(ctx context.Context, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return childprocess.Run(command, stopTimeout)
}
