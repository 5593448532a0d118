package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// made is the folder of the clients of a generator, empty at the start.
func made(root, generator string) (string, error) {
	dir := filepath.Join(root, ".local", "contract-clients", generator)
	return dir, errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
}

// python generates a client with openapi-python-client, without a warning, and runs it.
func python(ctx context.Context, root, told string) error {
	sources, tools := filepath.Join(root, "tools", "schemathesis", "python"), filepath.Join(root, ".local", "tools", "openapi-python-client", "bin")
	dir, err := made(root, "python")
	if err != nil {
		return err
	}
	if err := copyFiles(dir, sources, "client.py", "config.yaml"); err != nil {
		return err
	}
	if err := command(ctx, dir, told, filepath.Join(tools, "openapi-python-client"), "generate", "--path", filepath.Join(root, "docs", "openapi.yaml"),
		"--meta", "none", "--output-path", "gateway_client", "--config", "config.yaml", "--fail-on-warning"); err != nil {
		return err
	}
	return command(ctx, dir, told, filepath.Join(tools, "python"), "client.py")
}

// settings are what openapi-generator is told for one language.
type settings struct {
	Document   string            `json:"inputSpec"`
	Language   string            `json:"generatorName"`
	Output     string            `json:"outputDir"`
	Options    map[string]any    `json:"additionalProperties"`
	LeavingOut map[string]string `json:"globalProperties"`
}

// generator generates clients in three languages with openapi-generator, which refuses a document that has faults,
// compiles them, and runs them. As docs/merchants.md advises, they take fields that they do not know.
func generator(ctx context.Context, root, told string) error {
	tools := filepath.Join(root, ".local", "tools", "openapi-generator")
	dir, err := made(root, "openapi-generator")
	if err != nil {
		return err
	}
	arguments := []string{"-XX:TieredStopAtLevel=1", "-jar", filepath.Join(tools, "openapi-generator-cli.jar"), "batch", "--fail-fast"}
	for language, output := range map[string]string{"java": "java", "go": filepath.Join("go", "gateway"), "python": "python"} {
		text, err := json.Marshal(settings{
			Document: filepath.Join(root, "docs", "openapi.yaml"), Language: language, Output: filepath.Join(dir, output),
			Options:    map[string]any{"disallowAdditionalPropertiesIfNotPresent": false, "hideGenerationTimestamp": true},
			LeavingOut: map[string]string{"apiTests": "false", "modelTests": "false", "apiDocs": "false", "modelDocs": "false"},
		})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, language+".json"), text, 0o644); err != nil {
			return err
		}
		arguments = append(arguments, language+".json")
	}
	if err := command(ctx, dir, told, "java", arguments...); err != nil {
		return err
	}
	sources := filepath.Join(root, "tools", "schemathesis", "openapi-generator")
	if err := java(ctx, filepath.Join(dir, "java"), filepath.Join(sources, "java"), filepath.Join(tools, "lib", "*"), told); err != nil {
		return err
	}
	if err := golang(ctx, filepath.Join(dir, "go"), filepath.Join(sources, "go"), told); err != nil {
		return err
	}
	if err := copyFiles(filepath.Join(dir, "python"), filepath.Join(sources, "python"), "client.py"); err != nil {
		return err
	}
	return command(ctx, filepath.Join(dir, "python"), told, filepath.Join(root, ".local", "tools", "openapi-python-client", "bin", "python"), "client.py")
}

// java compiles every class of the Java client, and runs it.
func java(ctx context.Context, dir, sources, libraries, told string) error {
	if err := copyFiles(dir, sources, "Client.java"); err != nil {
		return err
	}
	files := []string{"Client.java"}
	err := filepath.WalkDir(filepath.Join(dir, "src", "main"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".java") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := command(ctx, dir, told, "javac", append([]string{"-J-XX:TieredStopAtLevel=1", "-nowarn", "-proc:none", "-d", "classes", "-cp", libraries}, files...)...); err != nil {
		return err
	}
	return command(ctx, dir, told, "java", "-XX:TieredStopAtLevel=1", "-cp", "classes"+string(os.PathListSeparator)+libraries, "Client")
}

// golang compiles the Go client as a module of its own, with the modules that its go.sum pins, and runs it.
func golang(ctx context.Context, dir, sources, told string) error {
	if err := copyFiles(dir, sources, "go.mod", "go.sum", "main.go"); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} { // the generated module is a package of the client's
		if err := os.Remove(filepath.Join(dir, "gateway", name)); err != nil {
			return err
		}
	}
	if err := command(ctx, dir, told, "go", "build", "-o", "client", "."); err != nil {
		return err
	}
	return command(ctx, dir, told, filepath.Join(dir, "client"))
}
