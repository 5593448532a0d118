package preflight

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigateway"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// concurrency compares Lambda's quota with the parameter that selects the reservations.
func (c *checker) concurrency(ctx context.Context) []Finding {
	const check = "concurrency of Lambda"
	wanted, err := strconv.Atoi(c.effective["AccountConcurrency"])
	if err != nil {
		return []Finding{{check, "AccountConcurrency is not a number", "set it in samconfig.toml", true}}
	}
	settings, err := c.functions.GetAccountSettings(ctx, &lambda.GetAccountSettingsInput{})
	if err != nil || settings.AccountLimit == nil {
		return unchecked(check, "lambda:GetAccountSettings", err)
	}
	if quota := int(settings.AccountLimit.ConcurrentExecutions); quota < wanted {
		return []Finding{{check, fmt.Sprintf("the account has %d in %s, and AccountConcurrency is %d", quota,
			c.Region, wanted),
			"request Lambda's quota \"Concurrent executions\", or lower AccountConcurrency (docs/scale.md)", true}}
	}
	return []Finding{{Check: check}}
}

// gatewayAccount compares API Gateway's quota in the region with the throttle of a route, and looks for the role of its
// logs. Some regions have 2,500 requests a second, not 10,000.
func (c *checker) gatewayAccount(ctx context.Context) []Finding {
	const quota, role = "requests of API Gateway", "log role of API Gateway"
	account, err := c.gateway.GetAccount(ctx, &apigateway.GetAccountInput{})
	if err != nil {
		return append(unchecked(quota, "apigateway:GET on /account", err), unchecked(role,
			"apigateway:GET on /account", err)...)
	}
	findings := []Finding{{Check: quota}, {Check: role}}
	if limits := account.ThrottleSettings; limits != nil {
		for _, limit := range []struct {
			parameter string
			most      float64
		}{{"ThrottleRate", limits.RateLimit}, {"ThrottleBurst", float64(limits.BurstLimit)}} {
			wanted, err := strconv.ParseFloat(c.effective[limit.parameter], 64)
			if err == nil && wanted > limit.most {
				findings[0] = Finding{quota, fmt.Sprintf("%s is %g, and the account has %g in %s for all its APIs",
					limit.parameter, wanted, limit.most, c.Region),
					"request API Gateway's quota \"Throttle rate\", or lower " +
						limit.parameter, true}
			}
		}
	}
	if aws.ToString(account.CloudwatchRoleArn) == "" {
		c.report.LacksLogRole = true
		findings[1] = Finding{Check: role, Problem: "API Gateway has none in " + c.Region,
			Action: "make deploy makes it by deploy/account.yaml, before the stack"}
	}
	return findings
}
