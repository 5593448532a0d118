package settings

import "time"

// The names of the variables, as template.yaml sets them.
const (
	Stack                = "STACK"               // name of the deployed stack, a dimension of the metrics
	LedgerTable          = "LEDGER_TABLE"        // DynamoDB table of transactions
	MerchantTable        = "MERCHANT_TABLE"      // DynamoDB table of merchants
	LimitTable           = "LIMIT_TABLE"         // DynamoDB table of merchants' limits
	OperatorSecret       = "OPERATOR_SECRET"     // name or ARN of the operators' credentials
	TokenKeySecret       = "TOKEN_KEY_SECRET"    // name or ARN of the key ring of short-lived tokens
	CallbackKeySecret    = "CALLBACK_KEY_SECRET" // name or ARN of the key ring of callback URLs
	WebhookKeySecret     = "WEBHOOK_KEY_SECRET"  // name or ARN of the key ring of webhook secrets
	BaseURL              = "BASE_URL"            // {base_url}; may be empty (decision "base-url")
	CallbackBaseURL      = "CALLBACK_BASE_URL"   // base of the operators' callback addresses; empty: as BASE_URL
	ServiceID            = "SERVICE_ID"          // <SERVICE_ID_CONSTANT> (decision "constants")
	ApplicationID        = "APPLICATION_ID"      // <APPLICATION_ID_CONSTANT>
	ContactID            = "CONTACT_ID"          // <CONTACT_ID_CONSTANT>
	ProfileCache         = "PROFILE_CACHE"       // how long a merchant's profile is kept
	SecretCache          = "SECRET_CACHE"        // how long a secret is kept
	AccessTokenLife      = "ACCESS_TOKEN_LIFETIME"
	LookupTimeout        = "LOOKUP_TIMEOUT"            // longest wait for an answer to getStatus
	OperatorTimeout      = "OPERATOR_TIMEOUT"          // longest wait for an operator's answer
	PaymentLifetime      = "PAYMENT_LIFETIME"          // after this a pending payment may expire
	PollSchedule         = "POLL_SCHEDULE"             // waits between polls of getStatus; the last one repeats
	DeliverySchedule     = "DELIVERY_SCHEDULE"         // waits before each attempt to notify a merchant
	ClaimRecheck         = "CLAIM_RECHECK"             // wait before an unconfirmed claim is looked up again
	SilentRecheck        = "SILENT_RECHECK"            // wait before a payment past its lifetime is looked up again
	SMSRetention         = "SMS_RETENTION"             // how long SMS entries are kept
	RecordRetention      = "RECORD_RETENTION"          // how long charges and payments are kept; 0s: for ever
	WebhookTimeout       = "WEBHOOK_TIMEOUT"           // longest wait for a merchant's answer
	SweepInterval        = "SWEEP_INTERVAL"            // time between two sweeps
	WarmConnections      = "WARM_CONNECTIONS"          // false: connections are opened by the first request, for measuring
	AllowLoopback        = "ALLOW_LOOPBACK"            // see Environment.Loopback
	Speed                = "SPEED"                     // divisor of durations in the local run
	executionEnvironment = "AWS_EXECUTION_ENV"         // set by Lambda for most runtimes, never by the local run
	endpointOfDynamoDB   = "AWS_ENDPOINT_URL_DYNAMODB" // set wherever DynamoDB is not AWS's
	endpointOfAll        = "AWS_ENDPOINT_URL"
)

// variable is what the table knows of a variable besides its name.
type variable struct {
	// fallback is the default as it would be written.
	fallback string
	// least and most are the limits of a duration before SPEED; a most of 0 is no limit.
	least, most time.Duration
	// zero allows 0s although least is more.
	zero bool
}

const day = 24 * time.Hour

// variables holds the defaults and limits. A variable without a row has the default "" and no limits. It is never
// changed.
var variables = map[string]variable{
	ProfileCache:     {fallback: "30s", most: time.Minute}, // a revocation holds everywhere within 60 s
	SecretCache:      {fallback: "5m", least: time.Second, most: time.Hour},
	AccessTokenLife:  {fallback: "1h", least: time.Minute, most: day},
	OperatorTimeout:  {fallback: "12s", least: time.Second, most: 20 * time.Second},
	LookupTimeout:    {fallback: "5s", least: time.Second, most: 15 * time.Second},
	PaymentLifetime:  {fallback: "24h", least: time.Minute, most: 30 * day},
	PollSchedule:     {fallback: "1m,2m,5m,15m,30m,1h", least: time.Second, most: day},
	DeliverySchedule: {fallback: "0s,5s,5m,30m,2h,5h,10h,14h,20h,24h", most: 7 * day},
	ClaimRecheck:     {fallback: "5s", least: time.Second, most: time.Hour},
	SilentRecheck:    {fallback: "1h", least: time.Second, most: day},
	SMSRetention:     {fallback: "2160h", least: time.Hour},
	RecordRetention:  {fallback: "0s", least: 400 * day, zero: true}, // decision "retention"
	WebhookTimeout:   {fallback: "15s", least: time.Second, most: 15 * time.Second},
	WarmConnections:  {fallback: "true"},
	SweepInterval:    {fallback: "1m", least: time.Second, most: time.Hour},
}
