package dynamoitem_test

import (
	"math"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/shared/dynamoitem"
)

func TestAttributesRoundTrip(t *testing.T) {
	item := dynamoitem.Key("merchant#1")
	item["version"] = dynamoitem.Number(math.MinInt64)
	if got := dynamoitem.ReadText(item, "pk"); got != "merchant#1" {
		t.Errorf("the key reads as %q", got)
	}
	if got, err := dynamoitem.ReadNumber(item, "version"); got != math.MinInt64 || err != nil {
		t.Errorf("the number reads as %d, %v", got, err)
	}
}

func TestAbsentAndForeignAttributes(t *testing.T) {
	item := dynamoitem.Item{"text": dynamoitem.Text("7"), "half": &types.AttributeValueMemberN{Value: "0.5"}}
	if got := dynamoitem.ReadText(item, "half") + dynamoitem.ReadText(item, "absent"); got != "" {
		t.Errorf("attributes without text read as %q", got)
	}
	if got, err := dynamoitem.ReadNumber(item, "absent"); got != 0 || err != nil {
		t.Errorf("an absent number reads as %d, %v", got, err)
	}
	for _, name := range []string{"text", "half"} {
		if got, err := dynamoitem.ReadNumber(item, name); got != 0 || err == nil {
			t.Errorf("attribute %s reads as the number %d without an error", name, got)
		}
	}
}
