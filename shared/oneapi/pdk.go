package oneapi

// Source says how the %1 of an internal code is made.
type Source int

// The sources, in the specification's words.
const (
	OwnCode         Source = iota // the internal code itself
	SenderAddress                 // senderAddress value
	RecipientValue                // address value
	CorrelatorValue               // clientCorrelator value; %2, listed without a description, is the message part
	PartName                      // the message part (decision "error-table": a missing value has no value to show)
	MaxLength                     // the maximum message length
	FixedText                     // Row.Fixed
)

// Row is a row of the specification's table of SMS internal error codes (specification, Errors).
type Row struct {
	// Code is the internal code, PDK_SMSW_nnnn.
	Code string
	// Description is the specification's.
	Description string
	// MessageID is the mapped code.
	MessageID string
	// Source says how %1 is made, Fixed is %1 where it is always the same text.
	Source Source
	Fixed  string
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

	// codeDailyLimit is ours, in the manner of the specification's three of POL0001: a text, not a number (decision
	// "merchant-limits").
	codeDailyLimit = "Daily amount limit exceeded"
)

// pdkRows stand in the specification's order.
var pdkRows = []Row{
	{codeInternal, "Internal error", "SVC0001", OwnCode, ""},
	{codeIntegration, "Integration error", "SVC0001", OwnCode, ""},
	{"PDK_SMSW_0003", "Unavailable country", "SVC0004", SenderAddress, ""},
	{"PDK_SMSW_0004", "Duplicate client correlator", "SVC0005", CorrelatorValue, ""},
	{"PDK_SMSW_0005", "Missing input value", "SVC0002", PartName, ""},
	{"PDK_SMSW_0006", "Invalid sender address", "SVC0004", SenderAddress, ""},
	{"PDK_SMSW_0007", "Invalid recipient address", "SVC0004", RecipientValue, ""},
	{"PDK_SMSW_0008", "Message too long", "SVC0280", MaxLength, ""},
	{"PDK_SMSW_0009", "Invalid input value", "SVC0002", PartName, ""},
	{codeUnresponsive, "Backend API is unresponsive", "SVC0001", OwnCode, ""},
	{codePlatformDown, "Service delivery platform is unresponsive", "SVC0001", OwnCode, ""},
	{"PDK_SMSW_1000", "Backend API internal error", "SVC0001", OwnCode, ""},
	{"PDK_SMSW_1001", consumptionForbidden, "POL0001", FixedText, notEnoughCredit},
	{"PDK_SMSW_1002", "Resource consumption failure: invalid parameter", "POL0001", FixedText, noContract},
	{"PDK_SMSW_1003", consumptionForbidden, "POL0001", FixedText, expiredContract},
	{"PDK_SMSW_1004", "Resource consumption failure: unknown transaction ID", "SVC0001", OwnCode, ""},
	{codePlatformInternal, "Service delivery platform internal error", "SVC0001", OwnCode, ""},
	{"PDK_SMSW_3001", "Service delivery platform SLA error", "SVC0001", OwnCode, ""},
}

// PDKRows returns the specification's table of internal codes, all 18 rows in its order.
func PDKRows() []Row { return append([]Row(nil), pdkRows...) }

// PDK finds an internal code's row.
func PDK(code string) (Row, bool) {
	for _, row := range pdkRows {
		if row.Code == code {
			return row, true
		}
	}
	return Row{}, false
}

// Variables makes the variables of a row: values are what its Source speaks of (an address, a part, a length; for
// CorrelatorValue the correlator and the message part) and are not looked at where %1 is the code or a fixed text.
func (r Row) Variables(values ...string) []string {
	switch r.Source {
	case OwnCode:
		return []string{r.Code}
	case FixedText:
		return []string{r.Fixed}
	default:
		return append([]string{}, values...)
	}
}
