package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
)

// alarms is the service that sends alarms to a topic.
const alarms = "cloudwatch.amazonaws.com"

// topic checks that alarms reach the topic: its place, its policy, and the policy of its key.
func (c *checker) topic(ctx context.Context) []Finding {
	const check = "AlarmTopicArn"
	arn := c.effective[check]
	if arn == "" {
		return nil // the deployment warns about it
	}
	refuse := func(problem, action string) []Finding { return []Finding{{check, problem, action, true}} }
	if problem := c.elsewhere(arn); problem != "" {
		return refuse(problem, "create a topic in "+c.Region)
	}
	found, err := c.topics.GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: aws.String(arn)})
	if isCode(err, "NotFound") || isCode(err, "NotFoundException") {
		return refuse("there is no topic "+arn, "aws sns create-topic --name "+arn[strings.LastIndex(arn, ":")+1:])
	}
	if err != nil {
		return unchecked(check, "sns:GetTopicAttributes", err)
	}
	if !allows(found.Attributes["Policy"], c.Account, alarms, "sns:Publish") {
		return refuse("the topic's policy does not let "+alarms+" publish",
			"add a statement with that service, sns:Publish, and aws:SourceAccount "+c.Account)
	}
	key := found.Attributes["KmsMasterKeyId"]
	if key == "" {
		return []Finding{{Check: check}}
	}
	if strings.HasSuffix(key, "alias/aws/sns") {
		return refuse("the topic has AWS's own key, which alarms cannot use", "give the topic a key of your own")
	}
	policy, err := c.keyPolicy(ctx, key)
	if err != nil {
		return unchecked(check, "kms:GetKeyPolicy on the topic's key", err)
	}
	if !allows(policy, c.Account, alarms, "kms:Decrypt", "kms:GenerateDataKey") {
		return refuse("the policy of the topic's key does not let "+alarms+" use it",
			"allow that service kms:Decrypt and kms:GenerateDataKey*")
	}
	return []Finding{{Check: check}}
}

// key checks the customer key: its place, its state, and that CloudWatch Logs may use it.
func (c *checker) key(ctx context.Context) []Finding {
	const check = "KmsKeyArn"
	arn := c.effective[check]
	if arn == "" {
		return nil
	}
	refuse := func(problem, action string) []Finding { return []Finding{{check, problem, action, true}} }
	if problem := c.elsewhere(arn); problem != "" {
		return refuse(problem, "create a key in "+c.Region)
	}
	found, err := c.keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: aws.String(arn)})
	if isCode(err, "NotFoundException") {
		return refuse("there is no key "+arn, "copy the ARN from KMS in "+c.Region)
	}
	if err != nil || found.KeyMetadata == nil {
		return unchecked(check, "kms:DescribeKey", err)
	}
	if found.KeyMetadata.KeyState != kmstypes.KeyStateEnabled ||
		found.KeyMetadata.KeySpec != kmstypes.KeySpecSymmetricDefault {
		return refuse(fmt.Sprintf("the key is %s and %s", found.KeyMetadata.KeyState, found.KeyMetadata.KeySpec),
			"use a symmetric key that is enabled")
	}
	policy, err := c.keyPolicy(ctx, arn)
	if err != nil {
		return unchecked(check, "kms:GetKeyPolicy", err)
	}
	service := "logs." + c.Region + ".amazonaws.com"
	if !allows(policy, c.Account, service, "kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey") {
		return refuse("the key's policy does not let "+service+" use it", "add this statement: "+c.logsStatement())
	}
	return []Finding{{Check: check}}
}

// logsStatement is the statement of a key's policy that lets CloudWatch Logs use it for the stack's log groups.
func (c *checker) logsStatement() string {
	return fmt.Sprintf(`{"Effect": "Allow", "Principal": {"Service": "logs.%[1]s.amazonaws.com"}, "Resource": "*", `+
		`"Action": ["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"], `+
		`"Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": `+
		`"arn:aws:logs:%[1]s:%[2]s:log-group:/%[3]s/*"}}}`, c.Region, c.Account, c.Stack)
}

func (c *checker) keyPolicy(ctx context.Context, key string) (string, error) {
	found, err := c.keys.GetKeyPolicy(ctx, &kms.GetKeyPolicyInput{KeyId: aws.String(key),
		PolicyName: aws.String("default")})
	if err != nil {
		return "", err
	}
	return aws.ToString(found.Policy), nil
}

// oneOrMore is a text or a list of texts in a policy.
type oneOrMore []string

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMore) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(o))
}

// principals are those of a statement: "*", or lists by their kind.
type principals struct {
	all    bool
	byKind map[string]oneOrMore
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *principals) UnmarshalJSON(text []byte) error {
	if string(text) == `"*"` {
		p.all = true
		return nil
	}
	return json.Unmarshal(text, &p.byKind)
}

type policyStatement struct {
	Effect    string
	Principal principals
	Action    oneOrMore
	Condition map[string]map[string]oneOrMore
}

// allows reports whether statements of a resource's policy allow a service each of the actions for an account, and none
// forbids one. Conditions other than those of the account are taken as met: they name what CloudFormation will make.
func allows(policy, account, service string, actions ...string) bool {
	var document struct{ Statement []policyStatement }
	if json.Unmarshal([]byte(policy), &document) != nil {
		return false
	}
	for _, action := range actions {
		allowed := false
		for _, statement := range document.Statement {
			if !statement.matches(account, service, action) {
				continue
			}
			if statement.Effect == "Deny" {
				return false
			}
			allowed = allowed || statement.Effect == "Allow"
		}
		if !allowed {
			return false
		}
	}
	return true
}

func (s policyStatement) matches(account, service, action string) bool {
	isFor := s.Principal.all
	for kind, names := range s.Principal.byKind {
		for _, name := range names {
			isFor = isFor || kind == "Service" && name == service || kind == "AWS" && name == "*"
		}
	}
	covered := false
	for _, pattern := range s.Action {
		match, err := path.Match(strings.ToLower(pattern), strings.ToLower(action))
		covered = covered || err == nil && match
	}
	for _, conditions := range s.Condition {
		for key, values := range conditions {
			named := strings.EqualFold(key, "aws:SourceAccount") || strings.EqualFold(key, "aws:SourceOwner") ||
				strings.EqualFold(key, "kms:CallerAccount")
			if named && !strings.Contains(strings.Join(values, " "), account) {
				return false
			}
		}
	}
	return isFor && covered
}
