package pages

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"mobilegateway/local"
)

// runbooks are the incidents of docs/operations.md, in the order in which they are handled.
var runbooks = []string{
	"A merchant calls about an order", "A merchant responded 410 by mistake", "The outcome of a charge is unknown",
	"An operator's token leaked", "A token key leaked", "A callback key leaked", "A webhook key leaked",
	"A merchant's token leaked", "Accounting needs an export", "A merchant must be suspended",
	"What waits for a person?",
}

// walkRunbooks makes the incidents in a local run and handles each of them by the commands of its runbook, as they are
// printed. Each runbook has its own shell, with the commands that the page gives to practise.
func walkRunbooks(t *testing.T, folder string) {
	p := findPage(t, operationsPage)
	start := markedBlocks(sectionBlocks(p, "Before you start"))
	if len(start) != 1 {
		t.Fatalf("%d commands prepare the local run, want 1", len(start))
	}
	const newToken = ".local/new-token"
	before := "exec 2>&1 <" + newToken + "\n" + start[0].text
	w := &incidents{t: t, folder: folder, tool: start[0].text}
	w.make(newToken)
	for _, title := range runbooks {
		t.Run(title, func(t *testing.T) {
			blocks := sectionBlocks(p, title)
			if len(markedBlocks(blocks)) < 3 {
				t.Fatalf("%d commands run, want at least 3", len(markedBlocks(blocks)))
			}
			for _, b := range blocks {
				if !runMark.MatchString(b.comment) {
					t.Errorf("%s:%d does not run", p.name, b.line)
				}
			}
			runBlocks(t, p, blocks, folder, before)
		})
	}
	w.checkGone()
}

// incidents makes the incidents of the runbooks.
type incidents struct {
	t      *testing.T
	folder string
	tool   string // the commands that define gatewayctl
	run    local.Info
	posts  atomic.Int32 // to ShopA's server
}

// make makes the incidents. Afterwards the file newToken has the token that the operator accepts.
func (w *incidents) make(newToken string) {
	var demo struct {
		SandboxToken string `json:"sandbox_token"`
	}
	w.read("run.json", &w.run)
	w.read("data/demo.json", &demo)
	writeFile(w.t, filepath.Join(w.folder, newToken), demo.SandboxToken+"\n")

	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		if w.posts.Add(1) == 1 {
			response.WriteHeader(http.StatusGone)
		}
	}))
	w.t.Cleanup(server.Close)
	added := runBash(w.t, w.folder, w.tool+`
printf leaked | gatewayctl operator rotate-token orange --yes --reason "the operator ended it" >/dev/null
gatewayctl --json merchant add ShopA --country ci --operator sandbox --yes --reason test --notif-url `+server.URL+"/n")
	var shop struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(added), &shop); err != nil {
		w.t.Fatalf("%v: %s", err, added)
	}
	w.post("pay DemoShop_1001 2000 "+w.run.AccessToken, `"status":"pending"`)
	w.post("pay DemoShop_1003 1007 "+w.run.AccessToken, `"status":"pending"`) // successful, then contradicted
	w.post("pay ShopA_1002 2000 "+shop.AccessToken, `"status":"pending"`)
	w.post("charge c-1001 1005", "SVC0001") // its response is lost
}

// post sends a request with a command of the page. The response must contain a text.
func (w *incidents) post(command, want string) {
	w.t.Helper()
	if response := runBash(w.t, w.folder, w.tool+"\n"+command); !strings.Contains(response, want) {
		w.t.Fatalf("%s responds %s, want %s", command, response, want)
	}
}

func (w *incidents) read(name string, into any) {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.folder, ".local", filepath.FromSlash(name)))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// checkGone checks what the runbooks left: the server got the 410's notification again after the sample, and no file
// has the operator's token.
func (w *incidents) checkGone() {
	if posts := w.posts.Load(); posts != 3 {
		w.t.Errorf("ShopA's server got %d posts, want the first, the sample and the parked one", posts)
	}
	if _, err := os.Stat(filepath.Join(w.folder, "token.txt")); !os.IsNotExist(err) {
		w.t.Errorf("the file with the operator's token is still there: %v", err)
	}
}

// TestMarkedScript checks the scripts of blocks with an expected exit code, and of those that are repeated.
func TestMarkedScript(t *testing.T) {
	for comment, want := range map[string]bool{
		"run": false, "run exits 3": true, "run exits 3 shows: x": true, "run exits 0": false, "run exits 4": false,
	} {
		script := "set -eu\n" + markedScript(block{text: "(exit 3)\n", comment: comment})
		if err := exec.CommandContext(t.Context(), "bash", "-c", script).Run(); (err == nil) != want {
			t.Errorf("%s: %v, want success: %v", comment, err, want)
		}
	}
	repeated := block{text: "n=$(cat n); echo $((n + 1)) > n\n[ $n -lt 2 ] || echo \"a b: $n\"\n",
		comment: `run until it shows: a b`}
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "n"), "0")
	if output := runBash(t, folder, markedScript(repeated)); output != "a b: 2\n" {
		t.Errorf("the repeated block shows %q", output)
	}
}
