package iamcheck

import (
	"mobilegateway/internal/local/calls"
	"mobilegateway/internal/template"
)

// need is what AWS needs a function's role for, besides the function's own calls.
type need struct {
	actions []string
	// on gives the resources for a function; none where the row is not about it.
	on func(template.Function) []string
	// when is the template's condition under which the permission is needed; "" for always.
	when string
	why  string
}

// needs is the table.
func needs() []need {
	return []need{
		{
			actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"},
			on:      func(f template.Function) []string { return []string{f.LogGroup} },
			why:     "Lambda delivers a function's log under its role",
		},
		{
			actions: []string{"xray:PutTraceSegments", "xray:PutTelemetryRecords"},
			on:      func(template.Function) []string { return []string{"*"} },
			why:     "Lambda sends a function's traces under its role; X-Ray has no resources to name",
		},
		{
			actions: []string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
			on:      func(f template.Function) []string { return streams(f, "/stream") },
			why:     "Lambda reads the stream under the role of the function that it invokes",
		},
		{
			actions: []string{"dynamodb:ListStreams"},
			on:      func(f template.Function) []string { return streams(f, "/stream/*") },
			why:     "Lambda looks up the table's stream; the action has no one stream for its resource",
		},
		{
			actions: []string{"kms:Decrypt"},
			on:      func(template.Function) []string { return []string{"KmsKeyArn"} },
			when:    "HasKmsKey",
			why:     "DynamoDB and Secrets Manager open what stands under a customer's key with the caller's rights",
		},
	}
}

// streams are the streams that invoke a function.
func streams(f template.Function, suffix string) []string {
	var found []string
	for _, stream := range f.Streams {
		found = append(found, stream.Table+suffix)
	}
	return found
}

// services gives the rows of the table by the permissions that they ask for.
func services(t *template.Template) map[calls.Call]need {
	due := map[calls.Call]need{}
	for _, row := range needs() {
		for _, f := range t.Functions {
			for _, action := range row.actions {
				for _, resource := range row.on(f) {
					due[calls.Call{Function: f.LogicalID, Action: action, Resource: resource}] = row
				}
			}
		}
	}
	return due
}
