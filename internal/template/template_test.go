package template_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mobilegateway/internal/template"
)

const repositoryRoot = "../.."

func loadTemplate(t *testing.T) *template.Template {
	t.Helper()
	deployed, err := template.Load(filepath.Join(repositoryRoot, "template.yaml"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return deployed
}

func TestFunctionsMatchPrograms(t *testing.T) {
	var inTemplate, inTree []string
	for _, f := range loadTemplate(t).Functions {
		inTemplate = append(inTemplate, f.Name)
	}
	programs, err := filepath.Glob(filepath.Join(repositoryRoot, "functions", "*", "bootstrap", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		inTree = append(inTree, filepath.Base(filepath.Dir(filepath.Dir(program))))
	}
	slices.Sort(inTemplate)
	if !slices.Equal(inTemplate, inTree) {
		t.Errorf("functions in the template %v, programs in the tree %v", inTemplate, inTree)
	}
}

func TestRoutesOfTheSpecification(t *testing.T) {
	want := []template.Route{
		{Method: "POST", Resource: "/payment/v1/{endUserId}/transactions/amount", Function: "ChargeFunction"},
		{Method: "POST", Resource: "/mobilemoney/v1", Function: "PayFunction"},
		{Method: "POST", Resource: "/smsmessaging/v1/outbound/{senderAddress}/requests", Function: "SmsFunction"},
		{Method: "GET", Resource: "/payment/v1/{endUserId}/transactions/amount/{transactionId}", Function: "StatusFunction"},
		{Method: "GET", Resource: "/mobilemoney/v1/getStatus/{orderId}", Function: "StatusFunction"},
		{Method: "GET", Resource: "/mobilemoney/getstatus/v1/{orderId}", Function: "StatusFunction"},
		{Method: "GET", Resource: "/smsmessaging/v1/outbound/{senderAddress}/requests/{requestId}/deliveryInfos", Function: "StatusFunction"},
		{Method: "POST", Resource: "/token", Function: "TokenFunction"},
	}
	actual := loadTemplate(t).Routes
	for _, route := range want {
		if !slices.Contains(actual, route) {
			t.Errorf("no route %v", route)
		}
	}
}

func TestReferencesInTheEnvironmentAreResolved(t *testing.T) {
	deployed, err := template.Load(filepath.Join(repositoryRoot, "template.yaml"), template.Options{
		Parameters: map[string]string{"BaseUrl": "http://127.0.0.1:3000"}, StackName: "here",
	})
	if err != nil {
		t.Fatal(err)
	}
	charge := deployed.Function("charge")
	want := map[string]string{
		"LEDGER_TABLE": "LedgerTable", "OPERATOR_CREDENTIALS_SECRET": "here/operators", "BASE_URL": "http://127.0.0.1:3000",
		"OPERATOR_TIMEOUT": "12s", "GOMAXPROCS": "1", "SERVICE_ID": "SERVICE",
	}
	for name, value := range want {
		if charge.Environment[name] != value {
			t.Errorf("%s is %q, want %q", name, charge.Environment[name], value)
		}
	}
	if charge.Timeout != 20*time.Second || charge.MemoryMB != 256 {
		t.Errorf("timeout %s, memory %d", charge.Timeout, charge.MemoryMB)
	}
}

func TestTablesOfTheTemplate(t *testing.T) {
	ledger := loadTemplate(t).Table("LedgerTable")
	if ledger.StreamView != "NEW_IMAGE" || ledger.TTL != "expire_at" || len(ledger.Attributes) != 5 {
		t.Errorf("ledger table %+v", ledger)
	}
	if !slices.Equal(ledger.Key, []template.KeyElement{{AttributeName: "pk", KeyType: "HASH"}}) {
		t.Errorf("key %v", ledger.Key)
	}
	var names []string
	for _, index := range ledger.Indexes {
		names = append(names, index.IndexName+" "+index.Projection)
	}
	if !slices.Equal(names, []string{"day KEYS_ONLY", "due KEYS_ONLY"}) {
		t.Errorf("indexes %v", names)
	}
}

func TestGatewayResponsesHaveTheErrorShape(t *testing.T) {
	responses := loadTemplate(t).GatewayResponses
	for kind, response := range responses {
		if !strings.HasPrefix(response.Body, `{"requestError":{"`) {
			t.Errorf("%s: %s", kind, response.Body)
		}
	}
	missing := responses["MISSING_AUTHENTICATION_TOKEN"]
	if missing.Status != 404 || !strings.Contains(missing.Body, "900906") {
		t.Errorf("unknown route: %+v", missing)
	}
	throttled := responses["THROTTLED"]
	if throttled.Status != 429 || throttled.Headers["Retry-After"] != "1" {
		t.Errorf("throttled: %+v", throttled)
	}
}

// TestPermissionsMatchEnvironment keeps the least-privilege policies honest: a secret in the environment needs the right to
// read it, and a right to read it needs the variable.
func TestPermissionsMatchEnvironment(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repositoryRoot, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range loadTemplate(t).Functions {
		role := textSection(string(text), strings.TrimSuffix(f.LogicalID, "Function")+"Role:")
		for _, secret := range []string{"OperatorSecret", "TokenKeySecret", "CallbackKeySecret", "WebhookKeySecret"} {
			inRole := strings.Contains(role, "secretsmanager:GetSecretValue\", Resource: !Ref "+secret)
			inEnvironment := strings.Contains(textSection(string(text), f.LogicalID+":"), "!Ref "+secret)
			if inRole != inEnvironment {
				t.Errorf("%s: %s in the role %v, in the environment %v", f.LogicalID, secret, inRole, inEnvironment)
			}
		}
	}
}

// textSection cuts one resource out of the template's text.
func textSection(text, head string) string {
	_, after, _ := strings.Cut(text, "\n  "+head+"\n")
	var lines []string
	for line := range strings.Lines(after) {
		if strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   ") {
			break
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}

const minimalTemplate = "Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Properties:\n      CodeUri: functions/f/bootstrap/\n"

func TestStreamAndScheduleEvents(t *testing.T) {
	actual, err := template.Parse([]byte(minimalTemplate+`
      Events:
        Tick: {Type: Schedule, Properties: {Schedule: rate(1 minute)}}
        Ledger:
          Type: DynamoDB
          Properties:
            Stream: !GetAtt T.StreamArn
            BatchSize: 25
            ParallelizationFactor: 10
            BisectBatchOnFunctionError: true
            FunctionResponseTypes: [ReportBatchItemFailures]
            MaximumRecordAgeInSeconds: 60
            MaximumRetryAttempts: 3
            FilterCriteria: {Filters: [{Pattern: '{"dynamodb":{"NewImage":{"fast":{"S":["1"]}}}}'}]}
  T: {Type: "AWS::DynamoDB::Table", Properties: {TableName: named}}
`), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := actual.Function("f")
	if !slices.Equal(f.Schedules, []string{"rate(1 minute)"}) || len(f.Streams) != 1 {
		t.Fatalf("%+v", f)
	}
	s := f.Streams[0]
	if s.Table != "T" || s.BatchSize != 25 || s.ParallelizationFactor != 10 || !s.BisectOnError || !s.ReportsItemFailures || s.MaxRecordAge != time.Minute || s.MaxRetryAttempts != 3 || len(s.Filters) != 1 {
		t.Errorf("%+v", s)
	}
	if actual.Table("T").Name != "named" {
		t.Errorf("table %+v", actual.Table("T"))
	}
}

func TestUnsupportedTemplates(t *testing.T) {
	cases := map[string]string{
		"no function":             "Resources: {}",
		"a reference to nothing":  minimalTemplate + "      Environment: {Variables: {A: !Ref Nothing}}\n",
		"an intrinsic unknown":    minimalTemplate + "      Environment: {Variables: {A: !ImportValue x}}\n",
		"a condition unknown":     minimalTemplate + "      Environment: {Variables: {A: !If [C, a, b]}}\n",
		"a condition too clever":  "Conditions: {C: !Or [a, b]}\n" + minimalTemplate + "      Environment: {Variables: {A: !If [C, a, b]}}\n",
		"half an if":              "Conditions: {C: !Equals [a, b]}\n" + minimalTemplate + "      Environment: {Variables: {A: !If [C, a]}}\n",
		"an attribute unknown":    minimalTemplate + "      Environment: {Variables: {A: !GetAtt F.Version}}\n",
		"a substitution to none":  minimalTemplate + "      Environment: {Variables: {A: !Sub \"${Nothing}\"}}\n",
		"code in another place":   strings.Replace(minimalTemplate, "functions/f/bootstrap/", "cmd/f/", 1),
		"an event unknown":        minimalTemplate + "      Events: {E: {Type: SQS, Properties: {}}}\n",
		"a filter operator":       minimalTemplate + functionWithFilter(`{"a":[{"numeric":["=",1]}]}`),
		"a filter without a list": minimalTemplate + functionWithFilter(`{"a":"b"}`),
		"not YAML":                "a: [",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if actual, err := template.Parse([]byte(text), template.Options{}); err == nil {
				t.Errorf("accepted: %+v", actual)
			}
		})
	}
}

func functionWithFilter(pattern string) string {
	return "      Events: {E: {Type: DynamoDB, Properties: {Stream: !GetAtt F.StreamArn, FilterCriteria: {Filters: [{Pattern: '" + pattern + "'}]}}}}\n"
}

func TestConditions(t *testing.T) {
	text := "Parameters: {P: {Type: String, Default: \"\"}}\nConditions: {Has: !Not [!Equals [!Ref P, \"\"]]}\n" + minimalTemplate +
		"      Environment: {Variables: {A: !If [Has, !Sub \"https://${P}\", other], B: {\"Fn::If\": [Has, !If [Has, x, y], z]}}}\n"
	for value, want := range map[string]string{"": "other z", "here": "https://here x"} {
		actual, err := template.Parse([]byte(text), template.Options{Parameters: map[string]string{"P": value}})
		if err != nil {
			t.Fatal(err)
		}
		if environment := actual.Functions[0].Environment; environment["A"]+" "+environment["B"] != want {
			t.Errorf("%q gives %v", value, environment)
		}
	}
}

// TestCallbackBaseURL: a parameter of its own, else the operators' domain, else the base address (decision "base-url").
func TestCallbackBaseURL(t *testing.T) {
	const base, domain, own = "https://api.example.com", "operators.example.com", "https://proxy.example.com/gateway"
	cases := map[string]struct {
		parameters map[string]string
		want       string
	}{
		"nothing is set":       {nil, ""},
		"the base address":     {map[string]string{"BaseUrl": base}, base},
		"the operators' own":   {map[string]string{"BaseUrl": base, "OperatorDomainName": domain}, "https://" + domain},
		"the domain":           {map[string]string{"DomainName": "api.example.org"}, "https://api.example.org"},
		"a base on a domain":   {map[string]string{"DomainName": "api.example.org", "BaseUrl": base}, base},
		"both domains":         {map[string]string{"DomainName": "api.example.org", "OperatorDomainName": domain}, "https://" + domain},
		"another, for a while": {map[string]string{"BaseUrl": base, "OperatorDomainName": domain, "CallbackBaseUrl": own}, own},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			deployed, err := template.Load(filepath.Join(repositoryRoot, "template.yaml"), template.Options{Parameters: c.parameters})
			if err != nil {
				t.Fatal(err)
			}
			for _, function := range []string{"pay", "sms"} {
				if actual := deployed.Function(function).Environment["CALLBACK_BASE_URL"]; actual != c.want {
					t.Errorf("%s: %q, want %q", function, actual, c.want)
				}
			}
		})
	}
}

// TestBaseURL: a parameter of its own, else the merchants' domain, else the stage's own (decision "base-url").
func TestBaseURL(t *testing.T) {
	for name, c := range map[string]struct {
		parameters map[string]string
		want       string
	}{
		"nothing is set": {nil, ""},
		"the domain":     {map[string]string{"DomainName": "api.example.com"}, "https://api.example.com"},
		"its own":        {map[string]string{"DomainName": "api.example.com", "BaseUrl": "https://proxy.example.com/a"}, "https://proxy.example.com/a"},
	} {
		t.Run(name, func(t *testing.T) {
			deployed, err := template.Load(filepath.Join(repositoryRoot, "template.yaml"), template.Options{Parameters: c.parameters})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range deployed.Functions {
				if actual, has := f.Environment["BASE_URL"]; has && actual != c.want {
					t.Errorf("%s: %q, want %q", f.Name, actual, c.want)
				}
			}
		})
	}
}

func TestParametersAndPseudoParameters(t *testing.T) {
	text := "Parameters: {P: {Type: String, Default: p}, Q: {Type: String}}\n" + minimalTemplate +
		"      Environment: {Variables: {A: !Sub \"${P}-${AWS::StackName}-${AWS::Region}\", B: {Ref: P}}}\n"
	actual, err := template.Parse([]byte(text), template.Options{StackName: "s", Region: "r", Parameters: map[string]string{"Q": "q"}})
	if err != nil {
		t.Fatal(err)
	}
	if a := actual.Functions[0].Environment["A"]; a != "p-s-r" {
		t.Errorf("A is %q", a)
	}
	if b := actual.Functions[0].Environment["B"]; b != "p" {
		t.Errorf("B is %q", b)
	}
	if _, err := template.Parse([]byte(text), template.Options{Parameters: map[string]string{"X": ""}}); err == nil {
		t.Error("a parameter that the template does not have was accepted")
	}
}
