package template_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mobilegateway/world/template"
	"mobilegateway/world/template/roles"
)

const repositoryRoot = "../.."

func loadTemplate(t *testing.T) *template.Template { return loadWith(t, template.Options{}) }

func loadWith(t *testing.T, options template.Options) *template.Template {
	t.Helper()
	deployed, err := template.Load(filepath.Join(repositoryRoot, "template.yaml"), options)
	if err != nil {
		t.Fatal(err)
	}
	return deployed
}

func parse(t *testing.T, text string, options template.Options) *template.Template {
	t.Helper()
	parsed, err := template.Parse([]byte(text), options)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestReferencesInTheEnvironmentAreResolved(t *testing.T) {
	charge := loadWith(t, template.Options{
		Parameters: map[string]string{"BaseUrl": "http://127.0.0.1:3000"}, StackName: "here",
	}).Function("charge")
	want := map[string]string{
		"LEDGER_TABLE": "LedgerTable", "OPERATOR_CREDENTIALS_SECRET": "here/operators",
		"BASE_URL": "http://127.0.0.1:3000", "OPERATOR_TIMEOUT": "12s", "GOMAXPROCS": "1", "SERVICE_ID": "SERVICE",
	}
	for name, value := range want {
		if charge.Environment[name] != value {
			t.Errorf("%s is %q, want %q", name, charge.Environment[name], value)
		}
	}
	if charge.Timeout != 20*time.Second {
		t.Errorf("the timeout is %s, want 20s", charge.Timeout)
	}
	if charge.MemoryMB != 256 {
		t.Errorf("the memory is %d MB, want 256", charge.MemoryMB)
	}
}

func TestTablesOfTheTemplate(t *testing.T) {
	index := func(name, hash, sort string) template.Index {
		return template.Index{
			IndexName: name, Projection: template.Projection{ProjectionType: "KEYS_ONLY"},
			KeySchema: []template.KeyElement{
				{AttributeName: hash, KeyType: "HASH"}, {AttributeName: sort, KeyType: "RANGE"},
			},
		}
	}
	want := &template.Table{
		LogicalID: "LedgerTable", Name: "LedgerTable", StreamView: "NEW_IMAGE",
		Key:     []template.KeyElement{{AttributeName: "pk", KeyType: "HASH"}},
		Indexes: []template.Index{index("day", "md", "dk"), index("due", "ds", "da")},
	}
	ledger := loadTemplate(t).Table("LedgerTable")
	if count := len(ledger.Attributes); count != 5 {
		t.Errorf("the ledger table declares %d attributes, want 5", count)
	}
	want.Attributes = ledger.Attributes
	if difference := cmp.Diff(want, ledger); difference != "" {
		t.Errorf("the ledger table differs (-want +got):\n%s", difference)
	}
}

func TestGatewayResponsesHaveTheErrorShape(t *testing.T) {
	for kind, response := range loadTemplate(t).GatewayResponses {
		if !strings.HasPrefix(response.Body, `{"requestError":{"`) {
			t.Errorf("%s: %s", kind, response.Body)
		}
	}
}

// TestPermissionsMatchEnvironment: a role may read a secret exactly if its function has the secret in its environment.
func TestPermissionsMatchEnvironment(t *testing.T) {
	deployed := loadTemplate(t)
	permitted, err := roles.Load(filepath.Join(repositoryRoot, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range permitted.Functions {
		values := slices.Collect(maps.Values(f.Environment))
		for _, secret := range deployed.Secrets {
			inRole := slices.ContainsFunc(permitted.Role(f.Role).Statements, func(s roles.Statement) bool {
				return slices.Equal(s.Actions, []string{"secretsmanager:GetSecretValue"}) &&
					slices.Contains(s.Resources, secret.LogicalID)
			})
			if inEnvironment := slices.Contains(values, secret.Name); inRole != inEnvironment {
				t.Errorf("%s: the role may read %s: %v; it is in the environment: %v",
					f.LogicalID, secret.LogicalID, inRole, inEnvironment)
			}
		}
	}
	if len(deployed.Secrets) != 5 {
		t.Errorf("the template has %d secrets, want 5", len(deployed.Secrets))
	}
}

// minimalTemplate has one function; a test appends to its properties.
const minimalTemplate = `Resources:
  F:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/f/bootstrap/
`

func TestStreamAndScheduleEvents(t *testing.T) {
	actual := parse(t, minimalTemplate+`
      Events:
        Tick: {Type: Schedule, Properties: {Schedule: rate(1 minute)}}
        Part: {Type: Schedule, Properties: {Schedule: rate(1 hour), State: ENABLED, Input: '{"part":1}'}}
        Off: {Type: Schedule, Properties: {Schedule: rate(1 day), State: DISABLED}}
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
`, template.Options{})
	f := actual.Function("f")
	schedules := []template.Schedule{{Expression: "rate(1 minute)"}, {Expression: "rate(1 hour)", Input: `{"part":1}`}}
	if difference := cmp.Diff(schedules, f.Schedules); difference != "" {
		t.Errorf("the schedules differ (-want +got):\n%s", difference)
	}
	want := []template.Stream{{
		Table: "T", BatchSize: 25, ParallelizationFactor: 10, MaxRetryAttempts: 3, MaxRecordAge: time.Minute,
		BisectOnError: true, ReportsItemFailures: true, Filters: make([]template.Filter, 1),
	}}
	if difference := cmp.Diff(want, f.Streams, cmpopts.IgnoreUnexported(template.Filter{})); difference != "" {
		t.Errorf("the streams differ (-want +got):\n%s", difference)
	}
	if name := actual.Table("T").Name; name != "named" {
		t.Errorf("the table's name is %q, want the one in the template", name)
	}
}

func TestUnsupportedTemplates(t *testing.T) {
	variable := func(value string) string {
		return minimalTemplate + "      Environment: {Variables: {A: " + value + "}}\n"
	}
	event := func(text string) string { return minimalTemplate + "      Events: {E: " + text + "}\n" }
	filter := func(pattern string) string {
		criteria := "{Filters: [{Pattern: '" + pattern + "'}]}"
		return event("{Type: DynamoDB, Properties: {Stream: !GetAtt F.StreamArn, FilterCriteria: " + criteria + "}}")
	}
	otherCode := strings.Replace(minimalTemplate, "functions/f/bootstrap/", "cmd/f/", 1)
	orCondition := "Conditions: {C: !Or [!Equals [a, b], !Contains [a]]}\n" + variable("!If [C, a, b]")
	cases := map[string]struct{ text, want string }{
		"no function":                 {"Resources: {}", "no function"},
		"reference to nothing":        {variable("!Ref Nothing"), `"Nothing" refers to nothing`},
		"unknown intrinsic":           {variable("!ImportValue x"), "line 6: !ImportValue is not supported"},
		"unknown condition":           {variable("!If [C, a, b]"), `no condition "C"`},
		"unsupported condition":       {orCondition, "!Contains is not supported"},
		"incomplete if":               {"Conditions: {C: !Equals [a, b]}\n" + variable("!If [C, a]"), "two values"},
		"attribute":                   {variable("!GetAtt F.Arn"), "line 6: !GetAtt is not supported"},
		"attribute in a substitution": {variable("!Sub \"${F.Arn}\""), `"F.Arn" refers to nothing`},
		"long form":                   {variable("{\"Fn::Sub\": x}"), "a text was expected"},
		"substitution of nothing":     {variable("!Sub \"${Nothing}\""), `"Nothing" refers to nothing`},
		"sequence in place of a text": {variable("[a]"), "a text was expected"},
		"no such mapping":             {variable("!FindInMap [M, a, b]"), "no mapping M/a/b"},
		"mapping without keys":        {variable("!FindInMap [M]"), "a mapping and two keys"},
		"timeout in words":            {minimalTemplate + "      Timeout: soon\n", `"soon" is not a number`},
		"code outside functions/":     {otherCode, "CodeUri"},
		"unknown event":               {event("{Type: SQS, Properties: {}}"), `type "SQS"`},
		"stream of no table":          {event("{Type: DynamoDB, Properties: {Stream: x}}"), "StreamArn"},
		"filter operator":             {filter(`{"a":[{"numeric":["=",1]}]}`), `operator at "a"`},
		"filter without a list":       {filter(`{"a":"b"}`), "not a list"},
		"filter without an object":    {filter(`[]`), "not a JSON object"},
		"invalid YAML":                {"a: [", "yaml:"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			actual, err := template.Parse([]byte(c.text), template.Options{})
			if err == nil {
				t.Fatalf("accepted as %+v", actual)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %q, want %q in it", err, c.want)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	text := `Parameters: {P: {Type: String, Default: ""}}
Conditions: {Has: !Not [!Equals [!Ref P, ""]]}
` + minimalTemplate + `
      Environment:
        Variables: {A: !If [Has, !Sub "https://${P}", other], B: !If [Has, !If [Has, x, y], z]}
`
	for value, want := range map[string]string{"": "other z", "here": "https://here x"} {
		actual := parse(t, text, template.Options{Parameters: map[string]string{"P": value}})
		if environment := actual.Functions[0].Environment; environment["A"]+" "+environment["B"] != want {
			t.Errorf("%q gives %v", value, environment)
		}
	}
}

// TestMappings: a value of a mapping is a text, also in a condition.
func TestMappings(t *testing.T) {
	text := `Parameters: {P: {Type: String, Default: small}, Q: {Type: String, Default: ""}}
Mappings: {Sizes: {small: {Count: "1"}, large: {Count: 4}}}
Conditions:
  HasQ: !Not [!Equals [!Ref Q, ""]]
  Many: !Or [!Equals [!Ref Q, many], !And [!Not [!Condition HasQ], !Equals [!FindInMap [Sizes, !Ref P, Count], 4]]]
` + minimalTemplate + `
      Environment: {Variables: {A: !If [HasQ, !Ref Q, !FindInMap [Sizes, !Ref P, Count]], B: !If [Many, many, few]}}
`
	for parameters, want := range map[[2]string]string{
		{"small", ""}: "1 few", {"large", ""}: "4 many", {"small", "many"}: "many many", {"large", "few"}: "few few",
	} {
		options := template.Options{Parameters: map[string]string{"P": parameters[0], "Q": parameters[1]}}
		actual := parse(t, text, options)
		if environment := actual.Functions[0].Environment; environment["A"]+" "+environment["B"] != want {
			t.Errorf("%q: %v, want %s", parameters, environment, want)
		}
	}
}

// TestReservedConcurrency: a function without a value shares the account's concurrency.
func TestReservedConcurrency(t *testing.T) {
	text := "Parameters: {P: {Type: String, Default: \"\"}}\nConditions: {Has: !Not [!Equals [!Ref P, \"\"]]}\n" +
		minimalTemplate + "      ReservedConcurrentExecutions: !If [Has, !Ref P, !Ref AWS::NoValue]\n"
	for value, want := range map[string]int{"": 0, "20": 20} {
		options := template.Options{Parameters: map[string]string{"P": value}}
		if got := parse(t, text, options).Functions[0].ReservedConcurrency; got != want {
			t.Errorf("%q reserves %d, want %d", value, got, want)
		}
	}
}

// checkEnvironment compares a variable of the functions that have it with what some parameters give it.
func checkEnvironment(t *testing.T, variable string, parameters map[string]string, want string) {
	t.Helper()
	checked := 0
	for _, f := range loadWith(t, template.Options{Parameters: parameters}).Functions {
		actual, has := f.Environment[variable]
		if has {
			checked++
		}
		if has && actual != want {
			t.Errorf("%s of %s is %q, want %q", variable, f.Name, actual, want)
		}
	}
	if checked < 2 {
		t.Errorf("%d functions have %s, want at least 2", checked, variable)
	}
}

// TestCallbackBaseURL: its own parameter, else the operators' domain, else the base address (decision "base-url").
func TestCallbackBaseURL(t *testing.T) {
	const base, own = "https://api.example.com", "https://proxy.example.com/gateway"
	const merchants, operators = "api.example.org", "operators.example.com"
	const operatorsURL = "https://" + operators
	both := map[string]string{"DomainName": merchants, "OperatorDomainName": operators}
	cases := map[string]struct {
		parameters map[string]string
		want       string
	}{
		"nothing is set":         {nil, ""},
		"base address":           {map[string]string{"BaseUrl": base}, base},
		"operators' domain":      {map[string]string{"BaseUrl": base, "OperatorDomainName": operators}, operatorsURL},
		"merchants' domain":      {map[string]string{"DomainName": merchants}, "https://" + merchants},
		"base address, domain":   {map[string]string{"DomainName": merchants, "BaseUrl": base}, base},
		"both domains":           {both, operatorsURL},
		"own parameter, domains": {map[string]string{"OperatorDomainName": operators, "CallbackBaseUrl": own}, own},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { checkEnvironment(t, "CALLBACK_BASE_URL", c.parameters, c.want) })
	}
}

// TestBaseURL: its own parameter, else the merchants' domain, else the stage's own address (decision "base-url").
func TestBaseURL(t *testing.T) {
	const domain, own = "api.example.com", "https://proxy.example.com/a"
	const stageURL = "https://Api.execute-api.us-east-1.amazonaws.com/dev"
	cases := map[string]struct {
		parameters map[string]string
		want       string
	}{
		"domain":        {map[string]string{"DomainName": domain}, "https://" + domain},
		"own parameter": {map[string]string{"DomainName": domain, "BaseUrl": own}, own},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { checkEnvironment(t, "BASE_URL", c.parameters, c.want) })
	}
	t.Run("nothing is set: of the request's event, or of the stage without one", func(t *testing.T) {
		for _, f := range loadTemplate(t).Functions {
			want, has := map[string]string{
				"relay": stageURL, "sweep": stageURL, "charge": "", "pay": "", "sms": "", "status": "",
			}[f.Name]
			if got, set := f.Environment["BASE_URL"]; set != has || got != want {
				t.Errorf("BASE_URL of %s is %q, want %q", f.Name, got, want)
			}
		}
	})
}

func TestParametersAndPseudoParameters(t *testing.T) {
	text := "Parameters: {P: {Type: String, Default: p}, Q: {Type: String}}\n" + minimalTemplate +
		"      Environment: {Variables: {A: !Sub \"${P}-${AWS::StackName}-${AWS::Region}\", B: !Ref P}}\n"
	options := template.Options{StackName: "s", Region: "r", Parameters: map[string]string{"Q": "q"}}
	actual := parse(t, text, options)
	want := map[string]string{"A": "p-s-r", "B": "p"}
	if difference := cmp.Diff(want, actual.Functions[0].Environment); difference != "" {
		t.Errorf("the environment differs (-want +got):\n%s", difference)
	}
	if _, err := template.Parse([]byte(text), template.Options{Parameters: map[string]string{"X": ""}}); err == nil {
		t.Error("a parameter that the template does not have was accepted")
	}
}
