// Package page tests docs/reference.html, the page that render makes from docs/openapi.yaml with Redoc.
//
// make reference and go generate both render the page; go generate lets CI notice a page that differs.
package page

//go:generate ./render
