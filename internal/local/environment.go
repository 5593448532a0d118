package local

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mobilegateway/internal/template"
)

// region is the AWS region of the functions' environment. No call goes there.
const region = "us-east-1"

// The local run's values of the specification's constants (decision "constants").
const (
	serviceID     = "LOCAL_SERVICE"
	applicationID = "LOCAL_APPLICATION"
	contactID     = "LOCAL_CONTACT"
)

// The stage's throttle is higher than one machine's rate.
const (
	throttleRate  = "10000"
	throttleBurst = "5000"
)

// Parameters returns the template's parameters that the local run sets.
func Parameters() map[string]string {
	return map[string]string{
		"Stage": "local", "ServiceId": serviceID, "ApplicationId": applicationID, "ContactId": contactID,
		"ThrottleRate": throttleRate, "ThrottleBurst": throttleBurst,
	}
}

func loadTemplate(root, tablePrefix string, parameters map[string]string) (*template.Template, error) {
	all := Parameters()
	maps.Copy(all, parameters)
	return template.Load(filepath.Join(root, "template.yaml"), template.Options{
		StackName: "local", Region: region, Parameters: all, TablePrefix: tablePrefix,
	})
}

func isDurationList(value string) bool {
	for item := range strings.SplitSeq(value, ",") {
		if _, err := time.ParseDuration(strings.TrimSpace(item)); err != nil {
			return false
		}
	}
	return true
}

// accessKey returns the access key for local calls of AWS services. Each folder has its own, because some databases
// separate data by access key.
func accessKey(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return fmt.Sprintf("LOCAL%X", sum[:6])
}

// databaseSecretKey signs the run's own calls of the database, which does not check signatures.
const databaseSecretKey = "local"

// functionAccessKey is a function's own access key; a recorder identifies the function by it. Some databases accept
// only letters and digits.
func (r *Gateway) functionAccessKey(logicalID string) string {
	return accessKey(r.config.Dir) + strings.ToUpper(logicalID)
}

// tablePrefix separates the tables of several runs in one database. The embedded database serves only one run.
func (c Config) tablePrefix() string {
	if c.DynamoDB == "" {
		return ""
	}
	return accessKey(c.Dir) + "-"
}

// awsEnvironment returns the variables with which a process reaches the local services instead of AWS.
func (r *Gateway) awsEnvironment() map[string]string {
	return map[string]string{
		"AWS_REGION": region, "AWS_DEFAULT_REGION": region,
		"AWS_ACCESS_KEY_ID": accessKey(r.config.Dir), "AWS_SECRET_ACCESS_KEY": r.secretKey,
		"AWS_ENDPOINT_URL_DYNAMODB":        listenerURL(r.listeners.dynamoProxy),
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": listenerURL(r.listeners.secrets),
	}
}

// functionEnvironment returns a function's environment: the template's, the local services, and the run's overrides.
func (r *Gateway) functionEnvironment(f template.Function) map[string]string {
	environment := maps.Clone(f.Environment)
	maps.Copy(environment, r.awsEnvironment())
	if r.recorder != nil {
		environment["AWS_ACCESS_KEY_ID"] = r.functionAccessKey(f.LogicalID)
	}
	environment["ALLOW_LOOPBACK"] = "true"
	environment["SPEED"] = strconv.Itoa(r.config.Speed)
	maps.Copy(environment, r.config.EnvOverrides)
	return environment
}
