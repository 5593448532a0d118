package dynoxide

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// Import makes the new data file dbPath, which Start then serves, out of many items at once: an engine with a stream takes
// thousands one by one ever more slowly. source holds <table>/data/<name>.json, a line {"Item":{...}} an item in
// DynamoDB's own JSON, as its export to S3 is; schema is a file with the answer of DescribeTable. Errors carry what the
// engine wrote.
func Import(ctx context.Context, source, schema, dbPath string) error {
	binary, err := install(ctx)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, binary, "import", "--source", source, "--schema", schema, "--output", dbPath)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("dynoxide: import: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
