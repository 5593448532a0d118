// Package preflight finds out before a deployment what would make it fail, or what it would damage. It reads an AWS
// account and a template's parameters, and changes nothing.
//
// Region and credentials are those of the AWS tools, by the SDK's own loader. A check that AWS does not allow is a
// warning with the missing right: the deployment itself may need fewer rights.
package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/acm"
	"github.com/aws/aws-sdk-go-v2/service/apigateway"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

// Target is what will be deployed, and where.
type Target struct {
	Account, Region string // "" for those of the credentials and of the configuration
	Stack           string
	Given           map[string]string // the parameters that the deployment sends
	Defaults        map[string]string // of the template's parameters
	Data            []DataResource
}

// DataResource is a table, a secret, a key or a log group that the stack makes only while a parameter is empty.
type DataResource struct{ LogicalID, Parameter string }

// Finding is one result of the preflight.
type Finding struct {
	Check   string
	Problem string // empty: the check found nothing
	Action  string // what to do
	Refuses bool   // the deployment must not begin
}

// Report is the result of all checks.
type Report struct {
	Account, Region string
	Findings        []Finding
	LacksLogRole    bool // API Gateway has no role for its logs; deploy/account.yaml makes it
	StackExists     bool
}

// ErrRefused is the error of a preflight with a finding that refuses the deployment.
var ErrRefused = errors.New("the preflight refuses this deployment")

// Write prints a line for each check, and what to do under it.
func (r Report) Write(out io.Writer) error {
	refused := 0
	fmt.Fprintf(out, "preflight: account %s, region %s\n", r.Account, r.Region)
	for _, f := range r.Findings {
		state := "ok"
		switch {
		case f.Refuses:
			state = "REFUSED"
			refused++
		case f.Problem != "":
			state = "warning"
		}
		fmt.Fprintf(out, "  %-8s %s", state, f.Check)
		if f.Problem != "" {
			fmt.Fprintf(out, ": %s\n           %s", f.Problem, f.Action)
		}
		fmt.Fprintln(out)
	}
	if refused > 0 {
		return fmt.Errorf("%w: %d of %d checks failed", ErrRefused, refused, len(r.Findings))
	}
	return nil
}

// loadTimeout bounds the search for credentials, which may use the network.
const loadTimeout = 30 * time.Second

// Load reads the configuration of the AWS tools. region is for a configuration without one.
func Load(ctx context.Context, region string) (aws.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	var options []func(*config.LoadOptions) error
	if region != "" {
		options = append(options, config.WithDefaultRegion(region))
	}
	loaded, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return loaded, fmt.Errorf("the AWS configuration cannot be read, set AWS_PROFILE to one that exists: %w", err)
	}
	return loaded, nil
}

// Identify returns the account of the credentials and the configured region, each "" if it is not known.
func Identify(ctx context.Context) (account, region string) {
	loaded, err := Load(ctx, "")
	if err != nil {
		return "", ""
	}
	who, err := sts.NewFromConfig(loaded).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", loaded.Region
	}
	return aws.ToString(who.Account), loaded.Region
}

// checker has the clients and what the checks have learned so far.
type checker struct {
	Target
	now          time.Time
	gateway      *apigateway.Client
	certificates *acm.Client
	stacks       *cloudformation.Client
	keys         *kms.Client
	functions    *lambda.Client
	topics       *sns.Client

	effective map[string]string // the parameters as the stack will have them
	current   map[string]string // the parameters of the live stack
	live      bool              // the stack exists and has resources
	report    *Report
}

// Run makes all checks. After a failed check of the account or the region it makes no other one, because the others
// would look at the wrong place.
func Run(ctx context.Context, configuration aws.Config, target Target, now time.Time) Report {
	report := Report{Region: configuration.Region}
	account, findings := identity(ctx, configuration, target)
	report.Account, report.Findings = account, findings
	for _, f := range findings {
		if f.Refuses {
			return report
		}
	}
	c := &checker{
		Target: target, now: now, report: &report, gateway: apigateway.NewFromConfig(configuration),
		certificates: acm.NewFromConfig(configuration), stacks: cloudformation.NewFromConfig(configuration),
		keys: kms.NewFromConfig(configuration), functions: lambda.NewFromConfig(configuration),
		topics: sns.NewFromConfig(configuration),
	}
	c.Account, c.Region = account, configuration.Region
	for _, check := range []func(context.Context) []Finding{
		c.stack, c.ownData, c.concurrency, c.gatewayAccount, c.domains, c.topic, c.key, c.webACL,
	} {
		report.Findings = append(report.Findings, check(ctx)...)
	}
	return report
}

// identity checks the credentials, the account and the region.
func identity(ctx context.Context, configuration aws.Config, target Target) (account string, findings []Finding) {
	const credentials = "credentials"
	if configuration.Region == "" {
		return "", []Finding{{"region", "no AWS region is set", "set AWS_REGION, or region in the profile", true}}
	}
	who, err := sts.NewFromConfig(configuration).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", []Finding{{credentials, "AWS does not accept them: " + reason(err),
			"run aws sso login, or set AWS_PROFILE", true}}
	}
	account = aws.ToString(who.Account)
	findings = []Finding{{Check: credentials}, {Check: "account and region"}}
	if target.Account != "" && target.Account != account {
		findings[1] = Finding{"account", fmt.Sprintf("the credentials are of %s, the environment is in %s", account,
			target.Account), "set AWS_PROFILE to a profile of that account", true}
	}
	if target.Region != "" && target.Region != configuration.Region {
		findings[1] = Finding{"region", fmt.Sprintf("the configuration has %s, the environment is in %s",
			configuration.Region, target.Region), "set AWS_REGION=" + target.Region, true}
	}
	return account, findings
}

// unchecked is the finding of a check without a response of AWS.
func unchecked(check, right string, err error) []Finding {
	return []Finding{{Check: check, Problem: "not checked: " + reason(err), Action: "allow " + right +
		", or check it by " +
		"docs/deploy.md"}}
}

// reason returns what a service said, without the SDK's frame around it.
func reason(err error) string {
	if refused, isRefusal := errors.AsType[smithy.APIError](err); isRefusal {
		return refused.ErrorCode() + ": " + cmp.Or(refused.ErrorMessage(), "no message")
	}
	if err == nil {
		return "the response is empty"
	}
	return err.Error()
}

// isCode reports whether a service refused with a code.
func isCode(err error, code string) bool {
	refused, isRefusal := errors.AsType[smithy.APIError](err)
	return isRefusal && refused.ErrorCode() == code
}

// mergeParameters returns the parameters as the stack will have them: a value that is not sent stays.
func (c *checker) mergeParameters(live map[string]string) {
	c.current, c.effective = live, map[string]string{}
	maps.Copy(c.effective, c.Defaults)
	maps.Copy(c.effective, live)
	maps.Copy(c.effective, c.Given)
}
