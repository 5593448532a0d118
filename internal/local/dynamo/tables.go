package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mobilegateway/internal/template"
)

// tableWait is how long a table may take to become active, and tablePoll how often it is looked at.
const (
	tableWait = 30 * time.Second
	tablePoll = 50 * time.Millisecond
)

// createTable is the CreateTable operation.
type createTable struct {
	TableName              string
	AttributeDefinitions   []template.Attribute
	KeySchema              []template.KeyElement
	BillingMode            string
	GlobalSecondaryIndexes []createIndex        `json:",omitempty"`
	StreamSpecification    *streamSpecification `json:",omitempty"`
}

type createIndex struct {
	IndexName  string
	KeySchema  []template.KeyElement
	Projection struct{ ProjectionType string }
}

type streamSpecification struct {
	StreamEnabled  bool
	StreamViewType string
}

// tableDescription is what DescribeTable tells and we need.
type tableDescription struct {
	Table struct {
		TableStatus            string
		LatestStreamArn        string
		KeySchema              []template.KeyElement
		GlobalSecondaryIndexes []struct{ IndexName string }
	}
}

// EnsureTables creates the template's tables where they are missing, and waits until all can be used. A table that is
// there with another key or other indexes is an error: it was made from another template.
func (c *Client) EnsureTables(ctx context.Context, tables []template.Table) error {
	for _, table := range tables {
		if err := c.ensureTable(ctx, table); err != nil {
			return fmt.Errorf("table %s: %w", table.Name, err)
		}
	}
	return nil
}

func (c *Client) ensureTable(ctx context.Context, table template.Table) error {
	ctx, cancel := context.WithTimeout(ctx, tableWait)
	defer cancel()
	for {
		found, err := c.describe(ctx, table.Name)
		var refused *Error
		switch {
		case errors.As(err, &refused) && refused.Kind == "ResourceNotFoundException":
			err := c.call(ctx, tableService, "CreateTable", creation(table), &struct{}{})
			if errors.As(err, &refused) && refused.Kind == "ResourceInUseException" {
				err = nil // another hand was quicker
			}
			if err != nil {
				return err
			}
		case err != nil:
			return err
		case found.Table.TableStatus == "ACTIVE":
			return found.differs(table)
		}
		select {
		case <-time.After(tablePoll):
		case <-ctx.Done():
			return errors.New("it does not become active")
		}
	}
}

func (c *Client) describe(ctx context.Context, name string) (tableDescription, error) {
	var found tableDescription
	err := c.call(ctx, tableService, "DescribeTable", map[string]string{"TableName": name}, &found)
	return found, err
}

// creation is the table as the template describes it. Its expiry is left out: no local engine deletes in time, and the
// code compares the time itself.
func creation(table template.Table) createTable {
	create := createTable{
		TableName: table.Name, AttributeDefinitions: table.Attributes, KeySchema: table.Key, BillingMode: "PAY_PER_REQUEST",
	}
	for _, index := range table.Indexes {
		i := createIndex{IndexName: index.IndexName, KeySchema: index.Key}
		i.Projection.ProjectionType = index.Projection
		create.GlobalSecondaryIndexes = append(create.GlobalSecondaryIndexes, i)
	}
	if table.StreamView != "" {
		create.StreamSpecification = &streamSpecification{StreamEnabled: true, StreamViewType: table.StreamView}
	}
	return create
}

// errOtherTable is the fault of a table that another template made.
var errOtherTable = errors.New("it was made from another template; begin with empty data (make run RESET=1)")

// differs compares keys and the names of indexes.
func (d tableDescription) differs(table template.Table) error {
	if !slices.Equal(d.Table.KeySchema, table.Key) || len(d.Table.GlobalSecondaryIndexes) != len(table.Indexes) {
		return errOtherTable
	}
	for _, index := range d.Table.GlobalSecondaryIndexes {
		if !slices.ContainsFunc(table.Indexes, func(i template.Index) bool { return i.IndexName == index.IndexName }) {
			return errOtherTable
		}
	}
	if table.StreamView != "" && d.Table.LatestStreamArn == "" {
		return errOtherTable
	}
	return nil
}

// DeleteTables deletes the template's tables with all their items, and waits until they are gone. A table that is not
// there is fine.
func (c *Client) DeleteTables(ctx context.Context, tables []template.Table) error {
	ctx, cancel := context.WithTimeout(ctx, tableWait)
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
			select {
			case <-time.After(tablePoll):
			case <-ctx.Done():
				return fmt.Errorf("table %s is not deleted in time", table.Name)
			}
		}
	}
	return nil
}
