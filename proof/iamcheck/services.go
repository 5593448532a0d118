package iamcheck

import (
	"mobilegateway/world/awscalls"
	"mobilegateway/world/template/roles"
)

// servicePermission is a permission that AWS itself needs in a function's role.
type servicePermission struct {
	actions []string
	// resources returns the resources for a function; none if the row does not apply to it.
	resources func(roles.Function) []string
	// condition is the template's condition under which the permission is needed; "" for always.
	condition string
	// requires are the conditions of IAM that the permission must have.
	requires []string
	reason   string
}

// grant is the text of all conditions of the permission.
func (p servicePermission) grant() string { return conditionText(p.condition, p.requires) }

func servicePermissions() []servicePermission {
	return []servicePermission{
		{
			actions:   []string{"logs:CreateLogStream", "logs:PutLogEvents"},
			resources: func(f roles.Function) []string { return []string{f.LogGroup} },
			reason:    "Lambda delivers a function's log under its role",
		},
		{
			actions:   []string{"xray:PutTraceSegments", "xray:PutTelemetryRecords"},
			resources: func(roles.Function) []string { return []string{"*"} },
			reason:    "Lambda sends a function's traces under its role; X-Ray has no resources",
		},
		{
			actions:   []string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
			resources: func(f roles.Function) []string { return streamResources(f, "/stream") },
			reason:    "Lambda reads the stream under the role of the function that it invokes",
		},
		{
			actions:   []string{"dynamodb:ListStreams"},
			resources: func(f roles.Function) []string { return streamResources(f, "/stream/*") },
			reason:    "Lambda looks up the table's stream; the action applies to no single stream",
		},
		{
			actions:   []string{"kms:Decrypt"},
			resources: func(roles.Function) []string { return []string{"KmsKeyArn"} },
			condition: "HasKmsKey",
			requires: []string{"StringEquals kms:ViaService dynamodb.${AWS::Region}.amazonaws.com " +
				"secretsmanager.${AWS::Region}.amazonaws.com"},
			reason: "DynamoDB and Secrets Manager decrypt under a customer's key with the caller's permissions",
		},
	}
}

// streamResources returns the streams that invoke a function.
func streamResources(f roles.Function, suffix string) []string {
	var found []string
	for _, stream := range f.Streams {
		found = append(found, stream.Table+suffix)
	}
	return found
}

// requiredByServices returns the rows of the table by permission.
func requiredByServices(t *roles.Template) map[awscalls.Call]servicePermission {
	serviceOnly := map[awscalls.Call]servicePermission{}
	for _, rule := range servicePermissions() {
		for _, f := range t.Functions {
			for _, permission := range permissionsOf(f.LogicalID, rule.actions, rule.resources(f), nil) {
				serviceOnly[permission] = rule
			}
		}
	}
	return serviceOnly
}
