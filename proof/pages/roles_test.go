package pages

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobilegateway/world/template/roles"
)

var update = flag.Bool("update", false, "write the printed blocks of the pages")

// comparePrinted compares the text between the two markers of a name with what the code has. With -update it writes it.
func comparePrinted(t *testing.T, name, block, text string) {
	t.Helper()
	begin, end := "<!-- printed: "+block+" -->\n", "<!-- end of "+block+" -->\n"
	page := readFile(t, name)
	before, rest, begins := strings.Cut(page, begin)
	printed, after, ends := strings.Cut(rest, end)
	switch {
	case !begins || !ends:
		t.Fatalf("%s has no markers of the %s", name, block)
	case printed == text:
	case *update:
		path := filepath.Join(rootDir, filepath.FromSlash(name))
		if err := os.WriteFile(path, []byte(before+begin+text+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has\n%s\nthe code\n%s\nRun go test ./proof/pages -run %s -update", name, printed, text, t.Name())
	}
}

// roleColumns are the tables of the page's columns, and the last one.
var roleColumns = []string{"LedgerTable", "MerchantTable", "LimitTable", "Secrets"}

// secretNames are the page's names of the secrets.
var secretNames = map[string]string{
	"OperatorSecret": "operators", "TokenKeySecret": "private token keys", "TokenPublicKeySecret": "public token keys",
	"CallbackKeySecret": "callback keys", "WebhookKeySecret": "webhook keys",
}

// TestRolesArePrinted compares the architecture page's table of roles with template.yaml.
func TestRolesArePrinted(t *testing.T) {
	deployed, err := roles.Load(filepath.Join(rootDir, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := "| Function | " + strings.Join(roleColumns, " | ") + " |\n|---|---|---|---|---|\n"
	for _, function := range deployed.Functions {
		cells := make([][]string, len(roleColumns))
		for _, statement := range deployed.Role(function.Role).Statements {
			for _, resource := range statement.Resources {
				column, right := rightOf(t, statement, resource)
				if right != "" {
					cells[column] = append(cells[column], right)
				}
			}
		}
		row := "| `" + function.Name + "` |"
		for i, rights := range cells {
			separator := "; "
			if roleColumns[i] == "Secrets" {
				separator = ", "
			}
			row += " " + strings.Join(append(rights, ""), separator)
			row = strings.TrimSuffix(row, separator) + " |"
		}
		text += strings.ReplaceAll(row, "|  |", "| |") + "\n"
	}
	comparePrinted(t, architecturePage, "roles", strings.ReplaceAll(text, "|  |", "| |"))
}

// rightOf returns the column and the text of a right, such as "get, put `charge`". The text is empty for what each
// function has: its log group, its traces and its customer key.
func rightOf(t *testing.T, statement roles.Statement, resource string) (column int, text string) {
	t.Helper()
	table, part, _ := strings.Cut(resource, "/")
	if name, isSecret := secretNames[table]; isSecret {
		return len(roleColumns) - 1, name
	}
	column = slices.Index(roleColumns, table)
	switch {
	case part == "stream":
		return column, "stream"
	case part == "stream/*", strings.HasSuffix(table, "LogGroup"), table == "*", table == "KmsKeyArn":
		return 0, ""
	case column < 0:
		t.Errorf("the page has no column for %v on %s", statement.Actions, resource)
		return 0, ""
	}
	var verbs []string
	for _, action := range statement.Actions {
		words := capitalised.FindAllString(strings.TrimSuffix(strings.TrimPrefix(action, "dynamodb:"), "Item"), -1)
		verbs = append(verbs, strings.ToLower(strings.Join(words, " ")))
	}
	items := statement.Kinds
	if index, isIndex := strings.CutPrefix(part, "index/"); isIndex {
		items = []string{index}
	}
	return column, strings.Join(verbs, ", ") + " `" + strings.Join(items, "`, `") + "`"
}
