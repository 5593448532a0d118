package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mobilegateway/internal/template"
	"mobilegateway/shared/pause"
)

// How long a table may take to become active or to go, and the pause between two looks at it.
const (
	tableTimeout      = 30 * time.Second
	tablePollInterval = 50 * time.Millisecond
)

// createTable is the request of CreateTable.
type createTable struct {
	TableName              string
	AttributeDefinitions   []template.Attribute
	KeySchema              []template.KeyElement
	BillingMode            string
	GlobalSecondaryIndexes []template.Index     `json:",omitempty"`
	StreamSpecification    *streamSpecification `json:",omitempty"`
}

type streamSpecification struct {
	StreamEnabled  bool
	StreamViewType string
}

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
		var refused *Error
		switch {
		case errors.As(err, &refused) && refused.Kind == "ResourceNotFoundException":
			err := c.call(ctx, tableService, "CreateTable", createRequest(table), &struct{}{})
			if errors.As(err, &refused) && refused.Kind == "ResourceInUseException" {
				err = nil // another process created it
			}
			if err != nil {
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
func createRequest(table template.Table) createTable {
	create := createTable{
		TableName: table.Name, AttributeDefinitions: table.Attributes, KeySchema: table.Key,
		BillingMode: "PAY_PER_REQUEST", GlobalSecondaryIndexes: table.Indexes,
	}
	if table.StreamView != "" {
		create.StreamSpecification = &streamSpecification{StreamEnabled: true, StreamViewType: table.StreamView}
	}
	return create
}

// errOtherSchema is the error of a table that another template created.
var errOtherSchema = errors.New("another template created it; start with empty data (make run RESET=1)")

// checkSchema compares the key, the names of the indexes and whether there is a stream.
func (d tableDescription) checkSchema(table template.Table) error {
	if !slices.Equal(d.Table.KeySchema, table.Key) || len(d.Table.GlobalSecondaryIndexes) != len(table.Indexes) {
		return errOtherSchema
	}
	for _, index := range d.Table.GlobalSecondaryIndexes {
		if !slices.ContainsFunc(table.Indexes, func(i template.Index) bool { return i.IndexName == index.IndexName }) {
			return errOtherSchema
		}
	}
	if table.StreamView != "" && d.Table.LatestStreamArn == "" {
		return errOtherSchema
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
			var refused *Error
			if errors.As(err, &refused) && refused.Kind == "ResourceNotFoundException" {
				break
			}
			if err != nil && (refused == nil || refused.Kind != "ResourceInUseException") {
				return fmt.Errorf("table %s: %w", table.Name, err)
			}
			if pause.For(ctx, tablePollInterval) != nil {
				return fmt.Errorf("table %s is not deleted after %v", table.Name, tableTimeout)
			}
		}
	}
	return nil
}
