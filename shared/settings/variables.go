package settings

import "time"

// The names of the variables, as template.yaml sets them.
const (
	StackName                 = "STACK"                       // name of the deployed stack, a dimension of the metrics
	LedgerTable               = "LEDGER_TABLE"                // DynamoDB table of transactions
	MerchantTable             = "MERCHANT_TABLE"              // DynamoDB table of merchants
	LimitTable                = "LIMIT_TABLE"                 // DynamoDB table of merchants' limits
	OperatorCredentialsSecret = "OPERATOR_CREDENTIALS_SECRET" // name or ARN of the operators' credentials
	TokenKeySecret            = "TOKEN_KEY_SECRET"            // name or ARN of the key ring of short-lived tokens
	CallbackKeySecret         = "CALLBACK_KEY_SECRET"         // name or ARN of the key ring of callback URLs
	WebhookKeySecret          = "WEBHOOK_KEY_SECRET"          // name or ARN of the key ring of webhook secrets
	BaseURL                   = "BASE_URL"                    // {base_url}; may be empty (decision "base-url")
	CallbackBaseURL           = "CALLBACK_BASE_URL"           // base of the operators' callback addresses; empty: as BASE_URL
	ServiceID                 = "SERVICE_ID"                  // <SERVICE_ID_CONSTANT> (decision "constants")
	ApplicationID             = "APPLICATION_ID"              // <APPLICATION_ID_CONSTANT>
	ContactID                 = "CONTACT_ID"                  // <CONTACT_ID_CONSTANT>
	ProfileCacheTTL           = "PROFILE_CACHE_TTL"           // how long a merchant's profile is kept
	SecretCacheTTL            = "SECRET_CACHE_TTL"            // how long a secret is kept
	AccessTokenLifetime       = "ACCESS_TOKEN_LIFETIME"
	LookupTimeout             = "LOOKUP_TIMEOUT"                   // longest wait for an answer to getStatus
	OperatorTimeout           = "OPERATOR_TIMEOUT"                 // longest wait for an operator's answer
	PaymentLifetime           = "PAYMENT_LIFETIME"                 // after this a pending payment may expire
	PollSchedule              = "POLL_SCHEDULE"                    // waits between polls of getStatus; the last one repeats
	DeliverySchedule          = "DELIVERY_SCHEDULE"                // waits before each attempt to notify a merchant
	ClaimRecheckInterval      = "CLAIM_RECHECK_INTERVAL"           // wait before an unconfirmed claim is looked up again
	OverduePaymentRecheck     = "OVERDUE_PAYMENT_RECHECK_INTERVAL" // wait before a payment past its lifetime is looked up again
	SMSRetention              = "SMS_RETENTION"                    // how long SMS entries are kept
	TransactionRetention      = "TRANSACTION_RETENTION"            // how long charges and payments are kept; 0s: for ever
	WebhookTimeout            = "WEBHOOK_TIMEOUT"                  // longest wait for a merchant's answer
	SweepInterval             = "SWEEP_INTERVAL"                   // time between two sweeps
	WarmConnections           = "WARM_CONNECTIONS"                 // false: connections are opened by the first request, for measuring
	AllowLoopback             = "ALLOW_LOOPBACK"                   // see Environment.Loopback
	Speed                     = "SPEED"                            // divisor of durations in the local run
	executionEnvironment      = "AWS_EXECUTION_ENV"                // set by Lambda for most runtimes, never by the local run
	dynamoDBEndpoint          = "AWS_ENDPOINT_URL_DYNAMODB"        // set wherever DynamoDB is not AWS's
	defaultEndpoint           = "AWS_ENDPOINT_URL"
)

// definition is what the table knows of a variable besides its name.
type definition struct {
	// defaultValue is the default as it would be written.
	defaultValue string
	// minimum and most are the limits of a duration before SPEED; a most of 0 is no limit.
	minimum, maximum time.Duration
	// allowsZero allows 0s although least is more.
	allowsZero bool
}

const day = 24 * time.Hour

// definitions holds the defaults and limits. A variable without a row has the default "" and no limits. It is never
// changed.
var definitions = map[string]definition{
	ProfileCacheTTL:       {defaultValue: "30s", maximum: time.Minute}, // a revocation holds everywhere within 60 s
	SecretCacheTTL:        {defaultValue: "5m", minimum: time.Second, maximum: time.Hour},
	AccessTokenLifetime:   {defaultValue: "1h", minimum: time.Minute, maximum: day},
	OperatorTimeout:       {defaultValue: "12s", minimum: time.Second, maximum: 20 * time.Second},
	LookupTimeout:         {defaultValue: "5s", minimum: time.Second, maximum: 15 * time.Second},
	PaymentLifetime:       {defaultValue: "24h", minimum: time.Minute, maximum: 30 * day},
	PollSchedule:          {defaultValue: "1m,2m,5m,15m,30m,1h", minimum: time.Second, maximum: day},
	DeliverySchedule:      {defaultValue: "0s,5s,5m,30m,2h,5h,10h,14h,20h,24h", maximum: 7 * day},
	ClaimRecheckInterval:  {defaultValue: "5s", minimum: time.Second, maximum: time.Hour},
	OverduePaymentRecheck: {defaultValue: "1h", minimum: time.Second, maximum: day},
	SMSRetention:          {defaultValue: "2160h", minimum: time.Hour},
	TransactionRetention:  {defaultValue: "0s", minimum: 400 * day, allowsZero: true}, // decision "retention"
	WebhookTimeout:        {defaultValue: "15s", minimum: time.Second, maximum: 15 * time.Second},
	WarmConnections:       {defaultValue: "true"},
	SweepInterval:         {defaultValue: "1m", minimum: time.Second, maximum: time.Hour},
}
