// Command sbom writes the CycloneDX bill of materials of a built bundle: sbom <folder of the bundle> <file>. make sbom,
// make build and make deploy write it for each build.
package main

import (
	"fmt"
	"os"

	"mobilegateway/deploy/bundle"
)

func main() {
	if len(os.Args) != 3 {
		_, _ = fmt.Fprintln(os.Stderr, "usage: sbom <folder of the bundle> <file>")
		os.Exit(2)
	}
	if err := bundle.WriteSBOM(os.Args[1], os.Args[2]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, "sbom: the parts of", os.Args[1], "are in", os.Args[2])
}
