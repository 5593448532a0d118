package main

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
)

// samconfig is the content of samconfig.toml for one deployment.
type samconfig struct {
	root, section string
	file          map[string]any
	// parameters are the section's parameter overrides, replaced by those of the environment's file.
	parameters parameters
	kept       environmentFile
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
	var err error
	if c.kept, err = readEnvironment(root, o.environment); err != nil {
		return c, err
	}
	maps.Copy(c.parameters, c.kept.Parameters)
	return c, nil
}

// region is the region of the environment: that of its file, else that of samconfig.toml; "" for neither.
func (c samconfig) region() string {
	value, _ := nestedValue(c.file, c.section, "deploy", "parameters", "region").(string)
	return cmp.Or(c.kept.Region, value)
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
	found = append(found, c.regionArguments()...)
	if value, _ := nestedValue(c.file, c.section, "deploy", "parameters", "profile").(string); value != "" {
		found = append(found, "--profile", value)
	}
	return found
}

// regionArguments returns the region for SAM, if one is named.
func (c samconfig) regionArguments() []string {
	if region := c.region(); region != "" {
		return []string{"--region", region}
	}
	return nil
}

// nestedValue returns the value under nested keys, nil if there is none.
func nestedValue(at any, keys ...string) any {
	for _, key := range keys {
		table, _ := at.(map[string]any)
		at = table[key]
	}
	return at
}
