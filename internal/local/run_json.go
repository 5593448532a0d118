package local

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mobilegateway/internal/local/file"
)

// Info is the content of run.json: addresses and credentials for clients.
type Info struct {
	BaseURL string `json:"base_url"`
	MerchantCredentials
	SecondMerchant  MerchantCredentials `json:"second_merchant"`
	LimitedMerchant MerchantCredentials `json:"limited_merchant"`
	InboxURL        string              `json:"inbox_url"`
	SandboxURL      string              `json:"sandbox_url"`
	StubsURL        string              `json:"stubs_url,omitempty"` // only with Config.Stubs
	PIDs            PIDs                `json:"pids"`
}

// MerchantCredentials are one merchant's names, credentials and constants.
type MerchantCredentials struct {
	AccessToken   string `json:"access_token"`
	ClientID      string `json:"client_id"`
	ClientSecret  string `json:"client_secret"`
	Merchant      string `json:"merchant"`
	OnBehalfOf    string `json:"on_behalf_of"`
	ServiceID     string `json:"service_id"`
	ApplicationID string `json:"application_id"`
	ContactID     string `json:"contact_id"`
	GWToken       string `json:"gw_token"`
	GWAlias       string `json:"gw_alias"`
	WebhookSecret string `json:"webhook_secret"`
}

// PIDs are the run's process ids. DynamoDB is missing if the run did not start the database.
type PIDs struct {
	Run       int              `json:"run"`
	Functions map[string][]int `json:"functions"`
	DynamoDB  int              `json:"dynamodb,omitempty"`
}

func (r *Gateway) pids() PIDs {
	pids := PIDs{Run: os.Getpid(), Functions: map[string][]int{}, DynamoDB: r.dynamoPID}
	for _, f := range r.template.Functions {
		pids.Functions[f.Name] = r.functions[f.LogicalID].PIDs()
	}
	return pids
}

// publishRunFiles writes run.json, keeps its process ids up to date, and deletes it at the end. It also writes aws.env,
// with which a shell's tools find the local tables and secrets.
func (r *Gateway) publishRunFiles(context.Context) error {
	r.info.PIDs = r.pids()
	path, environment := filepath.Join(r.config.Dir, "run.json"), filepath.Join(r.config.Dir, "aws.env")
	r.onClose(func() {
		_ = os.Remove(path)
		_ = os.Remove(environment)
	})
	if err := file.Replace(environment, r.shellEnvironment()); err != nil {
		return err
	}
	if err := r.writeInfo(path); err != nil {
		return err
	}
	r.runUntilClose(func(ctx context.Context) {
		for {
			select {
			case <-r.processesChanged:
				if err := r.writeInfo(path); err != nil {
					r.console.printf("%v", err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

func (r *Gateway) writeInfo(path string) error {
	info := r.info
	info.PIDs = r.pids()
	return file.ReplaceJSON(path, info)
}

func (r *Gateway) shellEnvironment() []byte {
	var text strings.Builder
	environment := r.Environment()
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		fmt.Fprintf(&text, "export %s='%s'\n", name, environment[name])
	}
	return []byte(text.String())
}
