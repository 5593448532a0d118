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

	"mobilegateway/local"
	"mobilegateway/proof/kits/localtest"
	"mobilegateway/shared/ledger"
	ledgerdynamo "mobilegateway/shared/ledger/dynamo"
	"mobilegateway/shared/merchant"
	merchantdynamo "mobilegateway/shared/merchant/dynamo"
	"mobilegateway/world/dynamodb"
	"mobilegateway/world/dynoxide"
	"mobilegateway/world/template"
)

// The exported payments: all of one merchant, on several days, a few of them on the first day.
const (
	paymentCount     = 100_000
	firstDayPayments = 2_000
	exportDays       = 3
)

// Limits of an export.
const (
	memorySlack = 8 << 20  // how much more memory all payments may take than firstDayPayments, in bytes
	memoryLimit = 96 << 20 // bytes of any export
	interruptAt = 1 << 20  // bytes in the file when the test interrupts the export: a few thousand payments
)

// TestExport exports 100,000 payments with the gatewayctl program, interrupts the export, and continues at the printed
// cursor. It checks the memory of each export. The payments are imported into the local run's engine, because single
// writes would take minutes.
func TestExport(t *testing.T) {
	requireLocalRun(t)
	switch {
	case testing.Short():
		t.Skip("100,000 payments take half a minute")
	case runtime.GOOS != "linux":
		t.Skip("the memory of a process is read from /proc")
	case os.Getenv("AWS_ENDPOINT_URL_DYNAMODB") != "":
		t.Skip("only the embedded engine can import the payments; another would take minutes")
	}
	t.Parallel()
	a := newExportSession(t)
	_, few, whole := a.runExport("few.csv", a.dayFlags(1), false)
	a.checkExport(whole, "few.csv", true, 0, firstDayPayments)

	stderr, peak, first := a.runExport("first.csv", a.dayFlags(exportDays), true)
	_, cursor, found := strings.Cut(stderr, "--cursor ")
	if first == nil || !found {
		t.Fatalf("the interrupted export ended with %v: %s", first, stderr)
	}
	read := a.countRows("first.csv", true, 0)
	if read == 0 || read >= paymentCount/2 || !strings.Contains(stderr, strconv.Itoa(read)+" transactions written") {
		t.Errorf("the interrupted export has %d payments: %s", read, stderr)
	}
	_, most, second := a.runExport("second.csv", a.dayFlags(exportDays)+" --cursor "+strings.Fields(cursor)[0], false)
	a.checkExport(second, "second.csv", false, read, paymentCount)
	t.Logf("peak memory: %d KiB of %d payments; %d KiB until the interrupt after %d, %d KiB of the rest", few>>10,
		firstDayPayments, peak>>10, read, most>>10)
	if most > few+memorySlack || peak > few+memorySlack || most > memoryLimit {
		t.Errorf("memory grows with the number of payments: from %d to %d bytes", few, most)
	}
}

// exportSession is a shell with gatewayctl for a run with the payments.
type exportSession struct {
	t           *testing.T
	folder      string
	program     string
	environment []string
	day         time.Time
}

// newExportSession fills a table, starts a run with it, and onboards the payments' merchant.
func newExportSession(t *testing.T) *exportSession {
	t.Helper()
	a := &exportSession{
		t: t, folder: t.TempDir(), program: buildCommand(t, "gatewayctl"),
		day: time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1-exportDays),
	}
	profile, err := merchant.New("Crowd", rand.Reader, a.day)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(a.folder, "local")
	table := a.seedPayments(profile, filepath.Join(dir, "data"))
	run := localtest.Start(t, localtest.Options{Dir: dir})
	environment := run.Environment()
	if environment["LEDGER_TABLE"] != table {
		t.Fatalf("the run's ledger table is %s, but the payments are in %s", environment["LEDGER_TABLE"], table)
	}
	environment["AWS_ENDPOINT_URL_DYNAMODB"] = run.DynamoDBURL()
	registry := merchantdynamo.NewRegistry(newAWSClient(t, environment).DynamoDB(), environment["MERCHANT_TABLE"])
	if err := registry.Create(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	a.environment = os.Environ()
	for name, value := range environment {
		a.environment = append(a.environment, name+"="+value)
	}
	return a
}

// seedPayments writes the payments into a data file at the path of the run's database. It returns the table's name.
func (a *exportSession) seedPayments(profile *merchant.Profile, folder string) string {
	a.t.Helper()
	declared, err := template.Load(filepath.Join("..", "template.yaml"), template.Options{
		Parameters: local.Parameters(),
	})
	if err != nil {
		a.t.Fatal(err)
	}
	table := declared.Table("LedgerTable").Name
	described, err := tableDescription(declared.Table("LedgerTable"))
	source, schema := filepath.Join(a.folder, "export"), filepath.Join(a.folder, "schema.json")
	err = errors.Join(err, os.WriteFile(schema, described, 0o600), os.MkdirAll(folder, 0o700),
		os.MkdirAll(filepath.Join(source, table, "data"), 0o700))
	if err != nil {
		a.t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(source, table, "data", "crowd.json"))
	if err != nil {
		a.t.Fatal(err)
	}
	items := bufio.NewWriter(file)
	for number := range paymentCount {
		if err := writeItem(items, a.payment(profile, number)); err != nil {
			a.t.Fatal(err)
		}
	}
	if err := errors.Join(items.Flush(), file.Close(), dynoxide.Import(a.t.Context(), source, schema,
		filepath.Join(folder, "ledger.db"))); err != nil {
		a.t.Fatal(err)
	}
	return table
}

// tableDescription returns a table of the template in the form of DescribeTable.
func tableDescription(table *template.Table) ([]byte, error) {
	return json.Marshal(map[string]any{"Table": map[string]any{
		"TableName": table.Name, "TableStatus": "ACTIVE", "KeySchema": table.Key,
		"AttributeDefinitions":   table.Attributes,
		"GlobalSecondaryIndexes": table.Indexes,
		"StreamSpecification":    map[string]any{"StreamEnabled": true, "StreamViewType": table.StreamView},
	}})
}

// payment returns one payment. The payments follow each other at one second, so that firstDayPayments are on the first
// day.
func (a *exportSession) payment(profile *merchant.Profile, number int) *ledger.Entry {
	return notifiedPayment(createdMerchant{MerchantCredentials: local.MerchantCredentials{Merchant: profile.Name},
		id: profile.ID, notifyURL: "https://shop.example/n"}, number,
		a.day.Add((24*60*60-firstDayPayments)*time.Second))
}

// writeItem writes an entry as the ledger stores it, in the form of DynamoDB's export.
func writeItem(to io.Writer, e *ledger.Entry) error {
	item, err := ledgerdynamo.Encode(e)
	if err != nil {
		return err
	}
	return json.NewEncoder(to).Encode(map[string]any{"Item": json.RawMessage(dynamodb.ItemJSON(item))})
}

// dayFlags returns the flags for the first days.
func (a *exportSession) dayFlags(count int) string {
	return "--from " + a.day.Format(time.DateOnly) + " --to " + a.day.AddDate(0, 0, count-1).Format(time.DateOnly)
}

// runExport runs an export with its output in a file. With interrupt it sends an interrupt once the file has
// interruptAt bytes. It returns the standard error, the peak memory in bytes, and the exit error.
func (a *exportSession) runExport(name, flags string, interrupt bool) (stderr string, peak int64, exitErr error) {
	a.t.Helper()
	file, err := os.Create(filepath.Join(a.folder, name))
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // the child wrote it
	ctx, cancel := context.WithTimeout(a.t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, a.program, strings.Fields("export Crowd "+flags)...)
	var errorOutput bytes.Buffer
	command.Env, command.Stdout, command.Stderr = a.environment, file, &errorOutput
	if err := command.Start(); err != nil {
		a.t.Fatal(err)
	}
	ending := make(chan error, 1)
	go func() { ending <- command.Wait() }()
	for check := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case exitErr = <-ending:
			check.Stop()
			return errorOutput.String(), peak, exitErr
		case <-check.C:
			peak = max(peak, peakOf(command.Process.Pid))
			if at, err := file.Stat(); interrupt && err == nil && at.Size() > interruptAt {
				interrupt = false
				_ = command.Process.Signal(os.Interrupt) // an error means that it has ended, which the caller sees
			}
		}
	}
}

// peakOf returns the peak memory of a process in bytes, 0 if it has ended. The value of wait4 would include this
// process, whose memory a child shares before exec.
func peakOf(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	peak, _ := strconv.ParseInt(number, 10, 64)
	return peak << 10
}

// checkExport checks that an export succeeded and that its file has the payments of a range.
func (a *exportSession) checkExport(exitErr error, name string, heading bool, from, to int) {
	a.t.Helper()
	if exitErr != nil {
		a.t.Fatalf("%s: %v", name, exitErr)
	}
	if got := from + a.countRows(name, heading, from); got != to {
		a.t.Errorf("%s ends before payment %d, want the end at %d", name, got, to)
	}
}

// countRows counts the payments in a file. It checks that each row is complete and that the payments are in order from
// a number on. heading is true if the file must begin with a heading.
func (a *exportSession) countRows(name string, heading bool, from int) int {
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
