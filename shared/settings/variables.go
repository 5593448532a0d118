package settings

import "time"

// The names of the variables, as template.yaml sets them.
const (
	StackName                 = "STACK"                       // name of the deployed stack, a dimension of the metrics
	LedgerTable               = "LEDGER_TABLE"                // DynamoDB table of transactions
	MerchantTable             = "MERCHANT_TABLE"              // DynamoDB table of merchants
	LimitTable                = "LIMIT_TABLE"                 // DynamoDB table of merchants' limits
	OperatorCredentialsSecret = "OPERATOR_CREDENTIALS_SECRET" // name or ARN of the operators' credentials
	TokenKeySecret            = "TOKEN_KEY_SECRET"            // name or ARN of the private ring of short-lived tokens
	TokenPublicKeySecret      = "TOKEN_PUBLIC_KEY_SECRET"     // name or ARN of the public ring of short-lived tokens
	CallbackKeySecret         = "CALLBACK_KEY_SECRET"         // name or ARN of the key ring of callback URLs
	WebhookKeySecret          = "WEBHOOK_KEY_SECRET"          // name or ARN of the key ring of webhook secrets
	BaseURL                   = "BASE_URL"                    // {base_url}; may be empty (decision "base-url")
	CallbackBaseURL           = "CALLBACK_BASE_URL"           // base of callback addresses; empty: as BASE_URL
	ServiceID                 = "SERVICE_ID"                  // <SERVICE_ID_CONSTANT> (decision "constants")
	ApplicationID             = "APPLICATION_ID"              // <APPLICATION_ID_CONSTANT>
	ContactID                 = "CONTACT_ID"                  // <CONTACT_ID_CONSTANT>
	ProfileCacheTTL           = "PROFILE_CACHE_TTL"           // TTL of a cached merchant profile
	SecretCacheTTL            = "SECRET_CACHE_TTL"            // TTL of a cached secret
	AccessTokenLifetime       = "ACCESS_TOKEN_LIFETIME"
	LookupTimeout             = "LOOKUP_TIMEOUT"                   // longest wait for a response to getStatus
	OperatorTimeout           = "OPERATOR_TIMEOUT"                 // longest wait for an operator's response
	PaymentLifetime           = "PAYMENT_LIFETIME"                 // a pending payment may expire after it
	PollSchedule              = "POLL_SCHEDULE"                    // waits between lookups; the last one repeats
	DeliverySchedule          = "DELIVERY_SCHEDULE"                // waits before each attempt to notify a merchant
	ClaimRecheckInterval      = "CLAIM_RECHECK_INTERVAL"           // wait before an unconfirmed claim is looked up
	OverduePaymentRecheck     = "OVERDUE_PAYMENT_RECHECK_INTERVAL" // wait between lookups of an overdue payment
	SMSRetention              = "SMS_RETENTION"                    // retention of SMS entries
	TransactionRetention      = "TRANSACTION_RETENTION"            // retention of charges and payments; 0s: no limit
	WebhookTimeout            = "WEBHOOK_TIMEOUT"                  // longest wait for a merchant's response
	SweepInterval             = "SWEEP_INTERVAL"                   // time between two sweeps
	WarmConnections           = "WARM_CONNECTIONS"                 // false is only for measurements
	AllowLoopback             = "ALLOW_LOOPBACK"                   // see Environment.LoopbackAllowed
	AccountConcurrency        = "ACCOUNT_CONCURRENCY"              // of the AWS account; empty: no circuit breaker
	OperatorShare             = "OPERATOR_SHARE"                   // of AccountConcurrency for slow calls, in percent
	PackResponses             = "PACK_RESPONSES"                   // true stores responses in their short form
	Speed                     = "SPEED"                            // divisor of durations in the local run
	executionEnvironment      = "AWS_EXECUTION_ENV"                // set by Lambda, never by the local run
	dynamoDBEndpoint          = "AWS_ENDPOINT_URL_DYNAMODB"        // set if DynamoDB is not AWS's own
	defaultEndpoint           = "AWS_ENDPOINT_URL"
)

// definition has the default and the limits of a variable.
type definition struct {
	name string
	// defaultValue is the default, as written in the environment.
	defaultValue string
	// minimum and maximum are the limits of a duration before SPEED; a maximum of 0 means no limit.
	minimum, maximum time.Duration
	// allowsZero allows 0s in spite of minimum.
	allowsZero bool
}

const day = 24 * time.Hour

// definitions has the defaults and limits. It is never changed. It is a list because the linker can prepare one: a map
// would be made at each start.
var definitions = []definition{
	{name: ProfileCacheTTL, defaultValue: "30s", maximum: time.Minute}, // a revocation must take effect within 60 s
	// A new key signs after it, at least after keyring.SigningDelay.
	{name: SecretCacheTTL, defaultValue: "5m", minimum: time.Minute, maximum: time.Hour},
	{name: AccessTokenLifetime, defaultValue: "1h", minimum: time.Minute, maximum: day},
	{name: OperatorTimeout, defaultValue: "12s", minimum: time.Second, maximum: 20 * time.Second},
	{name: LookupTimeout, defaultValue: "5s", minimum: time.Second, maximum: 15 * time.Second},
	{name: PaymentLifetime, defaultValue: "24h", minimum: time.Minute, maximum: 30 * day},
	{name: PollSchedule, defaultValue: "1m,2m,5m,15m,30m,1h", minimum: time.Second, maximum: day},
	{name: DeliverySchedule, defaultValue: "0s,5s,5m,30m,2h,5h,10h,14h,20h,24h", maximum: 7 * day},
	{name: ClaimRecheckInterval, defaultValue: "5s", minimum: time.Second, maximum: time.Hour},
	{name: OverduePaymentRecheck, defaultValue: "1h", minimum: time.Second, maximum: day},
	{name: SMSRetention, defaultValue: "2160h", minimum: time.Hour},
	{name: TransactionRetention, defaultValue: "0s", minimum: 400 * day, allowsZero: true}, // decision "retention"
	{name: WebhookTimeout, defaultValue: "15s", minimum: time.Second, maximum: 15 * time.Second},
	{name: WarmConnections, defaultValue: "true"},
	{name: OperatorShare, defaultValue: "40"},
	{name: SweepInterval, defaultValue: "1m", minimum: time.Second, maximum: time.Hour},
}

// definitionOf returns the row of a variable. One without a row has the default "" and no limits.
func definitionOf(name string) definition {
	for _, d := range definitions {
		if d.name == name {
			return d
		}
	}
	return definition{}
}
