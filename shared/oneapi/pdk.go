package oneapi

import "slices"

// PDKCode is a row of the specification's table of SMS internal error codes (specification, Errors).
type PDKCode struct {
	// Code is the internal code, PDK_SMSW_nnnn.
	Code string
	// Description is the specification's.
	Description string
	// MessageID is the mapped code.
	MessageID string
	// Variable is %1: a code or a text as it is, or the name of a value of the request.
	Variable string
}

// The internal codes that Render puts into SVC0001.
const (
	codeInternal         = "PDK_SMSW_0001"
	codeIntegration      = "PDK_SMSW_0002"
	codeUnresponsive     = "PDK_SMSW_0011"
	codePlatformDown     = "PDK_SMSW_0013"
	codePlatformInternal = "PDK_SMSW_3000"
	noContract           = "No contract found for the given country / service / contact"
	consumptionForbidden = "Resource consumption failure: not authorized"

	// codeDailyLimit is ours. Like the specification's three of POL0001, it is a text, not a number (decision
	// "merchant-limits").
	codeDailyLimit = "Daily amount limit exceeded"
)

// pdkCodes are in the specification's order. For a missing or invalid part there is no value to show (decision
// "error-table"). %2 of a duplicate is the message part.
var pdkCodes = []PDKCode{
	{codeInternal, "Internal error", "SVC0001", codeInternal},
	{codeIntegration, "Integration error", "SVC0001", codeIntegration},
	{"PDK_SMSW_0003", "Unavailable country", "SVC0004", "senderAddress value"},
	{"PDK_SMSW_0004", "Duplicate client correlator", "SVC0005", "clientCorrelator value"},
	{"PDK_SMSW_0005", "Missing input value", "SVC0002", "message part"},
	{"PDK_SMSW_0006", "Invalid sender address", "SVC0004", "senderAddress value"},
	{"PDK_SMSW_0007", "Invalid recipient address", "SVC0004", "address value"},
	{"PDK_SMSW_0008", "Message too long", "SVC0280", "maximum message length"},
	{"PDK_SMSW_0009", "Invalid input value", "SVC0002", "message part"},
	{codeUnresponsive, "Backend API is unresponsive", "SVC0001", codeUnresponsive},
	{codePlatformDown, "Service delivery platform is unresponsive", "SVC0001", codePlatformDown},
	{"PDK_SMSW_1000", "Backend API internal error", "SVC0001", "PDK_SMSW_1000"},
	{"PDK_SMSW_1001", consumptionForbidden, "POL0001", "Not enough credit"},
	{"PDK_SMSW_1002", "Resource consumption failure: invalid parameter", "POL0001", noContract},
	{"PDK_SMSW_1003", consumptionForbidden, "POL0001", "Expired contract"},
	{"PDK_SMSW_1004", "Resource consumption failure: unknown transaction ID", "SVC0001", "PDK_SMSW_1004"},
	{codePlatformInternal, "Service delivery platform internal error", "SVC0001", codePlatformInternal},
	{"PDK_SMSW_3001", "Service delivery platform SLA error", "SVC0001", "PDK_SMSW_3001"},
}

// PDKCodes returns a copy of the specification's table of internal codes, all 18 rows in its order.
func PDKCodes() []PDKCode { return slices.Clone(pdkCodes) }
