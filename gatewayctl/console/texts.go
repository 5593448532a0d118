package console

import (
	"embed"
	"encoding/json"
	"fmt"
)

// languages are those of the texts, in their order. The first one is the default.
var languages = []string{"en", "fr"}

//go:embed web
var web embed.FS

// texts are all texts of the pages, by their keys, in each language. The prefix of a key is its use: title of a page, h
// of a heading, c of a column or a fact, v of a value of the tool. means explains a status, none an empty table, n a
// number.
type texts map[string][2]string

// loadTexts reads the table of texts.
func loadTexts() (texts, error) {
	var all texts
	table, err := web.ReadFile("web/texts.json")
	if err == nil {
		err = json.Unmarshal(table, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("web/texts.json: %w", err)
	}
	return all, nil
}
