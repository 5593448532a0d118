package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
)

// samconfig is the content of samconfig.toml for one deployment.
type samconfig struct {
	root, section string
	file          map[string]any
	// parameters are the section's parameter overrides.
	parameters parameters
}

func readConfig(root string, o deployOptions) (samconfig, error) {
	c := samconfig{root: root, section: o.configSection(), parameters: parameters{}}
	if _, err := toml.DecodeFile(filepath.Join(root, "samconfig.toml"), &c.file); err != nil {
		return c, err
	}
	text, isString := nestedValue(c.file, c.section, "deploy", "parameters", "parameter_overrides").(string)
	if !isString {
		return c, fmt.Errorf("%s.deploy.parameters.parameter_overrides is missing or not a text of Name=value",
			c.section)
	}
	for item := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(item, "=")
		c.parameters[name] = value
	}
	return c, nil
}

func (c samconfig) stackName(section string) string {
	name, _ := nestedValue(c.file, section, "global", "parameters", "stack_name").(string)
	return name
}

// checkStackName refuses the stack of another environment, because it would get the parameters of this one.
func (c samconfig) checkStackName(stack string) error {
	for section := range c.file {
		if stack != "" && section != c.section && c.stackName(section) == stack {
			return fmt.Errorf("%s is the stack of %s: use ENV=%s", stack, section, section)
		}
	}
	return nil
}

// outputsArguments returns the arguments of `sam list` for the deployment's stack: configuration, region and profile.
func (c samconfig) outputsArguments() []string {
	found := []string{"--config-file", filepath.Join(c.root, "samconfig.toml"), "--config-env", c.section}
	for _, name := range [...]string{"region", "profile"} {
		if value, _ := nestedValue(c.file, c.section, "deploy", "parameters", name).(string); value != "" {
			found = append(found, "--"+name, value)
		}
	}
	return found
}

// nestedValue returns the value under nested keys, nil if there is none.
func nestedValue(at any, keys ...string) any {
	for _, key := range keys {
		table, _ := at.(map[string]any)
		at = table[key]
	}
	return at
}
