// Package local runs the whole gateway on one machine, from the deployed template. It builds the functions' programs,
// starts the services that they call, onboards three demo merchants, and stops everything again. It never ships.
//
// The services are packages below this one; this package starts them in order and stops them in reverse order. The
// invariants: two runs never share a folder, and no process outlives its run.
package local

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mobilegateway/shared/settings"
	"mobilegateway/world/operators/sandbox"
	"mobilegateway/world/template"
)

// Config configures a run. Root and Dir are required.
type Config struct {
	// Root is the checkout: the folder of go.mod and template.yaml.
	Root string
	// Dir is the run's own folder, .local by default, with its data.
	Dir string
	// Port is the API's; the sandbox, the inbox and the console use the next three. 0: free ports for all.
	Port int
	// Speed divides every lifetime and schedule of the product, but no timeout. 0 is 1.
	Speed int
	// Reset deletes the data first.
	Reset bool
	// DynamoDB is the endpoint of a database to use; "" for the embedded one.
	DynamoDB string
	// EnvOverrides overrides variables of the functions.
	EnvOverrides map[string]string
	// FaultPlan is the sandbox's fault injection; none by default.
	FaultPlan sandbox.FaultSettings
	// Stubs starts a stub of each operator's platform, and routes the operators to them.
	Stubs bool
	// Freeze stops the functions' processes between events, as Lambda does.
	Freeze bool
	// RecordCalls records the functions' AWS calls, for tests.
	RecordCalls bool
	// Console makes the console for people; nil for a run without one.
	Console func(at ConsolePlace) (Console, error)
	// Out receives one line per request; nil discards them.
	Out io.Writer
}

// ConsolePlace is where a run serves its console, and what the console calls there.
type ConsolePlace struct{ Dir, Port, SandboxURL string }

// Console serves pages for people. Opening returns the path of a new address, which opens one session.
type Console interface {
	http.Handler
	Opening() string
}

// DefaultPort is the API's port if PORT is not set.
const DefaultPort = 3000

// maxSpeed is the largest SPEED that the functions accept.
const maxSpeed = 3600

// FromEnvironment reads a run's settings: PORT, SPEED, RESET, STANDINS, LOCAL_DIR, AWS_ENDPOINT_URL_DYNAMODB, and the
// sandbox's fault injection (SANDBOX_SEED and its rates). Every duration that the template gives a function can be set
// by its name too.
func FromEnvironment(lookup func(string) (string, bool), root string) (Config, error) {
	get := func(name string) string { value, _ := lookup(name); return value }
	port, err := readInteger(get, "PORT", DefaultPort, 0, 65533)
	if err != nil {
		return Config{}, err
	}
	speed, err := readInteger(get, "SPEED", 1, 1, maxSpeed)
	if err != nil {
		return Config{}, err
	}
	for _, name := range [...]string{"RESET", "STANDINS"} {
		if value := get(name); value != "" && value != "0" && value != "1" {
			return Config{}, fmt.Errorf("%s must be 1, 0 or not set", name)
		}
	}
	config := Config{
		Root: root, Dir: cmp.Or(get("LOCAL_DIR"), filepath.Join(root, ".local")), Port: port, Speed: speed,
		Reset: get("RESET") == "1", Stubs: get("STANDINS") == "1", DynamoDB: get("AWS_ENDPOINT_URL_DYNAMODB"),
	}
	if config.FaultPlan, err = sandbox.FaultSettingsFromEnvironment(lookup); err != nil {
		return Config{}, err
	}
	config.EnvOverrides, err = durationOverrides(lookup, root)
	return config, err
}

func readInteger(get func(string) string, name string, fallback, minimum, maximum int) (int, error) {
	text := get(name)
	if text == "" {
		return fallback, nil
	}
	value, err := strconv.Atoi(text)
	if err != nil || value < minimum || value > maximum {
		return 0, fmt.Errorf("%s must be a whole number from %d to %d", name, minimum, maximum)
	}
	return value, nil
}

func durationOverrides(lookup func(string) (string, bool), root string) (map[string]string, error) {
	deployed, err := loadTemplate(root, "", nil)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for _, f := range deployed.Functions {
		maps.Copy(known, f.Environment)
	}
	found := map[string]string{}
	for name, value := range known {
		if set, isSet := lookup(name); isSet && isDurationList(value) {
			found[name] = set
		}
	}
	return found, nil
}

func (c Config) withDefaults() (Config, error) {
	c.Speed = cmp.Or(c.Speed, 1)
	c.Out = cmp.Or(c.Out, io.Discard)
	for _, folder := range []*string{&c.Root, &c.Dir} {
		absolute, err := filepath.Abs(*folder)
		if err != nil {
			return c, err
		}
		*folder = absolute
	}
	return c, nil
}

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

// accountConcurrency makes the stream as parallel as a large account's is.
const accountConcurrency = "1000"

// Parameters returns the template's parameters that the local run sets.
func Parameters() map[string]string {
	return map[string]string{
		"Stage": "local", "ServiceId": serviceID, "ApplicationId": applicationID, "ContactId": contactID,
		"ThrottleRate": throttleRate, "ThrottleBurst": throttleBurst, "AccountConcurrency": accountConcurrency,
		"PackResponses": "yes", // no program from before reads a new run's tables
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
	if !r.config.Stubs { // the sandbox's failures must stay what the digits say, in any number
		environment[settings.AccountConcurrency] = ""
	}
	maps.Copy(environment, r.config.EnvOverrides)
	return environment
}
