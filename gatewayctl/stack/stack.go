// Package stack finds a deployment of gatewayctl by the CloudFormation stack that made it.
//
// Region and credentials are those of the AWS tools: shared configuration, SSO and roles, by the SDK's own loader. The
// loader costs start-up time and megabytes of program, so nothing that ships in a function may import this package.
package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"mobilegateway/gatewayctl/deployment"
)

// named is an output of template.yaml that has the name of a table, a secret or a log group. Its logical resource has
// the same name, and that resource's physical id is the value.
type named struct{ output, variable string }

var resources = []named{
	{"LedgerTable", "LEDGER_TABLE"},
	{"MerchantTable", "MERCHANT_TABLE"},
	{"LimitTable", "LIMIT_TABLE"},
	{"OperatorSecret", "OPERATOR_CREDENTIALS_SECRET"},
	{"TokenKeySecret", "TOKEN_KEY_SECRET"},
	{"TokenPublicKeySecret", "TOKEN_PUBLIC_KEY_SECRET"},
	{"CallbackKeySecret", "CALLBACK_KEY_SECRET"},
	{"WebhookKeySecret", "WEBHOOK_KEY_SECRET"},
	{"AuditLogGroup", "AUDIT_LOG_GROUP"},
}

// constants are the outputs that merchants send, which are parameters of the stack too.
var constants = []named{
	{"ServiceId", "SERVICE_ID"},
	{"ApplicationId", "APPLICATION_ID"},
	{"ContactId", "CONTACT_ID"},
}

// readTimeout bounds the search for credentials and all requests about a stack.
const readTimeout = 30 * time.Second

// Read finds a deployment by its stack's name. Its error says what to do: sign in, choose a region, or name another
// stack. It changes nothing.
func Read(ctx context.Context, name string) (*deployment.Stack, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	loaded, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("the AWS configuration cannot be read: set AWS_PROFILE to a profile that exists: %w",
			err)
	}
	if loaded.Region == "" {
		return nil, errors.New("no AWS region is set: set AWS_REGION, or region in the profile")
	}
	if loaded.Credentials == nil {
		return nil, errors.New("there are no AWS credentials: set AWS_PROFILE, or run aws sso login")
	}
	keys, err := loaded.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("there are no AWS credentials: set AWS_PROFILE, or run aws sso login: %w", err)
	}
	reader := reader{cloudformation.NewFromConfig(loaded), name, loaded.Region}
	variables, err := reader.variables(ctx)
	if err != nil {
		return nil, err
	}
	variables["AWS_REGION"], variables["AWS_ACCESS_KEY_ID"] = loaded.Region, keys.AccessKeyID
	return &deployment.Stack{Variables: variables, Credentials: loaded.Credentials}, nil
}

// reader reads one stack.
type reader struct {
	client       *cloudformation.Client
	name, region string
}

// variables returns the variables that the stack's outputs, parameters and resources have values for.
func (r reader) variables(ctx context.Context) (map[string]string, error) {
	found, err := r.client.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: aws.String(r.name)})
	if isAbsent(err) || err == nil && len(found.Stacks) == 0 {
		return nil, fmt.Errorf("there is no stack %s in %s: check the name, AWS_REGION and AWS_PROFILE", r.name,
			r.region)
	}
	if err != nil {
		return nil, fmt.Errorf("read the stack %s in %s: %w", r.name, r.region, err)
	}
	outputs, parameters := map[string]string{}, map[string]string{}
	for _, output := range found.Stacks[0].Outputs {
		outputs[aws.ToString(output.OutputKey)] = aws.ToString(output.OutputValue)
	}
	for _, parameter := range found.Stacks[0].Parameters {
		parameters[aws.ToString(parameter.ParameterKey)] = aws.ToString(parameter.ParameterValue)
	}
	variables := addresses(outputs, parameters)
	for _, constant := range constants {
		variables[constant.variable] = cmp.Or(outputs[constant.output], parameters[constant.output])
	}
	known := 0
	for _, resource := range resources {
		value := outputs[resource.output]
		if value == "" {
			if value, err = r.physicalID(ctx, resource.output); err != nil {
				return nil, err
			}
		}
		if value != "" {
			known++
			variables[resource.variable] = value
		}
	}
	if known == 0 {
		return nil, fmt.Errorf("the stack %s in %s has no table and no secret of a gateway: name the gateway's stack "+
			"(it is %s)", r.name, r.region, strings.ToLower(string(found.Stacks[0].StackStatus)))
	}
	return variables, nil
}

// physicalID returns the name of a resource for which the stack has no output; "" if it has no such resource either.
func (r reader) physicalID(ctx context.Context, logicalID string) (string, error) {
	found, err := r.client.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{
		StackName: aws.String(r.name), LogicalResourceId: aws.String(logicalID),
	})
	if isAbsent(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the resource %s of the stack %s: %w", logicalID, r.name, err)
	}
	for _, resource := range found.StackResources {
		if resource.ResourceStatus != types.ResourceStatusDeleteComplete {
			return aws.ToString(resource.PhysicalResourceId), nil
		}
	}
	return "", nil
}

// addresses returns the base addresses as the functions take them (decision "base-url"). The output BaseUrl is the
// stage's own address, also behind a domain, so the parameters come first.
func addresses(outputs, parameters map[string]string) map[string]string {
	base := cmp.Or(parameters["BaseUrl"], domainAddress(parameters["DomainName"]), outputs["BaseUrl"])
	callbacks := cmp.Or(parameters["CallbackBaseUrl"], domainAddress(parameters["OperatorDomainName"]), base)
	return map[string]string{
		"BASE_URL": strings.TrimRight(base, "/"), "CALLBACK_BASE_URL": strings.TrimRight(callbacks, "/"),
	}
}

func domainAddress(name string) string {
	if name == "" {
		return ""
	}
	return "https://" + name
}

// isAbsent reports whether CloudFormation has no stack or resource of a name. Its code for that is the one of all
// invalid requests.
func isAbsent(err error) bool {
	refused, isRefusal := errors.AsType[smithy.APIError](err)
	return isRefusal && refused.ErrorCode() == "ValidationError" && strings.Contains(refused.ErrorMessage(),
		"not exist")
}
