// Package schemathesis checks a running gateway against its published contract: `make contract`.
package schemathesis

import (
	"encoding/json"
	"flag"
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
	"mobilegateway/proof/contract"
	"mobilegateway/shared/operator"
)

// stopTimeout limits how long the script may take to end after an interrupt.
const stopTimeout = 5 * time.Second

// TestContract starts a local run, writes the contract of the run's first merchant beside it, and runs the script
// check. Arguments after -args go to schemathesis. The local run ends with the test, also after an interrupt.
func TestContract(t *testing.T) {
	if os.Getenv("CONTRACT") == "" {
		t.Skip("make contract runs this: it needs installed tools")
	}
	ctx, cancel := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	root, err := repository.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, ".local", "contract")
	gateway, err := local.Start(ctx, local.Config{Root: root, Dir: dir, Reset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer gateway.Close()
	info := gateway.Info()
	if err := writeContract(root, filepath.Join(dir, "contract.json"), info); err != nil {
		t.Fatal(err)
	}
	runJSON, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(ctx, filepath.Join(root, "tools", "schemathesis", "check"), flag.Args()...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CONTRACT_RUN="+string(runJSON), "CONTRACT_URL="+info.BaseURL,
		"CONTRACT_TOKEN="+info.AccessToken, "CONTRACT_CLIENT="+info.ClientID, "CONTRACT_SECRET="+info.ClientSecret)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := childprocess.Run(command, stopTimeout); err != nil {
		t.Error("contract:", err)
	}
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
