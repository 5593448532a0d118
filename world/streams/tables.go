package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"mobilegateway/shared/pause"
	"mobilegateway/world/template"
)

// How long a table may take to become active or to go, and the pause between two looks at it.
const (
	tableTimeout      = 30 * time.Second
	tablePollInterval = 50 * time.Millisecond
)

// tableDescription has the fields of DescribeTable's response that are used.
type tableDescription struct {
	Table struct {
		TableStatus            string
		LatestStreamArn        string
		KeySchema              []template.KeyElement
		GlobalSecondaryIndexes []struct{ IndexName string }
	}
}

// EnsureTables creates the template's tables that are missing and waits until all are active. An existing table with
// another key or other indexes is an error: another template created it.
func (c *Client) EnsureTables(ctx context.Context, tables []template.Table) error {
	for _, table := range tables {
		if err := c.ensureTable(ctx, table); err != nil {
			return fmt.Errorf("table %s: %w", table.Name, err)
		}
	}
	return nil
}

func (c *Client) ensureTable(ctx context.Context, table template.Table) error {
	ctx, cancel := context.WithTimeout(ctx, tableTimeout)
	defer cancel()
	for {
		found, err := c.describe(ctx, table.Name)
		switch {
		case isKind(err, "ResourceNotFoundException"):
			err := c.call(ctx, tableService, "CreateTable", createRequest(table), &struct{}{})
			if err != nil && !isKind(err, "ResourceInUseException") { // else another process created it
				return err
			}
		case err != nil:
			return err
		case found.Table.TableStatus == "ACTIVE":
			return found.checkSchema(table)
		}
		if pause.For(ctx, tablePollInterval) != nil {
			return fmt.Errorf("it is not active after %v", tableTimeout)
		}
	}
}

func (c *Client) describe(ctx context.Context, name string) (tableDescription, error) {
	var found tableDescription
	err := c.call(ctx, tableService, "DescribeTable", map[string]string{"TableName": name}, &found)
	return found, err
}

// createRequest is the request that creates a table of the template. It has no time to live: no local engine deletes
// items in time, and the gateway compares the time itself.
func createRequest(table template.Table) map[string]any {
	create := map[string]any{
		"TableName": table.Name, "AttributeDefinitions": table.Attributes, "KeySchema": table.Key,
		"BillingMode": "PAY_PER_REQUEST",
	}
	if len(table.Indexes) > 0 {
		create["GlobalSecondaryIndexes"] = table.Indexes
	}
	if table.StreamView != "" {
		create["StreamSpecification"] = map[string]any{"StreamEnabled": true, "StreamViewType": table.StreamView}
	}
	return create
}

// checkSchema compares the key, the names of the indexes and whether there is a stream.
func (d tableDescription) checkSchema(table template.Table) error {
	found, wanted := map[string]bool{}, map[string]bool{}
	for _, index := range d.Table.GlobalSecondaryIndexes {
		found[index.IndexName] = true
	}
	for _, index := range table.Indexes {
		wanted[index.IndexName] = true
	}
	if !slices.Equal(d.Table.KeySchema, table.Key) || !maps.Equal(found, wanted) ||
		table.StreamView != "" && d.Table.LatestStreamArn == "" {
		return errors.New("another template created it; start with empty data (make run RESET=1)")
	}
	return nil
}

// DeleteTables deletes the template's tables with all their items and waits until they are gone. It skips missing ones.
func (c *Client) DeleteTables(ctx context.Context, tables []template.Table) error {
	ctx, cancel := context.WithTimeout(ctx, tableTimeout)
	defer cancel()
	for _, table := range tables {
		for {
			err := c.call(ctx, tableService, "DeleteTable", map[string]string{"TableName": table.Name}, &struct{}{})
			if isKind(err, "ResourceNotFoundException") {
				break
			}
			if err != nil && !isKind(err, "ResourceInUseException") {
				return fmt.Errorf("table %s: %w", table.Name, err)
			}
			if pause.For(ctx, tablePollInterval) != nil {
				return fmt.Errorf("table %s is not deleted after %v", table.Name, tableTimeout)
			}
		}
	}
	return nil
}
