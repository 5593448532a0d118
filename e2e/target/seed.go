package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mobilegateway/e2e/harness"
	"mobilegateway/internal/file"
	"mobilegateway/local"
	"mobilegateway/shared/merchant"
)

// protectedStagePrefixes begin the names of stages that no test may use; deploy/sandbox.yaml refuses the same ones.
var protectedStagePrefixes = []string{"prod", "live"}

// seededRunJSON returns the run.json of a stack with these outputs. It seeds the stack if there is no run.json yet. It
// checks the stack every time, because the stack may have got real operators since then.
func seededRunJSON(
	ctx context.Context, root string, variable func(string) string, stack string, outputs map[string]string,
) (string, error) {
	if err := checkStageAllowed(outputs); err != nil {
		return "", fmt.Errorf("the stack %s: %w", stack, err)
	}
	d, err := deploymentOf(outputs, variable)
	if err != nil {
		return "", err
	}
	current, err := d.SecretValue(ctx, d.Names["OperatorSecret"])
	if err != nil {
		return "", err
	}
	if err := checkOnlySandbox(current, d.SandboxURL); err != nil {
		return "", fmt.Errorf("the stack %s: %w", stack, err)
	}
	path := filepath.Join(root, ".local", "e2e-target", stack, "run.json")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	info, err := d.Seed(ctx)
	if errors.Is(err, merchant.ErrNameTaken) {
		return "", fmt.Errorf("the stack %s has its merchants, but their credentials in %s are gone: restore that file",
			stack, path)
	}
	if err != nil {
		return "", err
	}
	for _, shop := range []*local.MerchantCredentials{&info.MerchantCredentials, &info.SecondMerchant,
		&info.LimitedMerchant} {
		shop.ServiceID, shop.ApplicationID, shop.ContactID = outputs["ServiceId"], outputs["ApplicationId"],
			outputs["ContactId"]
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, file.ReplaceJSON(path, info)
}

func checkStageAllowed(outputs map[string]string) error {
	stage := outputs["Stage"]
	if stage == "" {
		return errors.New("it is not a stack of this template, or an older one: it has no output Stage")
	}
	for _, prefix := range protectedStagePrefixes {
		if strings.HasPrefix(stage, prefix) {
			return fmt.Errorf("its stage %s is protected: the stories write secrets and payments; use make smoke",
				stage)
		}
	}
	return nil
}

func deploymentOf(outputs map[string]string, variable func(string) string) (local.Deployment, error) {
	for _, name := range []string{"SANDBOX_URL", "SANDBOX_TOKEN", "INBOX_URL"} {
		if variable(name) == "" {
			return local.Deployment{}, fmt.Errorf("%s is not set: name a sandbox and an inbox that the stack reaches",
				name)
		}
	}
	base, err := baseURL(outputs, variable)
	if err != nil {
		return local.Deployment{}, err
	}
	return harness.StackDeployment(outputs, variable, &harness.Stubs{
		SandboxURL: variable("SANDBOX_URL"), SandboxToken: variable("SANDBOX_TOKEN"), InboxURL: variable("INBOX_URL"),
	}, base)
}

// checkOnlySandbox refuses a stack whose operators' secret contains another platform than the sandbox.
func checkOnlySandbox(secret []byte, sandbox string) error {
	if len(secret) == 0 {
		return nil
	}
	var platforms map[string]struct {
		Accounts map[string]struct {
			BaseURL string `json:"base_url"`
		} `json:"accounts"`
	}
	if json.Unmarshal(secret, &platforms) != nil {
		return errors.New("its operators' secret does not have the expected form")
	}
	for name, operator := range platforms {
		for _, account := range operator.Accounts {
			if account.BaseURL != sandbox {
				return fmt.Errorf("its operators' secret has another platform than this sandbox for %s: "+
					"use a stack for tests", name)
			}
		}
	}
	return nil
}
