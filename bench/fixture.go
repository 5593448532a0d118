package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"mobilegateway/internal/local"
	"mobilegateway/internal/runtimeapi"
	"mobilegateway/internal/template"
	"mobilegateway/shared/merchant"
)

// baseline is the name of the bare function that the others are measured beside.
const baseline = "hello"

// merchantName is the merchant that all requests come from.
const merchantName = "BenchShop"

// delays are what the stand-ins wait before each answer.
type delays struct{ table, secrets, operator time.Duration }

// typicalDelays are about what a function sees in a region: DynamoDB, Secrets Manager, and a quick operator.
func typicalDelays() delays {
	return delays{table: 3 * time.Millisecond, secrets: 10 * time.Millisecond, operator: 30 * time.Millisecond}
}

// fixture is everything around the programs: they themselves, what they talk to, and the merchant that calls them.
type fixture struct {
	functions []template.Function // in the template's order
	folder    string              // of the built programs
	delays    delays
	dynamo    *dynamoStub
	operator  *operatorStub
	token     string // the merchant's access token
	endpoints map[string]string
	servers   []*httptest.Server
}

// newFixture builds the programs and starts the stand-ins.
func newFixture(ctx context.Context, root string, wait delays) (*fixture, error) {
	deployment, err := template.Load(filepath.Join(root, "template.yaml"), template.Options{StackName: "bench", Region: "eu-west-1"})
	if err != nil {
		return nil, err
	}
	s := &fixture{functions: deployment.Functions, folder: filepath.Join(root, ".local", "bench"), delays: wait}
	// The builder looks at the sources of what ships; the bare function is not among them, so it is built each time.
	if err := os.RemoveAll(filepath.Join(s.folder, baseline)); err != nil {
		return nil, err
	}
	programs := append(deployment.Functions, template.Function{Name: baseline, CodeURI: "bench/hello/"})
	if err := local.Build(ctx, root, s.folder, programs); err != nil {
		return nil, err
	}
	s.dynamo, s.operator = newDynamoStub(wait.table), &operatorStub{delay: wait.operator}
	secrets, err := s.secrets(deployment)
	if err != nil {
		s.close()
		return nil, err
	}
	s.endpoints = map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "BENCH", "AWS_SECRET_ACCESS_KEY": "bench", "ALLOW_LOOPBACK": "true",
		"AWS_ENDPOINT_URL_DYNAMODB":        s.serve(s.dynamo),
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": s.serve(&secretsStub{delay: wait.secrets, secrets: secrets}),
	}
	if err := s.onboard(deployment); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close ends the stand-ins.
func (s *fixture) close() {
	for _, server := range s.servers {
		server.Close()
	}
}

// serve starts a stand-in and gives its address.
func (s *fixture) serve(handler http.Handler) string {
	server := httptest.NewServer(handler)
	s.servers = append(s.servers, server)
	return server.URL
}

// secrets are the values of the template's secrets by name: the operator's credentials, else a ring of one key.
func (s *fixture) secrets(deployment *template.Template) (map[string]string, error) {
	credentials, err := json.Marshal(map[string]any{"sandbox": map[string]any{
		"current": "a", "accounts": map[string]any{"a": map[string]string{
			"base_url": s.serve(s.operator), "access_token": "operator-token", "service_id": "service",
			"application_id": "application", "contact_id": "contact",
		}},
	}})
	if err != nil {
		return nil, err
	}
	ring, err := json.Marshal(map[string]any{"keys": []any{
		map[string]any{"number": 1, "key": bytes.Repeat([]byte{1}, 32), "added": time.Unix(0, 0).UTC()},
	}})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, secret := range deployment.Secrets {
		values[secret.Name] = string(ring)
	}
	values[deployment.SecretName("OperatorSecret")] = string(credentials)
	return values, nil
}

// onboard stores the profile of a merchant that may do everything in Ivory Coast.
func (s *fixture) onboard(deployment *template.Template) error {
	now := time.Now()
	profile, err := merchant.New(merchantName, rand.Reader, now)
	if err != nil {
		return err
	}
	profile.Operations = []string{merchant.OperationCharge, merchant.OperationPay, merchant.OperationSMS}
	profile.Countries, profile.Operators = []string{"CI"}, []string{"sandbox"}
	profile.OnBehalfOf = []string{merchantName}
	profile.NotifURL = "http://127.0.0.1/inbox"
	if s.token, err = merchant.IssueToken(profile, rand.Reader, now); err != nil {
		return err
	}
	document, err := merchant.Encode(profile)
	if err != nil {
		return err
	}
	s.dynamo.seedItem(deployment.Table("MerchantTable").Name, map[string]string{"pk": "merchant#" + profile.ID, "profile": string(document)})
	return nil
}

// programPath is the path of a built program.
func (s *fixture) programPath(name string) string { return filepath.Join(s.folder, name, "bootstrap") }

// newFunction makes a function of a program in the environment that template.yaml gives it; the bare function has that of the
// first. warm is whether it opens its connections in the init phase.
func (s *fixture) newFunction(name string, warm bool) (*runtimeapi.Function, error) {
	found := s.functions[0]
	for _, f := range s.functions {
		if f.Name == name {
			found = f
		}
	}
	if found.Name != name && name != baseline {
		return nil, fmt.Errorf("template.yaml has no function %s", name)
	}
	environment := maps.Clone(found.Environment)
	maps.Copy(environment, s.endpoints)
	environment["WARM_CONNECTIONS"] = fmt.Sprint(warm)
	return runtimeapi.NewFunction(runtimeapi.Spec{
		Name: name, Bootstrap: s.programPath(name), Env: environment, Timeout: found.Timeout, Memory: found.MemoryMB, MaxProcesses: 1,
	}), nil
}
