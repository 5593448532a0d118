package deliverytest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/ledger"
	"mobilegateway/shared/ledger/dynamo"
)

// Stream is the event with which Lambda hands over what the ledger's stream shows of these entries.
func Stream(t testing.TB, entries ...*ledger.Entry) []byte {
	t.Helper()
	var records []any
	for i, e := range entries {
		item, err := dynamo.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, map[string]any{
			"eventID": fmt.Sprintf("%032x", i), "eventName": "MODIFY", "eventSource": "aws:dynamodb",
			"dynamodb": map[string]any{
				"Keys": map[string]any{"pk": image(t, item["pk"])}, "NewImage": imageMap(t, item),
				"SequenceNumber": fmt.Sprint(100 + i), "StreamViewType": "NEW_IMAGE",
			},
		})
	}
	event, err := json.Marshal(map[string]any{"Records": records})
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func imageMap(t testing.TB, item map[string]types.AttributeValue) map[string]any {
	t.Helper()
	members := map[string]any{}
	for name, value := range item {
		members[name] = image(t, value)
	}
	return members
}

func image(t testing.TB, value types.AttributeValue) map[string]any {
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
	case *types.AttributeValueMemberM:
		return map[string]any{"M": imageMap(t, v.Value)}
	case *types.AttributeValueMemberL:
		list := []any{}
		for _, element := range v.Value {
			list = append(list, image(t, element))
		}
		return map[string]any{"L": list}
	}
	t.Fatalf("an item holds a %T", value)
	return nil
}
