package gatewayctltest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
	"mobilegateway/shared/resource"
)

// NewAccount returns an account of a platform with each field that an operation needs, by their paths.
func NewAccount(t *testing.T, platform, baseURL, token string) map[string]string {
	t.Helper()
	row, _ := operator.FindCapabilities(platform)
	fields, _ := drivers.NewDirectory(nil, nil, nil).AccountFields(platform)
	samples := []string{ // each field takes one of them
		"v", "tel:+2250000", "https://op.example", "ci", "sandbox", "11111111-1111-4111-8111-111111111111",
		"1234", "123456789", "201",
	}
	account := map[string]string{}
	for _, field := range fields {
		i := slices.IndexFunc(samples, func(value string) bool { return field.Check(value) == nil })
		if i < 0 {
			t.Fatalf("no sample value for %s of %s", field.Path, platform)
		}
		group, each := strings.CutSuffix(field.Path, ".*")
		if !each {
			account[field.Path] = samples[i]
			continue
		}
		for _, code := range row.Countries() {
			account[group+"."+code] = samples[i]
		}
	}
	if account["path_word"] != "" {
		account["header_prefix"], account["path_word"] = "X-Operator", strings.TrimPrefix(resource.EndUserID, "acr:")
	}
	account["base_url"] = baseURL
	if account["access_token"] != "" {
		account["access_token"] = token
	}
	return account
}

// CredentialsOf returns a file with one account, which is the current one.
func CredentialsOf(t *testing.T, operatorName, id string, account map[string]string) string {
	t.Helper()
	return CredentialsDocument(t, operatorName, id, map[string]any{id: AccountDocument(account)})
}

// CredentialsDocument returns the accounts of one platform as they are stored.
func CredentialsDocument(t *testing.T, platform, current string, accounts map[string]any) string {
	t.Helper()
	document := struct {
		Current  string         `json:"current"`
		Accounts map[string]any `json:"accounts"`
	}{current, accounts}
	text, err := json.Marshal(map[string]any{platform: document})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// AccountDocument returns an account with its fields at their paths.
func AccountDocument(account map[string]string) map[string]any {
	document := map[string]any{}
	for path, value := range account {
		object, levels := document, strings.Split(path, ".")
		for _, level := range levels[:len(levels)-1] {
			if object[level] == nil {
				object[level] = map[string]any{}
			}
			object = object[level].(map[string]any)
		}
		object[levels[len(levels)-1]] = value
	}
	return document
}

// UseSandboxOperator sets an account of the sandbox whose address refuses connections.
func (d *Tool) UseSandboxOperator() { d.UseAccount("sandbox", "a1", "http://127.0.0.1:1", "t") }

// UseAccount sets an account of a platform, which is the current one.
func (d *Tool) UseAccount(platform, id, baseURL, token string) {
	d.Input = CredentialsOf(d.T, platform, id, NewAccount(d.T, platform, baseURL, token))
	d.Apply("operator set -")
}

// NewTokenServer is an operator's server that accepts the token "good" and has no orders. It records the methods.
func NewTokenServer(t *testing.T) (address string, methods map[string]int) {
	methods = map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods[r.Method]++
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"requestError":{"serviceException":{"messageId":"SVC0002",` +
			`"text":"Invalid input value for message part %1","variables":["order_id"]}}}`))
	}))
	t.Cleanup(server.Close)
	return server.URL, methods
}
