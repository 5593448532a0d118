package preflight

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// recorded is a response of a service as it came over the wire.
type recorded struct {
	status int
	body   string
}

// services is a stub of all services that the preflight uses. It speaks their wires: queries with XML, JSON by a
// target, and REST. The responses are by service and operation.
type services struct {
	responses map[string]recorded
	asked     []string
}

// operation returns the service and the operation of a request, as in responses.
func operation(r *http.Request) string {
	_, scope, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	service := "unsigned"
	if parts := strings.Split(scope, "/"); len(parts) > 3 {
		service = parts[3]
	}
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		_, name, _ := strings.Cut(target, ".")
		return service + " " + name
	}
	if r.Method == http.MethodPost {
		_ = r.ParseForm()
		return strings.TrimSpace(service + " " + r.Form.Get("Action") + " " + r.Form.Get("LogicalResourceId") +
			r.Form.Get("PhysicalResourceId"))
	}
	return service + " " + r.URL.Path
}

func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := operation(r)
	s.asked = append(s.asked, name)
	response, known := s.responses[name]
	if !known {
		response = recorded{http.StatusBadRequest, `{"__type":"UnknownOperation","message":"` + name + `"}`}
	}
	if response.status == 0 {
		response.status = http.StatusOK
	}
	if code, message, isError := strings.Cut(response.body, "| "); isError {
		w.Header().Set("X-Amzn-Errortype", code)
		response.body = fmt.Sprintf(`{"__type":%q,"message":%q}`, code, message)
		if service, _, _ := strings.Cut(name, " "); service == "sts" || service == "cloudformation" ||
			service == "sns" {
			response.body = fmt.Sprintf(`<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message>`+
				`</Error></ErrorResponse>`, code, message)
		}
	}
	w.WriteHeader(response.status)
	_, _ = w.Write([]byte(response.body))
}

// configuration returns a configuration that sends every request to the stub.
func configuration(t *testing.T, s *services) aws.Config {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return aws.Config{
		Region: region, Credentials: credentials.NewStaticCredentialsProvider("KEY", "secret", ""),
		BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1,
	}
}

// The place of the tests.
const (
	account     = "123456789012"
	region      = "eu-west-1"
	stackName   = "mobile-gateway-prod"
	domain      = "api.example.com"
	topicARN    = "arn:aws:sns:" + region + ":" + account + ":alarms"
	certificate = "arn:aws:acm:" + region + ":" + account + ":certificate/11111111-2222"
	operatorARN = "arn:aws:acm:" + region + ":" + account + ":certificate/33333333-4444"
	keyARN      = "arn:aws:kms:" + region + ":" + account + ":key/55555555-6666"
	webACLARN   = "arn:aws:wafv2:" + region + ":" + account + ":regional/webacl/gateway/77777777-8888"
)

// describedWith is the response of DescribeStacks for a stack with one parameter more.
func describedWith(name, value string) recorded {
	response := described("UPDATE_COMPLETE")
	response.body = strings.Replace(response.body, "<Parameters>", "<Parameters><member><ParameterKey>"+name+
		"</ParameterKey><ParameterValue>"+value+"</ParameterValue></member>", 1)
	return response
}

// described is the response of DescribeStacks.
func described(status string) recorded {
	return recorded{body: `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>` + stackName +
		`</StackName><StackStatus>` + status + `</StackStatus><CreationTime>2026-03-01T12:00:00Z</CreationTime>` +
		`<Parameters>` +
		`<member><ParameterKey>ThrottleRate</ParameterKey><ParameterValue>500</ParameterValue></member></Parameters>` +
		`</member></Stacks></DescribeStacksResult></DescribeStacksResponse>`}
}

// ownedBy is the response of DescribeStackResources for a resource of a stack.
func ownedBy(stack, physicalID string) recorded {
	return recorded{body: `<DescribeStackResourcesResponse><DescribeStackResourcesResult><StackResources><member>` +
		`<StackName>` + stack + `</StackName><LogicalResourceId>R</LogicalResourceId><PhysicalResourceId>` +
		physicalID +
		`</PhysicalResourceId><ResourceType>AWS::DynamoDB::Table</ResourceType>` +
		`<Timestamp>2026-03-01T12:00:00Z</Timestamp>` +
		`<ResourceStatus>CREATE_COMPLETE</ResourceStatus></member></StackResources></DescribeStackResourcesResult>` +
		`</DescribeStackResourcesResponse>`}
}

// attributes is the response of GetTopicAttributes.
func attributes(policy, key string) recorded {
	return recorded{body: `<GetTopicAttributesResponse><GetTopicAttributesResult><Attributes>` +
		`<entry><key>Policy</key><value>` +
		strings.ReplaceAll(policy, `"`, "&quot;") + `</value></entry><entry><key>KmsMasterKeyId</key><value>` + key +
		`</value></entry></Attributes></GetTopicAttributesResult></GetTopicAttributesResponse>`}
}

// issued is the response of DescribeCertificate.
func issued(name, status, kind, until string) recorded {
	return recorded{body: fmt.Sprintf(`{"Certificate":{"CertificateArn":%q,"DomainName":%q,`+
		`"SubjectAlternativeNames":[%q],`+
		`"Status":%q,"Type":%q,"NotAfter":%s}}`, certificate, name, name, status, kind, until)}
}

func key(state, spec string) recorded {
	return recorded{body: fmt.Sprintf(`{"KeyMetadata":{"KeyId":"55555555-6666","KeyState":%q,"KeySpec":%q}}`, state,
		spec)}
}

func policy(text string) recorded { return recorded{body: fmt.Sprintf(`{"Policy":%q}`, text)} }

// The policies that the services give by default, or docs/deploy.md has.
const (
	defaultTopicPolicy = `{"Statement":[{"Effect":"Allow","Principal":{"AWS":"*"},"Action":["SNS:GetTopicAttributes",` +
		`"SNS:Publish"],"Resource":"*","Condition":{"StringEquals":{"AWS:SourceOwner":"` + account + `"}}}]}`
	rootPolicy = `{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account +
		`:root"},"Action":"kms:*","Resource":"*"}`
	keyPolicy = `{"Statement":[` + rootPolicy + `,{"Effect":"Allow","Principal":{"Service":["logs.` + region +
		`.amazonaws.com","` + alarms + `"]},"Resource":"*","Action":["kms:Encrypt*","kms:Decrypt*","kms:ReEncrypt*",` +
		`"kms:GenerateDataKey*","kms:Describe*"]}]}`
)

const (
	future = "1900000000"
	month  = "1772400000" // a day after the tests' clock
)

// goodResponses are those of an account that is ready for everything.
func goodResponses() map[string]recorded {
	return map[string]recorded{
		"sts GetCallerIdentity": {body: `<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:sts::` +
			account +
			`:assumed-role/deploy/ama</Arn><Account>` + account +
			`</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`},
		"cloudformation DescribeStacks": described("UPDATE_COMPLETE"),
		"cloudformation DescribeStackResources LedgerTable": {400,
			"ValidationError| Resource LedgerTable does not exist for stack"},
		"cloudformation DescribeStackResources " + domain:      ownedBy(stackName, domain),
		"cloudformation DescribeStackResources op.example.com": ownedBy(stackName, "op.example.com"),
		"lambda /2016-08-19/account-settings": {body: `{"AccountLimit":` +
			`{"ConcurrentExecutions":1000}}`},
		"apigateway /account": {body: `{"cloudwatchRoleArn":"arn:aws:iam::` +
			account + `:role/l","throttleSettings":{"rateLimit":10000,"burstLimit":5000}}`},
		"apigateway /domainnames/" + domain: {body: `{"domainName":"` + domain + `"}`},
		"apigateway /domainnames/op.example.com": {404,
			"NotFoundException| Invalid domain name identifier specified"},
		"acm DescribeCertificate": issued("*.example.com", "ISSUED", "AMAZON_ISSUED",
			future),
		"sns GetTopicAttributes": attributes(defaultTopicPolicy, keyARN),
		"kms DescribeKey":        key("Enabled", "SYMMETRIC_DEFAULT"),
		"kms GetKeyPolicy":       policy(keyPolicy),
		"cloudformation UpdateTerminationProtection": {body: `<UpdateTerminationProtectionResponse>` +
			`<UpdateTerminationProtectionResult>` +
			`<StackId>id</StackId></UpdateTerminationProtectionResult></UpdateTerminationProtectionResponse>`},
		"cloudformation SetStackPolicy": {body: `<SetStackPolicyResponse></SetStackPolicyResponse>`},
	}
}

// goodTarget is a deployment that uses everything.
func goodTarget() Target {
	return Target{
		Account: account, Region: region, Stack: stackName,
		Given: map[string]string{"AccountConcurrency": "1000", "ThrottleBurst": "1000", "DomainName": domain,
			"CertificateArn": certificate, "OperatorDomainName": "op.example.com",
			"OperatorCertificateArn": operatorARN,
			"OperatorTruststoreUri":  "s3://bucket/ca.pem", "StageAddress": "closed",
			"AlarmTopicArn": topicARN, "KmsKeyArn": keyARN,
			"WebAclArn": webACLARN},
		Defaults: map[string]string{"ThrottleRate": "100"},
		Data:     []DataResource{{"LedgerTable", "LedgerTableName"}},
	}
}

// with returns the good responses with others.
func with(changed map[string]recorded) map[string]recorded {
	all := goodResponses()
	maps.Copy(all, changed)
	return all
}
