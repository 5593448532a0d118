package oneapi

import "slices"

// VariableSource is the source of an internal code's %1.
type VariableSource int

// The sources, in the specification's words.
const (
	FromCode          VariableSource = iota // the internal code itself
	FromSenderAddress                       // senderAddress value
	FromRecipient                           // address value
	FromCorrelator                          // clientCorrelator value; %2 is the message part
	FromPartName                            // the message part (decision "error-table": there is no value to show)
	FromMaxLength                           // the maximum message length
	FromFixedText                           // PDKCode.FixedText
)

// PDKCode is a row of the specification's table of SMS internal error codes (specification, Errors).
type PDKCode struct {
	// Code is the internal code, PDK_SMSW_nnnn.
	Code string
	// Description is the specification's.
	Description string
	// MessageID is the mapped code.
	MessageID string
	// VariableSource is the source of %1. FixedText is %1 if the source is FromFixedText.
	VariableSource VariableSource
	FixedText      string
}

// The internal codes that Render puts into SVC0001.
const (
	codeInternal         = "PDK_SMSW_0001"
	codeIntegration      = "PDK_SMSW_0002"
	codeUnresponsive     = "PDK_SMSW_0011"
	codePlatformDown     = "PDK_SMSW_0013"
	codePlatformInternal = "PDK_SMSW_3000"
	notEnoughCredit      = "Not enough credit"
	noContract           = "No contract found for the given country / service / contact"
	expiredContract      = "Expired contract"
	consumptionForbidden = "Resource consumption failure: not authorized"

	// codeDailyLimit is ours. Like the specification's three of POL0001, it is a text, not a number (decision
	// "merchant-limits").
	codeDailyLimit = "Daily amount limit exceeded"
)

// pdkCodes are in the specification's order.
var pdkCodes = []PDKCode{
	{codeInternal, "Internal error", "SVC0001", FromCode, ""},
	{codeIntegration, "Integration error", "SVC0001", FromCode, ""},
	{"PDK_SMSW_0003", "Unavailable country", "SVC0004", FromSenderAddress, ""},
	{"PDK_SMSW_0004", "Duplicate client correlator", "SVC0005", FromCorrelator, ""},
	{"PDK_SMSW_0005", "Missing input value", "SVC0002", FromPartName, ""},
	{"PDK_SMSW_0006", "Invalid sender address", "SVC0004", FromSenderAddress, ""},
	{"PDK_SMSW_0007", "Invalid recipient address", "SVC0004", FromRecipient, ""},
	{"PDK_SMSW_0008", "Message too long", "SVC0280", FromMaxLength, ""},
	{"PDK_SMSW_0009", "Invalid input value", "SVC0002", FromPartName, ""},
	{codeUnresponsive, "Backend API is unresponsive", "SVC0001", FromCode, ""},
	{codePlatformDown, "Service delivery platform is unresponsive", "SVC0001", FromCode, ""},
	{"PDK_SMSW_1000", "Backend API internal error", "SVC0001", FromCode, ""},
	{"PDK_SMSW_1001", consumptionForbidden, "POL0001", FromFixedText, notEnoughCredit},
	{"PDK_SMSW_1002", "Resource consumption failure: invalid parameter", "POL0001", FromFixedText, noContract},
	{"PDK_SMSW_1003", consumptionForbidden, "POL0001", FromFixedText, expiredContract},
	{"PDK_SMSW_1004", "Resource consumption failure: unknown transaction ID", "SVC0001", FromCode, ""},
	{codePlatformInternal, "Service delivery platform internal error", "SVC0001", FromCode, ""},
	{"PDK_SMSW_3001", "Service delivery platform SLA error", "SVC0001", FromCode, ""},
}

// PDKCodes returns a copy of the specification's table of internal codes, all 18 rows in its order.
func PDKCodes() []PDKCode { return slices.Clone(pdkCodes) }

// FindPDKCode finds an internal code's row.
func FindPDKCode(code string) (PDKCode, bool) {
	return find(pdkCodes, func(row PDKCode) bool { return row.Code == code })
}

// Variables makes the variables of a row. values are those of its VariableSource: an address, a part, a length; for
// FromCorrelator the correlator and the message part. They are ignored if %1 is the code or a fixed text.
func (r PDKCode) Variables(values ...string) []string {
	switch r.VariableSource {
	case FromCode:
		return []string{r.Code}
	case FromFixedText:
		return []string{r.FixedText}
	default:
		return append([]string{}, values...)
	}
}
