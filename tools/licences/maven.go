package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// licencePlugin is Maven's own reader of poms and of those above them.
const licencePlugin = "org.codehaus.mojo:license-maven-plugin:2.7.0:add-third-party"

// artifacts reads the artifacts of each pom.xml.
func artifacts(ctx context.Context, top string, lists []string) ([]dependency, error) {
	var found []dependency
	for _, list := range lists {
		more, err := artifactsOf(ctx, top, list)
		if err != nil {
			return nil, err
		}
		if len(more) == 0 {
			return nil, fmt.Errorf("%s names no artifact", list)
		}
		found = append(found, more...)
	}
	return found, nil
}

// artifactsOf reads the artifacts of one pom.xml.
func artifactsOf(ctx context.Context, top, list string) ([]dependency, error) {
	folder, err := os.MkdirTemp("", "licences-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if _, err := run(ctx, top, nil, "mvn", "-q", "-B", "-f", list, licencePlugin, "-Dlicense.acceptPomPackaging=true", "-Dlicense.outputDirectory="+folder); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(folder, "THIRD-PARTY.txt"))
	if err != nil {
		return nil, err
	}
	var found []dependency
	for line := range strings.Lines(string(text)) {
		licences, rest := brackets(strings.TrimSpace(line))
		if len(licences) == 0 {
			continue // the heading
		}
		place, _ := afterLast(strings.TrimSuffix(rest, ")"), "(")
		place, _, _ = strings.Cut(place, " - ")
		parts := strings.Split(place, ":")
		if len(parts) != 3 {
			return nil, fmt.Errorf("%s: %q is no artifact", licencePlugin, line)
		}
		// Of several licences of an artifact, its user takes one.
		found = append(found, dependency{Kind: "maven", Name: parts[0] + ":" + parts[1], Version: parts[2], List: list, Licence: joined(licences, "OR")})
	}
	return found, nil
}

// brackets takes the texts in brackets from the beginning of a line: "(A) (B (C)) rest" has "A", "B (C)" and "rest".
func brackets(line string) (texts []string, rest string) {
	for strings.HasPrefix(line, "(") {
		depth, end := 0, 0
		for i, r := range line {
			if r == '(' {
				depth++
			}
			if r == ')' {
				depth--
			}
			if depth == 0 {
				end = i
				break
			}
		}
		if end == 0 {
			break // never closed
		}
		texts = append(texts, line[1:end])
		line = strings.TrimSpace(line[end+1:])
	}
	return texts, line
}
