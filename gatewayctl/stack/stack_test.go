package stack

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cloudFormation is a stub that speaks CloudFormation's wire: a query as the request, XML as the response.
type cloudFormation struct {
	stacks    string            // the member of DescribeStacks; "" for a stack that does not exist
	resources map[string]string // physical ids by logical id
	status    string            // of the resources
	requests  []string
	key       string // the access key id of the last signature
}

func (c *cloudFormation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	c.requests = append(c.requests, r.Form.Get("Action")+" "+r.Form.Get("LogicalResourceId"))
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	c.key, _, _ = strings.Cut(credential, "/")
	logical := r.Form.Get("LogicalResourceId")
	refuse := func(message string) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><Error>`+
			`<Type>Sender</Type><Code>ValidationError</Code><Message>%s</Message></Error></ErrorResponse>`, message)
	}
	switch physical := c.resources[logical]; {
	case c.stacks == "":
		refuse("Stack with id s does not exist")
	case r.Form.Get("Action") == "DescribeStacks":
		_, _ = fmt.Fprintf(w, `<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">`+
			`<DescribeStacksResult><Stacks><member><StackName>s</StackName><StackStatus>CREATE_COMPLETE</StackStatus>`+
			`<CreationTime>2026-03-01T12:00:00Z</CreationTime>%s</member></Stacks></DescribeStacksResult>`+
			`</DescribeStacksResponse>`, c.stacks)
	case physical == "":
		refuse("Resource R does not exist for stack s")
	default:
		_, _ = fmt.Fprintf(w, `<DescribeStackResourcesResponse>`+
			`<DescribeStackResourcesResult><StackResources><member><LogicalResourceId>R</LogicalResourceId>`+
			`<PhysicalResourceId>%s</PhysicalResourceId><ResourceType>AWS::DynamoDB::Table</ResourceType>`+
			`<Timestamp>2026-03-01T12:00:00Z</Timestamp><ResourceStatus>%s</ResourceStatus></member></StackResources>`+
			`</DescribeStackResourcesResult></DescribeStackResourcesResponse>`, physical, c.status)
	}
}

// members returns pairs in the form of a stack's outputs or parameters.
func members(list, prefix string, pairs map[string]string) string {
	text := "<" + list + ">"
	for key, value := range pairs {
		text += fmt.Sprintf("<member><%sKey>%s</%sKey><%sValue>%s</%sValue></member>", prefix, key, prefix, prefix,
			value,
			prefix)
	}
	return text + "</" + list + ">"
}

// useProfile makes the SDK's loader read a shared configuration with one profile and no other credentials.
func useProfile(t *testing.T, c *cloudFormation, configuration string) {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	folder := t.TempDir()
	file := filepath.Join(folder, "config")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": file, "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(folder, "none"), "AWS_PROFILE": "shop",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
		"AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true", "AWS_ENDPOINT_URL": "",
		"AWS_ENDPOINT_URL_CLOUDFORMATION": server.URL,
	} {
		t.Setenv(name, value)
	}
}

const profile = "[profile shop]\nregion = eu-west-3\naws_access_key_id = PROFILE\naws_secret_access_key = secret\n"

// TestRead finds what the outputs name, reads the resource of a missing output, and leaves out what the stack lacks.
func TestRead(t *testing.T) {
	outputs := map[string]string{
		"BaseUrl": "https://id.execute-api.eu-west-3.amazonaws.com/prod", "LedgerTable": "s-LedgerTable-1",
		"ServiceId": "S", "ContactId": "C", "AuditLogGroup": "/s/audit",
	}
	c := &cloudFormation{
		stacks: members("Outputs", "Output", outputs) +
			members("Parameters", "Parameter", map[string]string{"ApplicationId": "A", "DomainName": "",
				"BaseUrl": ""}),
		resources: map[string]string{"MerchantTable": "s-MerchantTable-2"}, status: "UPDATE_COMPLETE",
	}
	useProfile(t, c, profile)
	found, err := Read(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"LEDGER_TABLE": "s-LedgerTable-1", "MERCHANT_TABLE": "s-MerchantTable-2", "AUDIT_LOG_GROUP": "/s/audit",
		"SERVICE_ID": "S", "APPLICATION_ID": "A", "CONTACT_ID": "C", "BASE_URL": outputs["BaseUrl"],
		"CALLBACK_BASE_URL": outputs["BaseUrl"], "AWS_REGION": "eu-west-3", "AWS_ACCESS_KEY_ID": "PROFILE",
	}
	if !maps.Equal(found.Variables, want) {
		t.Errorf("found %v, want %v", found.Variables, want)
	}
	if keys, err := found.Credentials.Retrieve(t.Context()); keys.AccessKeyID != "PROFILE" || c.key != "PROFILE" ||
		err != nil {
		t.Errorf("the credentials are %q (%v), the requests are signed by %q", keys.AccessKeyID, err, c.key)
	}
}

// TestAddresses: merchants see the address that they use, also behind a domain.
func TestAddresses(t *testing.T) {
	const stage = "https://id.execute-api.eu-west-3.amazonaws.com/prod"
	for name, c := range map[string]struct {
		parameters      map[string]string
		base, callbacks string
	}{
		"no domain": {nil, stage, stage},
		"a domain": {map[string]string{"DomainName": "api.example.com"}, "https://api.example.com",
			"https://api.example.com"},
		"a base": {map[string]string{"DomainName": "api.example.com", "BaseUrl": "https://old.example.com/"},
			"https://old.example.com", "https://old.example.com"},
		"operators": {map[string]string{"DomainName": "api.example.com", "OperatorDomainName": "op.example.com"},
			"https://api.example.com", "https://op.example.com"},
		"callbacks": {map[string]string{"CallbackBaseUrl": "https://cb.example.com",
			"OperatorDomainName": "op.example.com"},
			stage, "https://cb.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			got := addresses(map[string]string{"BaseUrl": stage}, c.parameters)
			if got["BASE_URL"] != c.base || got["CALLBACK_BASE_URL"] != c.callbacks {
				t.Errorf("addresses %v, want %s and %s", got, c.base, c.callbacks)
			}
		})
	}
}

// TestReadFails: each error says what to do.
func TestReadFails(t *testing.T) {
	for name, c := range map[string]struct {
		stub          *cloudFormation
		configuration string
		want          string
	}{
		"no such stack": {&cloudFormation{}, profile, "there is no stack s in eu-west-3: check the name"},
		"not a gateway's": {&cloudFormation{stacks: "<Outputs/>"}, profile,
			"name the gateway's stack (it is create_complete)"},
		"deleted tables": {&cloudFormation{stacks: "<Outputs/>", status: "DELETE_COMPLETE",
			resources: map[string]string{"LedgerTable": "gone"}}, profile, "no table and no secret of a gateway"},
		"no region": {&cloudFormation{}, strings.ReplaceAll(profile, "region = eu-west-3\n", ""),
			"set AWS_REGION"},
		"no credentials": {&cloudFormation{}, "[profile shop]\nregion = eu-west-3\n", "run aws sso login"},
		"no profile":     {&cloudFormation{}, "[profile other]\nregion = eu-west-3\n", "set AWS_PROFILE"},
	} {
		t.Run(name, func(t *testing.T) {
			useProfile(t, c.stub, c.configuration)
			found, err := Read(t.Context(), "s")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("found %v, error %v, want %q", found, err, c.want)
			}
		})
	}
}
