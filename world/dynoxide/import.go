package dynoxide

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// Import creates the data file dbPath from many items at once; Start then serves it. source holds the files
// <table>/data/<name>.json, with a line {"Item":{...}} per item, the format of DynamoDB's export to S3. schema is a
// file with the response of DescribeTable. An error carries the output of the engine.
func Import(ctx context.Context, source, schema, dbPath string) error {
	tool, err := install(ctx)
	if err != nil {
		return fmt.Errorf("dynoxide: %w", err)
	}
	arguments := []string{"import", "--source", source, "--schema", schema, "--output", dbPath}
	command := exec.CommandContext(ctx, engine(tool), arguments...)
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("dynoxide: import: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
