package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/internal/dynoxide"
	"mobilegateway/internal/local"
	"mobilegateway/internal/localtest"
	"mobilegateway/internal/template"
	"mobilegateway/shared/awsclient"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
)

// The crowd: so many payments of one merchant, on so many days, some on the first.
const (
	crowd      = 100_000
	crowdFirst = 2_000
	crowdDays  = 3
)

// What an export may take.
const (
	memorySlack = 8 << 20  // by how much the peak of crowd may be over that of crowdFirst
	memoryMost  = 96 << 20 // of any
	interruptAt = 1 << 20  // bytes in the file when the engineer loses patience: a few thousand payments
)

// TestExport exports a hundred thousand payments with the very gatewayctl that people use, interrupts it, continues by the
// cursor that it told, and looks at its memory all the while. The payments are imported into the local run's engine as the
// ledger's own code encodes them: put into a table with a stream it takes 600 a second, and ever fewer the more there are.
func TestExport(t *testing.T) {
	needsLocal(t)
	switch {
	case testing.Short():
		t.Skip("a hundred thousand payments take half a minute")
	case runtime.GOOS != "linux":
		t.Skip("the memory of a process is read from /proc")
	case os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") != "":
		t.Skip("the payments are imported into the embedded engine: another would take minutes for them")
	}
	t.Parallel()
	a := newAuditor(t)
	_, few, whole := a.exports("few.csv", a.days(1), false)
	a.told(whole, "few.csv", true, 0, crowdFirst)

	notes, peak, first := a.exports("first.csv", a.days(crowdDays), true)
	_, cursor, found := strings.Cut(notes, "--cursor ")
	if first == nil || !found {
		t.Fatalf("the interrupted export ended with %v: %s", first, notes)
	}
	read := a.rows("first.csv", true, 0)
	if read == 0 || read >= crowd/2 || !strings.Contains(notes, strconv.Itoa(read)+" transactions written") {
		t.Errorf("the interrupted export has %d payments: %s", read, notes)
	}
	_, most, second := a.exports("second.csv", a.days(crowdDays)+" --cursor "+strings.Fields(cursor)[0], false)
	a.told(second, "second.csv", false, read, crowd)
	t.Logf("peak memory: %d KiB of %d payments; %d KiB until the interrupt after %d, %d KiB of the rest", few>>10, crowdFirst, peak>>10, read, most>>10)
	if most > few+memorySlack || peak > few+memorySlack || most > memoryMost {
		t.Errorf("memory grows with the number of payments: from %d to %d bytes", few, most)
	}
}

// auditor is who reconciles: a shell with gatewayctl, in front of a run with the crowd.
type auditor struct {
	t       *testing.T
	folder  string
	program string
	places  []string // the environment
	day     time.Time
}

// newAuditor fills a table, starts a run over it, and onboards the payments' merchant.
func newAuditor(t *testing.T) *auditor {
	t.Helper()
	a := &auditor{t: t, folder: t.TempDir(), day: time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1-crowdDays)}
	a.program = filepath.Join(a.folder, "gatewayctl")
	if output, err := exec.Command("go", "build", "-o", a.program, "../cmd/gatewayctl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	profile, err := merchant.New("Crowd", rand.Reader, a.day)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(a.folder, "local")
	table := a.fill(profile, filepath.Join(dir, "data"))
	run := localtest.Start(t, localtest.Options{Dir: dir})
	environment := run.Environment()
	if environment["LEDGER_TABLE"] != table {
		t.Fatalf("the run's ledger is %s, and %s was filled", environment["LEDGER_TABLE"], table)
	}
	environment["AWS_ENDPOINT_URL_DYNAMODB"] = run.Engine()
	client, err := awsclient.New(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	if err := merchantdynamo.NewRegistry(client.DynamoDB(), environment["MERCHANT_TABLE"]).Create(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	a.places = os.Environ()
	for name, value := range environment {
		a.places = append(a.places, name+"="+value)
	}
	return a
}

// fill writes the crowd and makes a data file of it, where the run will look for its own. It gives the table's name.
func (a *auditor) fill(profile *merchant.Profile, folder string) string {
	a.t.Helper()
	declared, err := template.Load(filepath.Join("..", "template.yaml"), template.Options{StackName: "local", Region: "us-east-1", Parameters: local.Parameters()})
	if err != nil {
		a.t.Fatal(err)
	}
	table := declared.Table("LedgerTable").Name
	described, err := describe(declared.Table("LedgerTable"))
	source, schema := filepath.Join(a.folder, "export"), filepath.Join(a.folder, "schema.json")
	err = errors.Join(err, os.WriteFile(schema, described, 0o600), os.MkdirAll(folder, 0o700), os.MkdirAll(filepath.Join(source, table, "data"), 0o700))
	if err != nil {
		a.t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(source, table, "data", "crowd.json"))
	if err != nil {
		a.t.Fatal(err)
	}
	items := bufio.NewWriter(file)
	for number := range crowd {
		if err := writeItem(items, a.payment(profile, number)); err != nil {
			a.t.Fatal(err)
		}
	}
	if err := errors.Join(items.Flush(), file.Close(), dynoxide.Import(a.t.Context(), source, schema, filepath.Join(folder, "ledger.db"))); err != nil {
		a.t.Fatal(err)
	}
	return table
}

// describe is what DescribeTable says of a table of the template.
func describe(table *template.Table) ([]byte, error) {
	indexes := []map[string]any{}
	for _, index := range table.Indexes {
		indexes = append(indexes, map[string]any{
			"IndexName": index.IndexName, "KeySchema": index.Key, "Projection": map[string]any{"ProjectionType": index.Projection},
		})
	}
	return json.Marshal(map[string]any{"Table": map[string]any{
		"TableName": table.Name, "TableStatus": "ACTIVE", "KeySchema": table.Key, "AttributeDefinitions": table.Attributes,
		"GlobalSecondaryIndexes": indexes,
		"StreamSpecification":    map[string]any{"StreamEnabled": true, "StreamViewType": table.StreamView},
	}})
}

// payment is one of the crowd, which begins so late on its first day that crowdFirst are of that day, a second each.
func (a *auditor) payment(profile *merchant.Profile, number int) *ledger.Entry {
	return toldOf(onboarded{shop: shop{Merchant: profile.Name}, id: profile.ID, notifyURL: "https://shop.example/n"}, number, a.day.Add((24*60*60-crowdFirst)*time.Second))
}

// writeItem writes an entry as the ledger stores it, in the form of DynamoDB's export.
func writeItem(to io.Writer, e *ledger.Entry) error {
	item, err := ledgerdynamo.Encode(e)
	if err != nil {
		return err
	}
	typed := make(map[string]map[string]any, len(item))
	for name, value := range item {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			typed[name] = map[string]any{"S": v.Value}
		case *types.AttributeValueMemberN:
			typed[name] = map[string]any{"N": v.Value}
		case *types.AttributeValueMemberB:
			typed[name] = map[string]any{"B": v.Value}
		case *types.AttributeValueMemberBOOL:
			typed[name] = map[string]any{"BOOL": v.Value}
		default:
			return fmt.Errorf("attribute %s is of the type %T", name, value)
		}
	}
	return json.NewEncoder(to).Encode(map[string]any{"Item": typed})
}

// days are the flags for the crowd's first days.
func (a *auditor) days(count int) string {
	return "--from " + a.day.Format(time.DateOnly) + " --to " + a.day.AddDate(0, 0, count-1).Format(time.DateOnly)
}

// exports runs an export with its output in a file, and interrupts it, as Ctrl-C does, once the file has interruptAt bytes.
// It gives what it told beside, its peak memory in bytes, and how it ended.
func (a *auditor) exports(name, flags string, interrupt bool) (notes string, peak int64, ended error) {
	a.t.Helper()
	file, err := os.Create(filepath.Join(a.folder, name))
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // the child wrote it
	ctx, cancel := context.WithTimeout(a.t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, a.program, strings.Fields("export --merchant Crowd "+flags)...)
	var told bytes.Buffer
	command.Env, command.Stdout, command.Stderr = a.places, file, &told
	if err := command.Start(); err != nil {
		a.t.Fatal(err)
	}
	ending := make(chan error, 1)
	go func() { ending <- command.Wait() }()
	for look := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case ended = <-ending:
			look.Stop()
			return told.String(), peak, ended
		case <-look.C:
			peak = max(peak, peakOf(command.Process.Pid))
			if at, err := file.Stat(); interrupt && err == nil && at.Size() > interruptAt {
				interrupt = false
				_ = command.Process.Signal(os.Interrupt) // it may have ended: the caller sees that
			}
		}
	}
}

// peakOf is the most memory that a process had so far, in bytes; 0 where it has ended. What wait4 tells counts this
// process too, whose memory a child shares until it is another program.
func peakOf(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	peak, _ := strconv.ParseInt(number, 10, 64)
	return peak << 10
}

// told fails unless an export ended well and its file has the payments from a number up to another.
func (a *auditor) told(ended error, name string, heading bool, from, to int) {
	a.t.Helper()
	if ended != nil {
		a.t.Fatalf("%s: %v", name, ended)
	}
	if got := from + a.rows(name, heading, from); got != to {
		a.t.Errorf("%s ends before payment %d, want %d", name, got, to)
	}
}

// rows counts the payments in a file: whole rows, each payment once, in order, from a number on; behind the heading, if
// it is to have one.
func (a *auditor) rows(name string, heading bool, from int) int {
	a.t.Helper()
	file, err := os.Open(filepath.Join(a.folder, name))
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // it was only read
	reader := csv.NewReader(file)
	if heading {
		if row, err := reader.Read(); err != nil || row[1] != "id" {
			a.t.Fatalf("%s begins with %v, %v", name, row, err)
		}
	}
	for count := 0; ; count++ {
		row, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return count
		}
		if want := fmt.Sprintf("Crowd_%d", from+count); err != nil || row[1] != want {
			a.t.Fatalf("%s: row %d is %v (%v), want %s", name, count, row, err, want)
		}
	}
}
