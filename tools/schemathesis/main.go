// Command schemathesis checks a running gateway against its published contract: `make contract`.
//
// It starts a local run, writes the contract of the run's first merchant beside it, and runs the script check.
// Its arguments go to schemathesis. The local run ends with the command, also after an interrupt.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"mobilegateway/internal/childprocess"
	"mobilegateway/internal/contract"
	"mobilegateway/internal/local"
	"mobilegateway/internal/local/file"
	"mobilegateway/shared/operator"
)

// stopTimeout limits how long the script may take to end after an interrupt.
const stopTimeout = 5 * time.Second

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "contract:", err)
		os.Exit(1)
	}
}

// run starts the local run and the script. arguments go to schemathesis.
func run(ctx context.Context, arguments []string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, ".local", "contract")
	gateway, err := local.Start(ctx, local.Config{Root: root, Dir: dir, Reset: true})
	if err != nil {
		return err
	}
	defer gateway.Close()
	info := gateway.Info()
	if err := writeContract(root, filepath.Join(dir, "contract.json"), info); err != nil {
		return err
	}
	runJSON, err := json.Marshal(info)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, filepath.Join(root, "tools", "schemathesis", "check"), arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CONTRACT_RUN="+string(runJSON), "CONTRACT_URL="+info.BaseURL,
		"CONTRACT_TOKEN="+info.AccessToken, "CONTRACT_CLIENT="+info.ClientID, "CONTRACT_SECRET="+info.ClientSecret)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return childprocess.Run(command, stopTimeout)
}

// writeContract writes the contract of the run's first merchant as JSON.
func writeContract(root, path string, info local.Info) error {
	document, err := contract.Load(filepath.Join(root, "docs", "openapi.yaml"))
	if err != nil {
		return err
	}
	bound, err := document.ForMerchant(info.BaseURL, map[string][]string{
		"service_id": {info.ServiceID}, "application_id": {info.ApplicationID}, "contact_id": {info.ContactID},
		"on_behalf_of": {info.OnBehalfOf}, "order_prefix": {info.Merchant + "_"},
		"notif_url": {info.InboxURL + "/hook"}, "mno_name": operator.NamesWithPlatform(), // the local run has no routes
	})
	if err != nil {
		return err
	}
	return file.ReplaceJSON(path, bound)
}
