// Package repository finds the checkout that a tool or a test runs in. It reads no file of it.
package repository

import (
	"errors"
	"os"
	"path/filepath"
)

// Root returns the nearest folder with a go.mod at or above the working directory.
func Root() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if info, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil && info.Mode().IsRegular() {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("no go.mod at or above the working directory: start this inside the checkout")
		}
		folder = parent
	}
}
