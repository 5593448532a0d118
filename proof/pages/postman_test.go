package pages

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// postmanItem is a folder or a request of a Postman collection.
type postmanItem struct {
	Item    []postmanItem `json:"item"`
	Request *struct {
		Method string `json:"method"`
		URL    struct {
			Path []string `json:"path"`
		} `json:"url"`
	} `json:"request"`
}

// requests returns the method and path of each request, with the path parameters as {}.
func (i postmanItem) requests() []string {
	var found []string
	if i.Request != nil {
		path := regexp.MustCompile(`:\w+`).ReplaceAllString("/"+strings.Join(i.Request.URL.Path, "/"), "{}")
		found = append(found, strings.ToLower(i.Request.Method)+" "+path)
	}
	for _, child := range i.Item {
		found = append(found, child.requests()...)
	}
	return found
}

// TestPostmanCollection compares the requests of the Postman collection with the contract's operations for merchants.
func TestPostmanCollection(t *testing.T) {
	text := readFile(t, "docs/postman/gateway.postman_collection.json")
	var collection postmanItem
	if err := json.Unmarshal([]byte(text), &collection); err != nil {
		t.Fatal(err)
	}
	got, want := collection.requests(), []string{}
	for _, sample := range curlSamples(t) {
		if !strings.HasPrefix(sample.path, "/callbacks/") {
			want = append(want, sample.method+" "+regexp.MustCompile(`\{\w+\}`).ReplaceAllString(sample.path, "{}"))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the collection has\n%s\nthe contract\n%s\nrun make postman", strings.Join(got, "\n"),
			strings.Join(want, "\n"))
	}
}
