package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// codeHash is the property that lets SAM publish a version. SAM reads only a literal: a parameter's value is not in
// the template that it compares.
const codeHash = "AutoPublishCodeSha256"

// versionedSections are the parts of a template that can change a function besides its own resource.
var versionedSections = [...]string{"Globals", "Mappings", "Conditions"}

// publishVersions writes the hash of the release into each function of the built template. If any function changed,
// each gets a new version, so that the version before is the same release for all: a rollback moves each alias by one
// version. The hash covers the programs, the functions' definitions and the given parameters. SAM's own hash lacks the
// parameters and most properties: an alias would keep the old settings.
func publishVersions(built string, functions []string, given parameters) error {
	path := filepath.Join(built, "template.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	release := sha256.New()
	for _, name := range functions {
		hash, err := hashFunction(&document, filepath.Join(built, name, "bootstrap"), name, given)
		if err != nil {
			return err
		}
		fmt.Fprintf(release, "%s=%s\n", name, hash)
	}
	for _, name := range functions {
		properties := mappingValue(&document, "Resources", name, "Properties")
		if properties == nil {
			return fmt.Errorf("%s has no function %s: run make deploy again", path, name)
		}
		hash := sha256.Sum256(release.Sum([]byte(name)))
		properties.Content = append(properties.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: codeHash},
			&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: hex.EncodeToString(hash[:])})
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}

func hashFunction(document *yaml.Node, program, name string, given parameters) (string, error) {
	text, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	code := sha256.Sum256(text)
	sum := sha256.New()
	sum.Write(code[:])
	for _, section := range versionedSections {
		if err := yaml.NewEncoder(sum).Encode(mappingValue(document, section)); err != nil {
			return "", err
		}
	}
	if err := yaml.NewEncoder(sum).Encode(mappingValue(document, "Resources", name)); err != nil {
		return "", err
	}
	for _, parameter := range slices.Sorted(maps.Keys(given)) {
		fmt.Fprintf(sum, "%s=%q\n", parameter, given[parameter])
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// mappingValue returns the value under nested keys of a document, nil if there is none.
func mappingValue(at *yaml.Node, keys ...string) *yaml.Node {
	if at.Kind == yaml.DocumentNode && len(at.Content) == 1 {
		at = at.Content[0]
	}
	for _, key := range keys {
		i := slices.IndexFunc(at.Content, func(n *yaml.Node) bool { return n.Value == key })
		if at.Kind != yaml.MappingNode || i < 0 || i%2 != 0 {
			return nil
		}
		at = at.Content[i+1]
	}
	return at
}
