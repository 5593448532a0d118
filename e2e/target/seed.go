package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mobilegateway/internal/local"
	"mobilegateway/internal/local/file"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/merchant"
)

// protectedStagePrefixes is how the names of stages begin that no test touches; deploy/sandbox.yaml refuses the same.
func protectedStagePrefixes() []string { return []string{"prod", "live"} }

// seededRunJSON gives the run.json of a stack with these outputs, which is made when there is none yet. What the stack is now
// is looked at every time: it may have become somebody's since it was furnished.
func seededRunJSON(ctx context.Context, root string, variable func(string) string, stack string, outputs map[string]string) (string, error) {
	if err := checkStageAllowed(outputs); err != nil {
		return "", fmt.Errorf("the stack %s: %w", stack, err)
	}
	d, err := deploymentOf(outputs, variable)
	if err != nil {
		return "", err
	}
	current, err := d.SecretValue(ctx, d.OperatorSecret)
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
		return "", fmt.Errorf("the stack %s was furnished before, and what its merchants hold is no more in %s: bring that file", stack, path)
	}
	if err != nil {
		return "", err
	}
	for _, shop := range []*local.MerchantCredentials{&info.MerchantCredentials, &info.SecondMerchant, &info.LimitedMerchant} {
		shop.ServiceID, shop.ApplicationID, shop.ContactID = outputs["ServiceId"], outputs["ApplicationId"], outputs["ContactId"]
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return "", err
	}
	return path, file.Replace(path, append(text, '\n'))
}

// checkStageAllowed refuses what must not be tested.
func checkStageAllowed(outputs map[string]string) error {
	stage := outputs["Stage"]
	if stage == "" {
		return errors.New("it has no output Stage: it is no stack of this template, or an older one")
	}
	for _, prefix := range protectedStagePrefixes() {
		if strings.HasPrefix(stage, prefix) {
			return fmt.Errorf("its stage is %s: the stories write secrets and payments (make smoke does not)", stage)
		}
	}
	return nil
}

// deploymentOf is the stack as it is furnished.
func deploymentOf(outputs map[string]string, variable func(string) string) (local.Deployment, error) {
	for _, name := range []string{"SANDBOX_URL", "SANDBOX_TOKEN", "INBOX_URL"} {
		if variable(name) == "" {
			return local.Deployment{}, fmt.Errorf("%s is not set: the sandbox operator and the inbox that the stack reaches", name)
		}
	}
	base, err := baseURL(outputs, variable)
	if err != nil {
		return local.Deployment{}, err
	}
	client, err := awsclient.New(variable)
	return local.Deployment{
		Client: client, MerchantTable: outputs["MerchantTable"], OperatorSecret: outputs["OperatorSecret"],
		KeySecrets:    []string{outputs["TokenKeySecret"], outputs["CallbackKeySecret"], outputs["WebhookKeySecret"]},
		WebhookSecret: outputs["WebhookKeySecret"],
		BaseURL:       base, SandboxURL: variable("SANDBOX_URL"), InboxURL: variable("INBOX_URL"),
		SandboxToken: variable("SANDBOX_TOKEN"), Now: time.Now,
	}, err
}

// checkOnlySandbox refuses a stack that is somebody's: its operators' secret leads elsewhere than to the sandbox.
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
		return errors.New("its operators' secret is not of the form")
	}
	for name, operator := range platforms {
		for _, account := range operator.Accounts {
			if account.BaseURL != sandbox {
				return fmt.Errorf("its operators' secret leads %s to another platform than this sandbox: it is no stack for tests", name)
			}
		}
	}
	return nil
}
