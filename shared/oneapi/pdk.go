package oneapi

import "slices"

// PDKCode is a row of the specification's table of SMS internal error codes (specification, Errors).
type PDKCode struct {
	Code        string // PDK_SMSW_nnnn
	Description string
	MessageID   string // the code on the wire
}

// The internal codes that Render puts into SVC0001.
const (
	codeInternal         = "PDK_SMSW_0001"
	codeIntegration      = "PDK_SMSW_0002"
	codeUnresponsive     = "PDK_SMSW_0011"
	codePlatformDown     = "PDK_SMSW_0013"
	codePlatformInternal = "PDK_SMSW_3000"
)

// codeDailyLimit is ours. Like the specification's codes of POL0001, it is a text, not a number (decision
// "merchant-limits").
const codeDailyLimit = "Daily amount limit exceeded"

// pdkCodes are in the specification's order.
var pdkCodes = []PDKCode{
	{codeInternal, "Internal error", "SVC0001"},
	{codeIntegration, "Integration error", "SVC0001"},
	{"PDK_SMSW_0003", "Unavailable country", "SVC0004"},
	{"PDK_SMSW_0004", "Duplicate client correlator", "SVC0005"},
	{"PDK_SMSW_0005", "Missing input value", "SVC0002"},
	{"PDK_SMSW_0006", "Invalid sender address", "SVC0004"},
	{"PDK_SMSW_0007", "Invalid recipient address", "SVC0004"},
	{"PDK_SMSW_0008", "Message too long", "SVC0280"},
	{"PDK_SMSW_0009", "Invalid input value", "SVC0002"},
	{codeUnresponsive, "Backend API is unresponsive", "SVC0001"},
	{codePlatformDown, "Service delivery platform is unresponsive", "SVC0001"},
	{"PDK_SMSW_1000", "Backend API internal error", "SVC0001"},
	{"PDK_SMSW_1001", "Resource consumption failure: not authorized", "POL0001"}, // not enough credit
	{"PDK_SMSW_1002", "Resource consumption failure: invalid parameter", "POL0001"},
	{"PDK_SMSW_1003", "Resource consumption failure: not authorized", "POL0001"}, // expired contract
	{"PDK_SMSW_1004", "Resource consumption failure: unknown transaction ID", "SVC0001"},
	{codePlatformInternal, "Service delivery platform internal error", "SVC0001"},
	{"PDK_SMSW_3001", "Service delivery platform SLA error", "SVC0001"},
}

// PDKCodes returns a copy of the specification's table of internal codes, all 18 rows in its order.
func PDKCodes() []PDKCode { return slices.Clone(pdkCodes) }
