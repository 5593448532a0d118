package local

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mobilegateway/internal/template"
)

// region is what the functions are told; nothing is there.
const region = "us-east-1"

// The constants of the specification as the local run has them (decision "constants").
const (
	serviceID     = "LOCAL_SERVICE"
	applicationID = "LOCAL_APPLICATION"
	contactID     = "LOCAL_CONTACT"
)

// localThrottle is high: one machine is slower than that.
const (
	throttleRate  = "10000"
	throttleBurst = "5000"
)

// Parameters are the template's parameters as the local run has them, where the default does not hold.
func Parameters() map[string]string {
	return map[string]string{
		"Stage": "local", "ServiceId": serviceID, "ApplicationId": applicationID, "ContactId": contactID,
		"ThrottleRate": throttleRate, "ThrottleBurst": throttleBurst,
	}
}

// loadTemplate reads the checkout's template with the local run's parameters.
func loadTemplate(root, tablePrefix string, parameters map[string]string) (*template.Template, error) {
	all := Parameters()
	maps.Copy(all, parameters)
	return template.Load(filepath.Join(root, "template.yaml"), template.Options{
		StackName: "local", Region: region, Parameters: all, TablePrefix: tablePrefix,
	})
}

// isDurationList tells whether a value is a duration or a list of them.
func isDurationList(value string) bool {
	for item := range strings.SplitSeq(value, ",") {
		if _, err := time.ParseDuration(strings.TrimSpace(item)); err != nil {
			return false
		}
	}
	return true
}

// awsCredentials are what local requests to AWS services are signed with. Each folder has a key of its own, for engines
// that keep data apart by key.
func awsCredentials(dir string) (accessKey, secretKey string) {
	sum := sha256.Sum256([]byte(dir))
	return "LOCAL" + strings.ToUpper(hex.EncodeToString(sum[:6])), "local"
}

// functionAccessKey is the access key of one function, by which the recorder knows it: letters and digits alone, which some
// engines ask for.
func functionAccessKey(dir, logicalID string) string {
	accessKey, _ := awsCredentials(dir)
	return accessKey + strings.ToUpper(logicalID)
}

// tablePrefix keeps the tables of several runs over one engine apart. The embedded engine serves one run alone.
func (c Config) tablePrefix() string {
	if c.DynamoDB == "" {
		return ""
	}
	accessKey, _ := awsCredentials(c.Dir)
	return accessKey + "-"
}

// awsEnvironment is what a process needs to reach the local services as if they were AWS.
func (r *Gateway) awsEnvironment() map[string]string {
	accessKey, secretKey := awsCredentials(r.config.Dir)
	return map[string]string{
		"AWS_REGION": region, "AWS_DEFAULT_REGION": region,
		"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey,
		"AWS_ENDPOINT_URL_DYNAMODB":        r.dynamoProxyURL,
		"AWS_ENDPOINT_URL_SECRETS_MANAGER": r.secretsURL,
	}
}

// functionEnvironment is a function's whole environment: the template's, what makes it local, and the run's overrides.
func (r *Gateway) functionEnvironment(f template.Function) map[string]string {
	environment := maps.Clone(f.Environment)
	maps.Copy(environment, r.awsEnvironment())
	environment["AWS_ACCESS_KEY_ID"] = functionAccessKey(r.config.Dir, f.LogicalID)
	environment["ALLOW_LOOPBACK"] = "true"
	environment["SPEED"] = strconv.Itoa(r.config.Speed)
	maps.Copy(environment, r.config.EnvOverrides)
	return environment
}
