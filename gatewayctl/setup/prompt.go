package setup

import (
	"fmt"
	"slices"
	"strings"

	"mobilegateway/gatewayctl/accounts"
	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/gatewayctl/output"
)

// promptCredentials prompts for the fields of one account, and returns them as the file of operator set. After a
// wrong value it prompts again; a field that no operation needs may stay empty.
func promptCredentials(terminal deployment.Terminal, platform string) ([]byte, error) {
	platforms := accounts.ServedPlatforms()
	for !slices.Contains(platforms, platform) {
		text, err := terminal.Prompt(fmt.Sprintf("Platform of the first operator (%s): ", output.JoinComma(platforms)))
		if err != nil {
			return nil, inputError(err)
		}
		platform = strings.ToLower(strings.TrimSpace(text))
	}
	questions, err := accounts.Questions(platform)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for _, q := range questions {
		value, err := promptField(terminal, q)
		if err != nil {
			return nil, err
		}
		if value != "" {
			fields[q.Path] = value
		}
	}
	return accounts.FirstDocument(platform, fields)
}

// promptField prompts for one field until its value can be used.
func promptField(terminal deployment.Terminal, q accounts.Question) (string, error) {
	prompt, hint := terminal.Prompt, ""
	if q.Secret {
		prompt, hint = terminal.PromptSecret, " (not shown)"
	}
	if !q.Required {
		hint += " (may be empty)"
	}
	fault := ""
	for {
		value, err := prompt(fault + q.Path + hint + ": ")
		if err != nil {
			return "", inputError(err)
		}
		value = strings.TrimSpace(value)
		if value == "" && !q.Required {
			return "", nil
		}
		refused := q.Check(value)
		if refused == nil {
			return value, nil
		}
		fault = fmt.Sprintf("The value %v. ", refused)
	}
}

// inputError is the error of a terminal whose input ended.
func inputError(err error) error {
	return fmt.Errorf("the credentials were not read to their end, and nothing of them was stored: %w", err)
}
