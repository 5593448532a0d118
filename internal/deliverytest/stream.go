package deliverytest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
)

// StreamEvent returns the Lambda event with one record of the ledger's stream for each entry.
func StreamEvent(t testing.TB, entries ...*ledger.Entry) []byte {
	t.Helper()
	var records []any
	for i, e := range entries {
		item, err := dynamo.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		image := map[string]any{}
		for name, value := range item {
			image[name] = valueImage(t, value)
		}
		records = append(records, map[string]any{
			"eventID": fmt.Sprintf("%032x", i), "eventName": "MODIFY", "eventSource": "aws:dynamodb",
			"dynamodb": map[string]any{
				"Keys": map[string]any{"pk": image["pk"]}, "SequenceNumber": fmt.Sprint(100 + i),
				"NewImage": image, "StreamViewType": "NEW_IMAGE",
			},
		})
	}
	event, err := json.Marshal(map[string]any{"Records": records})
	if err != nil {
		t.Fatal(err)
	}
	return event
}

// valueImage returns the image of a value of a type that the ledger stores.
func valueImage(t testing.TB, value types.AttributeValue) map[string]any {
	t.Helper()
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	}
	t.Fatalf("no image is defined for a value of type %T", value)
	return nil
}
