package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is what the go command says of one.
type module struct {
	Path, Version, Dir string
	Main               bool
	Error              string
}

// licenceFile knows files that hold a licence by their names.
var licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|copying)([.-].*)?$`)

// sure is how much of a text has to be a known licence's, so that it is taken for one.
const sure = 0.9

// modules reads the modules of each go.mod. Licences are told by their texts: a module names none.
func modules(ctx context.Context, top string, lists []string) ([]dependency, error) {
	shipped, err := linked(ctx, top)
	if err != nil {
		return nil, err
	}
	var found []dependency
	texts := map[string][]string{} // by a module's folder
	for _, list := range lists {
		out, err := run(ctx, filepath.Join(top, filepath.Dir(list)), nil, "go", "mod", "download", "-json")
		if err != nil {
			return nil, err
		}
		rows, err := decode[module](out)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			d := dependency{Kind: "go", Name: row.Path, Version: row.Version, List: list}
			if files, ships := shipped[row.Dir]; ships && list == "go.mod" {
				d.Ships = true
				texts[row.Dir] = append(texts[row.Dir], files...)
			}
			d.Licence = row.Dir // until the texts are known
			texts[row.Dir] = append(texts[row.Dir], licenceFiles(row.Dir)...)
			found = append(found, d)
		}
	}
	for folder, files := range shipped {
		if strings.HasPrefix(folder, "std ") {
			texts[folder] = files
			found = append(found, dependency{Kind: "go", Name: "standard library", Version: strings.TrimPrefix(folder, "std "), List: "go.mod", Licence: folder, Ships: true})
		}
	}
	return told(ctx, top, found, texts)
}

// linked gives the folders of the modules that are linked into the deployed programs, and the licence files that stand
// anywhere between a linked package and its module's folder. The standard library's folder is "std " and its version.
func linked(ctx context.Context, top string) (map[string][]string, error) {
	out, err := run(ctx, top, []string{"CGO_ENABLED=0", "GOOS=linux"}, "go", "list", "-deps", "-tags=lambda.norpc", "-json=Dir,Root,Standard,Module", "./functions/...")
	if err != nil {
		return nil, err
	}
	packages, err := decode[struct {
		Dir, Root string
		Standard  bool
		Module    *module
	}](out)
	if err != nil {
		return nil, err
	}
	version, err := run(ctx, top, nil, "go", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, p := range packages {
		switch {
		case p.Standard:
			name := "std " + strings.TrimSpace(string(version))
			found[name] = append(found[name], between(p.Root, p.Dir)...)
		case !p.Module.Main:
			found[p.Module.Dir] = append(found[p.Module.Dir], between(p.Module.Dir, p.Dir)...)
		}
	}
	if len(found) < 2 {
		return nil, errors.New("the functions link no module at all: this is not the list of what ships")
	}
	return found, nil
}

// between is the licence files of a folder and of those above it, up to root.
func between(root, folder string) []string {
	files := licenceFiles(folder)
	for folder != root && len(folder) > len(root) {
		folder = filepath.Dir(folder)
		files = append(files, licenceFiles(folder)...)
	}
	return files
}

// licenceFiles is the files of one folder that hold a licence.
func licenceFiles(folder string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil // then it has none, and is refused
	}
	var files []string
	for _, entry := range entries {
		if entry.Type().IsRegular() && licenceFile.MatchString(entry.Name()) && filepath.Ext(entry.Name()) != ".go" {
			files = append(files, filepath.Join(folder, entry.Name()))
		}
	}
	return files
}

// told puts what the texts are in the place of the folders that they stand in. A module has to keep all of them.
func told(ctx context.Context, top string, found []dependency, texts map[string][]string) ([]dependency, error) {
	var all []string
	for _, files := range texts {
		all = append(all, files...)
	}
	slices.Sort(all)
	names, err := identified(ctx, top, slices.Compact(all))
	if err != nil {
		return nil, err
	}
	for i, d := range found {
		var licences []string
		files := texts[d.Licence]
		found[i].Licence = ""
		for _, file := range files {
			if len(names[file]) == 0 {
				if licences, err = unknown(file); err != nil {
					return nil, err
				}
				break
			}
			licences = append(licences, names[file]...)
		}
		slices.Sort(licences)
		found[i].Licence = joined(slices.Compact(licences), "AND")
	}
	return found, nil
}

// unknown names a text that is no known licence, and changes with it.
func unknown(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("unknown text %s %x", filepath.Base(file), sha256.Sum256(text))[:len("unknown text  ")+len(filepath.Base(file))+12]}, nil
}

// identified tells the licences of texts, by their files' names.
func identified(ctx context.Context, top string, files []string) (map[string][]string, error) {
	answer, err := os.CreateTemp("", "licences-*.json")
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = answer.Close()
		_ = os.Remove(answer.Name())
	}()
	args := append([]string{"tool", "-modfile=tools/classify/go.mod", "identify_license", "-json=" + answer.Name()}, files...)
	if _, err := run(ctx, top, nil, "go", args...); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(answer)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Filepath        string
		Classifications []struct {
			Name       string
			Confidence json.Number
		}
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("identify_license: %w", err)
	}
	names := map[string][]string{}
	for _, row := range rows {
		for _, match := range row.Classifications {
			confidence, err := match.Confidence.Float64()
			if err == nil && confidence >= sure && match.Name != "Copyright" {
				names[row.Filepath] = append(names[row.Filepath], match.Name)
			}
		}
	}
	return names, nil
}

// decode reads JSON values that follow each other.
func decode[T any](text []byte) ([]T, error) {
	var rows []T
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var row T
		err := decoder.Decode(&row)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
}
