// Command postman makes the Postman collection of docs/postman from the contract, and runs it by newman against a local
// run: `make postman`. The local run ends with the command, also after an interrupt.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"mobilegateway/internal/childprocess"
	"mobilegateway/internal/local"
	"mobilegateway/internal/local/file"
)

// stopTimeout limits how long newman may take to end after an interrupt.
const stopTimeout = 5 * time.Second

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	if err := run(ctx); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "postman:", err)
		os.Exit(1)
	}
}

// run makes the collection, starts the local run and lets newman send every request.
func run(ctx context.Context) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := execute(ctx, filepath.Join(root, "tools", "postman", "render")); err != nil {
		return err
	}
	dir := filepath.Join(root, ".local", "postman")
	gateway, err := local.Start(ctx, local.Config{Root: root, Dir: dir, Reset: true})
	if err != nil {
		return err
	}
	defer gateway.Close()
	environment := filepath.Join(dir, "environment.json")
	if err := file.ReplaceJSON(environment, newEnvironment(gateway.Info())); err != nil {
		return err
	}
	return execute(ctx, filepath.Join(root, ".local", "tools", "postman", "node_modules", ".bin", "newman"), "run",
		filepath.Join(root, "docs", "postman", "gateway.postman_collection.json"), "--environment", environment,
		"--timeout-request", "30000", "--color", "off")
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
