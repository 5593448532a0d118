package dynoxide

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// query runs SQL on a data file that no engine has open and returns the rows of its last statement.
func query(t *testing.T, tool, path string, statements ...string) []map[string]any {
	t.Helper()
	const script = `
		const { Database } = require("node-sqlite3-wasm");
		const [path, ...statements] = process.argv.slice(1);
		const database = new Database(path);
		database.exec("PRAGMA locking_mode = EXCLUSIVE");
		const rows = statements.map((statement) => database.all(statement)).pop();
		database.close();
		console.log(JSON.stringify(rows, (_, value) => typeof value === "bigint" ? Number(value) : value));`
	command := exec.CommandContext(t.Context(), "node", append([]string{"-e", script, path}, statements...)...)
	command.Dir = tool
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("query %s: %v\n%s", path, err, output)
	}
	var rows []map[string]any
	if err := json.Unmarshal(output, &rows); err != nil {
		t.Fatalf("query %s: %v\n%s", path, err, output)
	}
	return rows
}

// installed returns the folder of the installation.
func installed(t *testing.T) string {
	t.Helper()
	tool, err := install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// preparedStorage returns the path of a new data file.
func preparedStorage(t *testing.T, tool string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.db")
	if err := prepareStorage(t.Context(), tool, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestStreamQueriesUseTheIndex covers every query of the engine that would otherwise read all stream records. It also
// checks that the engine still contains them, so a new version of the engine is checked again.
func TestStreamQueriesUseTheIndex(t *testing.T) {
	const numbering = "SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) + 1 FROM _stream_records " +
		"WHERE table_name = ?1"
	const describeStream = "SELECT MIN(sequence_number), MAX(sequence_number) FROM _stream_records " +
		"WHERE table_name = ?1 AND shard_id = ?2"
	const getRecords = "SELECT event_name, keys_json, new_image, old_image, sequence_number, created_at, " +
		"user_identity FROM _stream_records WHERE table_name = ?1 AND shard_id = ?2 " +
		"AND CAST(sequence_number AS INTEGER) > ?3 " +
		"ORDER BY CAST(sequence_number AS INTEGER) ASC LIMIT ?4"
	tool := installed(t)
	program, err := os.ReadFile(engine(tool))
	if err != nil {
		t.Fatal(err)
	}
	program = bytes.Join(bytes.Fields(program), []byte(" "))
	path := preparedStorage(t, tool)
	for name, sql := range map[string]string{
		"numbering": numbering, "DescribeStream": describeStream, "GetRecords": getRecords,
	} {
		if !bytes.Contains(program, []byte(sql)) {
			t.Errorf("%s: the engine has no query %q", name, sql)
		}
		plan := query(t, tool, path, "EXPLAIN QUERY PLAN "+sql)
		if len(plan) != 1 || !strings.Contains(fmt.Sprint(plan), "INDEX stream_by_sequence (table_name=?") {
			t.Errorf("%s: the plan is %v, want one search by the index stream_by_sequence", name, plan)
		}
	}
}

// TestStreamRecordsAreTrimmedAfterADay also checks that the last record of a table stays: the next number follows it.
func TestStreamRecordsAreTrimmedAfterADay(t *testing.T) {
	tool := installed(t)
	path := preparedStorage(t, tool)
	const insert = "INSERT INTO _stream_records " +
		"(table_name, event_name, keys_json, sequence_number, shard_id, created_at) " +
		"WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 12) "
	rows := query(t, tool, path,
		insert+"SELECT 'Idle', 'INSERT', '{}', n, 's', 0 FROM numbers",
		insert+"SELECT 'Busy', 'INSERT', '{}', n, 's', n * 20000 FROM numbers",
		"SELECT table_name, MIN(CAST(sequence_number AS INTEGER)) AS oldest, "+
			"MAX(CAST(sequence_number AS INTEGER)) AS newest "+
			"FROM _stream_records GROUP BY table_name ORDER BY table_name")
	got, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"newest":12,"oldest":8,"table_name":"Busy"},{"newest":12,"oldest":1,"table_name":"Idle"}]`
	if string(got) != want {
		t.Errorf("records left: %s, want %s", got, want)
	}
}

// TestStartPreparesAnOlderFile starts a server on a file that an older version of this package left behind.
func TestStartPreparesAnOlderFile(t *testing.T) {
	tool := installed(t)
	path := filepath.Join(t.TempDir(), "data.db")
	older, err := launchOnFreePort(t.Context(), engine(tool), path)
	if err != nil {
		t.Fatal(err)
	}
	_ = older.command.Process.Kill() // the write-ahead log stays
	older.Stop()
	if err := os.Mkdir(path+".lock", 0o700); err != nil { // as a killed preparation leaves it
		t.Fatal(err)
	}
	start(t, path).Stop()
	rows := query(t, tool, path,
		"SELECT name FROM sqlite_schema WHERE name IN ('stream_by_sequence', 'stream_retention')")
	if len(rows) != 2 {
		t.Errorf("the file has %v, want the index and the trigger of storage.sql", rows)
	}
	if version, err := fileVersion(path); err != nil || version == 0 {
		t.Errorf("the version of the file is %d (%v), so each start would prepare it again", version, err)
	}
}

func TestDamagedFileIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	if err := os.WriteFile(path, []byte("this text is not a database"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), path)
	wantOneLine(t, err, "file is not a database")
}
