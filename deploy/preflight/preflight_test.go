package preflight

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestReadyAccount: nothing is found in an account that is ready, and every service got a request.
func TestReadyAccount(t *testing.T) {
	s := &services{responses: goodResponses()}
	report := Run(t.Context(), configuration(t, s), goodTarget(), noon)
	for _, f := range report.Findings {
		if f.Problem != "" {
			t.Errorf("%+v", f)
		}
	}
	if len(report.Findings) != 14 || report.LacksLogRole || !report.StackExists || report.Account != account {
		t.Errorf("%d checks, %+v", len(report.Findings), report)
	}
	var text strings.Builder
	if err := report.Write(&text); err != nil || strings.Count(text.String(), "  ok ") != len(report.Findings) {
		t.Errorf("%v\n%s", err, text.String())
	}
	for _, service := range []string{"sts", "cloudformation", "lambda", "apigateway", "acm", "sns", "kms"} {
		if !strings.Contains(strings.Join(s.asked, "\n"), service+" ") {
			t.Errorf("%s got no request", service)
		}
	}
}

// TestEachFinding changes one response or one parameter: exactly that check finds it, and says what to do.
func TestEachFinding(t *testing.T) {
	const elsewhere, other = "arn:aws:sns:us-east-1:" + account + ":alarms", "arn:aws:sns:" + region +
		":999999999999:alarms"
	only := func(name string, r recorded) map[string]recorded { return map[string]recorded{name: r} }
	status := func(name string) map[string]recorded { return only("cloudformation DescribeStacks", described(name)) }
	certified := func(r recorded) map[string]recorded { return only("acm DescribeCertificate", r) }
	noWord := func(text, word string) string { return strings.ReplaceAll(text, word, "other.amazonaws.com") }
	for name, c := range map[string]struct {
		responses map[string]recorded
		given     map[string]string
		target    func(*Target)
		check     string
		want      string // of the problem
		action    string
		warns     bool
	}{
		"no credentials": {responses: only("sts GetCallerIdentity", recorded{403,
			"ExpiredToken| The security token included in the request is expired"}),
			check: "credentials", want: "ExpiredToken", action: "aws sso login"},
		"another account": {target: func(t *Target) { t.Account = "999999999999" }, check: "account",
			want: "of 123456789012, the environment is in 999999999999", action: "AWS_PROFILE"},
		"another region": {target: func(t *Target) { t.Region = "eu-west-3" }, check: "region",
			want: "has eu-west-1, the environment is in eu-west-3", action: "AWS_REGION=eu-west-3"},
		"a small account": {responses: only("lambda /2016-08-19/account-settings",
			recorded{body: `{"AccountLimit":{"ConcurrentExecutions":10}}`}),
			check: "concurrency of Lambda", want: "the account has 10 in eu-west-1, and AccountConcurrency is 1000",
			action: "request Lambda's quota"},
		"no AccountConcurrency": {given: map[string]string{"AccountConcurrency": "many"},
			check: "concurrency of Lambda",
			want:  "not a number", action: "samconfig.toml"},
		"a small region": {responses: only("apigateway /account",
			recorded{body: `{"cloudwatchRoleArn":"r","throttleSettings":{"rateLimit":2500,"burstLimit":1250}}`}),
			given: map[string]string{"ThrottleRate": "3000"}, check: "requests of API Gateway",
			want: "ThrottleRate is 3000, and the account has 2500", action: "request API Gateway's quota"},
		"a small burst": {responses: only("apigateway /account",
			recorded{body: `{"cloudwatchRoleArn":"r","throttleSettings":{"rateLimit":2500,"burstLimit":900}}`}),
			check: "requests of API Gateway", want: "ThrottleBurst is 1000, and the account has 900",
			action: "lower ThrottleBurst"},
		"no log role": {responses: only("apigateway /account",
			recorded{body: `{"throttleSettings":{"rateLimit":10000,"burstLimit":5000}}`}),
			check: "log role of API Gateway", want: "none in eu-west-1", action: "make deploy makes it", warns: true},
		"a domain of another stack": {responses: only("cloudformation DescribeStackResources "+domain,
			ownedBy("shop", domain)),
			check: "DomainName", want: "has the domain api.example.com already, of shop", action: "another domain"},
		"a domain of no stack": {responses: only("cloudformation DescribeStackResources "+domain,
			recorded{400, "ValidationError| Stack for api.example.com does not exist"}),
			check: "DomainName", want: "already, of no stack", action: "remove it there first"},
		"no certificate": {given: map[string]string{"CertificateArn": ""}, check: "CertificateArn",
			want: "has no certificate", action: "give CertificateArn"},
		"an unknown certificate": {responses: certified(recorded{400,
			"ResourceNotFoundException| Could not find certificate"}),
			given: map[string]string{"OperatorDomainName": ""},
			check: "CertificateArn", want: "there is no certificate", action: "copy the ARN"},
		"a certificate that waits": {responses: certified(issued(domain, "PENDING_VALIDATION", "AMAZON_ISSUED",
			future)), given: map[string]string{"OperatorDomainName": ""},
			check: "CertificateArn", want: "PENDING_VALIDATION", action: "validation record"},
		"a certificate of another name": {responses: certified(issued("*.api.example.com", "ISSUED", "AMAZON_ISSUED",
			future)), given: map[string]string{"OperatorDomainName": ""},
			check: "CertificateArn", want: "not for api.example.com", action: "request one for api.example.com"},
		"a certificate that ends": {responses: certified(issued(domain, "ISSUED", "AMAZON_ISSUED", month)),
			given: map[string]string{"OperatorDomainName": ""},
			check: "CertificateArn", want: "ends at 2026-03-01", action: "renew it"},
		"a certificate elsewhere": {given: map[string]string{"CertificateArn": strings.Replace(certificate, region,
			"us-east-1", 1)},
			check: "CertificateArn", want: "in the region us-east-1, and the stack in eu-west-1",
			action: "in eu-west-1"},
		"an imported certificate": {responses: certified(issued("*.example.com", "ISSUED", "IMPORTED", future)),
			check: "OperatorCertificateArn", want: "not an imported one", action: "request one in ACM"},
		"mutual TLS and an open stage": {given: map[string]string{"StageAddress": "open"},
			check: "OperatorTruststoreUri", want: "excludes mutual TLS", action: "StageAddress=closed"},
		"no topic": {responses: only("sns GetTopicAttributes",
			recorded{404, "NotFound| Topic does not exist"}), check: "AlarmTopicArn", want: "there is no topic",
			action: "create-topic --name alarms"},
		"a topic elsewhere": {given: map[string]string{"AlarmTopicArn": elsewhere}, check: "AlarmTopicArn",
			want: "in the region us-east-1", action: "in eu-west-1"},
		"a topic of another account": {given: map[string]string{"AlarmTopicArn": other}, check: "AlarmTopicArn",
			want: "in the account 999999999999", action: "create a topic"},
		"a topic for others": {responses: only("sns GetTopicAttributes",
			attributes(strings.ReplaceAll(defaultTopicPolicy, account, "999999999999"), "")),
			check: "AlarmTopicArn", want: "does not let cloudwatch.amazonaws.com publish",
			action: "aws:SourceAccount 123456789012"},
		"a topic with the key of AWS": {responses: only("sns GetTopicAttributes",
			attributes(defaultTopicPolicy, "alias/aws/sns")),
			check: "AlarmTopicArn", want: "AWS's own key", action: "a key of your own"},
		"a topic key for others": {responses: only("kms GetKeyPolicy", policy(noWord(keyPolicy, alarms))),
			check: "AlarmTopicArn",
			want:  "the policy of the topic's key", action: "kms:GenerateDataKey*"},
		"no key": {responses: only("kms DescribeKey", recorded{400,
			"NotFoundException| Key does not exist"}), check: "KmsKeyArn", want: "there is no key",
			action: "copy the ARN"},
		"a key that is off": {responses: only("kms DescribeKey", key("PendingDeletion", "SYMMETRIC_DEFAULT")),
			check: "KmsKeyArn", want: "PendingDeletion", action: "symmetric key that is enabled"},
		"an RSA key": {responses: only("kms DescribeKey", key("Enabled", "RSA_2048")), check: "KmsKeyArn",
			want: "RSA_2048", action: "symmetric"},
		"a key without logs": {responses: only("kms GetKeyPolicy", policy(noWord(keyPolicy, "logs."+
			region+".amazonaws.com"))), check: "KmsKeyArn",
			want: "does not let logs.eu-west-1.amazonaws.com use it", action: `:log-group:/` + stackName + `/*"}}}`},
		"a key elsewhere": {given: map[string]string{"KmsKeyArn": strings.Replace(keyARN, region, "us-east-1", 1)},
			check: "KmsKeyArn", want: "us-east-1", action: "create a key"},
		"a global web ACL": {given: map[string]string{"WebAclArn": strings.Replace(webACLARN, region, "us-east-1",
			1)}, check: "WebAclArn", want: "in the region us-east-1", action: "WAF=1"},
		"a failed creation": {responses: status("ROLLBACK_COMPLETE"), check: "state of the stack",
			want: "takes no update", action: "If the first deployment fails"},
		"an update at work": {responses: status("UPDATE_IN_PROGRESS"), check: "state of the stack",
			want: "UPDATE_IN_PROGRESS", action: "wait until it ends"},
		"a failed rollback": {responses: status("UPDATE_ROLLBACK_FAILED"), check: "state of the stack",
			want: "UPDATE_ROLLBACK_FAILED", action: "continue-update-rollback"},
		"a failed deletion": {responses: status("DELETE_FAILED"), check: "state of the stack", want: "DELETE_FAILED",
			action: "delete-stack"},
		"tables of others": {responses: only("cloudformation DescribeStackResources LedgerTable",
			ownedBy(stackName, "s-LedgerTable-1")), given: map[string]string{"LedgerTableName": "other"},
			check: "tables and secrets", want: "another LedgerTable for a live stack that has s-LedgerTable-1",
			action: "keep LedgerTableName empty"},
		"tables of its own again": {responses: only("cloudformation DescribeStacks",
			describedWith("LedgerTableName", "other")), given: map[string]string{"LedgerTableName": ""},
			check: "tables and secrets", want: "LedgerTableName is other for the live stack",
			action: "leave LedgerTableName as it is"},
		"no right": {responses: only("lambda /2016-08-19/account-settings",
			recorded{403, "AccessDeniedException| User is not authorized"}),
			check: "concurrency of Lambda", want: "not checked: AccessDeniedException",
			action: "allow lambda:GetAccountSettings", warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			target := goodTarget()
			for parameter, value := range c.given {
				target.Given[parameter] = value
			}
			if c.target != nil {
				c.target(&target)
			}
			report := Run(t.Context(), configuration(t, &services{responses: with(c.responses)}), target, noon)
			var found []Finding
			for _, f := range report.Findings {
				if f.Problem != "" {
					found = append(found, f)
				}
			}
			if len(found) != 1 || found[0].Check != c.check || !strings.Contains(found[0].Problem, c.want) ||
				!strings.Contains(found[0].Action, c.action) || found[0].Refuses == c.warns {
				t.Fatalf("found %+v, want %s: %s, %s", found, c.check, c.want, c.action)
			}
			var text strings.Builder
			if err := report.Write(&text); errors.Is(err, ErrRefused) == c.warns {
				t.Errorf("%v\n%s", err, text.String())
			}
		})
	}
}

// TestOperatorsWithoutMutualTLS checks that a domain without a truststore takes an imported certificate, and leaves the
// API's own address open.
func TestOperatorsWithoutMutualTLS(t *testing.T) {
	target := goodTarget()
	target.Given["OperatorTruststoreUri"], target.Given["StageAddress"] = "", "open"
	responses := with(map[string]recorded{
		"acm DescribeCertificate": issued("*.example.com", "ISSUED", "IMPORTED", future),
	})
	for _, f := range Run(t.Context(), configuration(t, &services{responses: responses}), target, noon).Findings {
		if f.Problem != "" {
			t.Errorf("%+v", f)
		}
	}
}

// TestNewStack: a stack that does not exist, or whose change set was never executed, may use other tables.
func TestNewStack(t *testing.T) {
	for name, r := range map[string]recorded{
		"none":      {400, "ValidationError| Stack with id mobile-gateway-prod does not exist"},
		"in review": described("REVIEW_IN_PROGRESS"),
	} {
		target := goodTarget()
		target.Given["LedgerTableName"] = "other"
		report := Run(t.Context(), configuration(t, &services{responses: with(map[string]recorded{
			"cloudformation DescribeStacks":                     r,
			"cloudformation DescribeStackResources LedgerTable": ownedBy(stackName, "s-LedgerTable-1"),
		})}), target, noon)
		for _, f := range report.Findings {
			if f.Refuses {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if report.StackExists {
			t.Errorf("%s: the stack exists", name)
		}
	}
}

// TestAllows evaluates policies: a deny wins, and each action needs a statement.
func TestAllows(t *testing.T) {
	const allow = `{"Effect":"Allow","Principal":{"Service":"s"},"Action":"kms:*"}`
	for text, want := range map[string]bool{
		`{"Statement":[` + allow + `]}`: true,
		`{"Statement":[` + allow + `,{"Effect":"Deny","Principal":"*","Action":"kms:Decrypt"}]}`:  false,
		`{"Statement":[{"Effect":"Allow","Principal":{"Service":"s"},"Action":["kms:Encrypt"]}]}`: false,
		`{"Statement":[{"Effect":"Allow","Principal":{"Service":"t"},"Action":"*"}]}`:             false,
		`not JSON`: false,
	} {
		if got := allows(text, account, "s", "kms:Encrypt", "kms:Decrypt"); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestProtectData turns the protection on, and lets no update replace or delete a resource.
func TestProtectData(t *testing.T) {
	s := &services{responses: goodResponses()}
	if err := ProtectData(t.Context(), configuration(t, s), stackName); err != nil || len(s.asked) != 2 {
		t.Errorf("asked %q, %v", s.asked, err)
	}
	s.responses["cloudformation SetStackPolicy"] = recorded{403, "AccessDenied| no"}
	err := ProtectData(t.Context(), configuration(t, s), stackName)
	if err == nil || !strings.Contains(err.Error(), "set the stack policy of "+stackName+": AccessDenied: no") {
		t.Error(err)
	}
	var policy struct {
		Statement []struct {
			Effect string
			Action any
		}
	}
	if err := json.Unmarshal([]byte(dataPolicy), &policy); err != nil || len(policy.Statement) != 2 ||
		policy.Statement[1].Effect != "Deny" ||
		!slices.Equal(policy.Statement[1].Action.([]any), []any{"Update:Replace", "Update:Delete"}) {
		t.Errorf("the policy is %+v, %v", policy, err)
	}
}

// TestProtect turns the protection on, and says why it could not.
func TestProtect(t *testing.T) {
	s := &services{responses: goodResponses()}
	if err := Protect(t.Context(), configuration(t, s), stackName); err != nil || len(s.asked) != 1 {
		t.Errorf("%v, asked %q", err, s.asked)
	}
	s.responses["cloudformation UpdateTerminationProtection"] = recorded{403, "AccessDenied| no"}
	if err := Protect(t.Context(), configuration(t, s), stackName); err == nil ||
		!strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("error %v", err)
	}
}
