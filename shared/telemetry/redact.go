package telemetry

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mobilegateway/shared/ascii"
	"mobilegateway/shared/logsafe"
	"mobilegateway/shared/msisdn"
)

// The limits of texts in a line, in bytes.
const (
	maxStackName      = 128 // as CloudFormation allows
	maxVocabularyWord = 40  // operations, operators, countries, channels, outcomes
	maxIdentifier     = 40  // request ids: a UUID has 36, our tokens more than 40
	maxMerchantName   = 20  // merchant names (decision "merchant-names")
	maxOrderID        = 30  // order_ids (specification, Limits)
	maxKey            = 96  // order_id, clientCorrelator, referenceCode
	maxCause          = 512 // causes
)

// The sizes from which a piece of a key counts as secret, in characters.
const (
	minRandomLength  = 32 // a random piece
	keptRandomLength = 8  // its kept begin
)

// filterWord returns a word of a closed vocabulary, and "" for anything else.
func filterWord(text string) string {
	if text == "" || !strings.Contains(ascii.Letters, text[:1]) {
		return ""
	}
	return filterIdentifier(logsafe.FilterCode(text), maxVocabularyWord) // Hidden is not an identifier
}

// filterIdentifier returns letters, digits, "-", "_" and "." up to a length, and "" for anything else.
func filterIdentifier(text string, limit int) string {
	if len(text) > limit || looksLikeCredential(text) || !ascii.ConsistsOf(text, ascii.Letters+ascii.Digits+"-_.") {
		return ""
	}
	return text
}

// filterMerchantName returns a possible merchant name, and "" for anything else (decision "merchant-names").
func filterMerchantName(text string) string {
	if len(text) > maxMerchantName || !ascii.ConsistsOf(text, ascii.Letters+ascii.Digits) {
		return ""
	}
	return maskPhoneNumber(text)
}

// truncateRandom keeps only the begin of each long random piece of a key, such as one of our tokens without its prefix.
// A random piece has letters of both cases and digits, as base64 has.
func truncateRandom(text string) string {
	separates := func(char rune) bool { return !strings.ContainsRune(ascii.Letters+ascii.Digits+"-_+/=", char) }
	for _, piece := range strings.FieldsFunc(text, separates) {
		if len(piece) >= minRandomLength && strings.ContainsAny(piece, ascii.Digits) &&
			strings.ContainsAny(piece, ascii.Letters[:26]) && strings.ContainsAny(piece, ascii.Letters[26:]) {
			text = strings.Replace(text, piece, piece[:keptRandomLength]+logsafe.Hidden, 1)
		}
	}
	return text
}

// isOrderID reports whether text is <MerchantName>_<digits> of at most 30 characters. The name must not be a number
// itself (decision "pay-order-id").
func isOrderID(text string) bool {
	name, number, found := strings.Cut(text, "_")
	return found && len(text) <= maxOrderID && ascii.IsDigits(number) && strings.ContainsFunc(name, unicode.IsLetter) &&
		filterMerchantName(name) == name && maskPhoneNumbers(name) == name
}

// isUUID reports whether text has the form of a transactionId or a request_id.
func isUUID(text string) bool {
	groups := strings.Split(text, "-")
	lengths := []int{8, 4, 4, 4, 12}
	return slices.EqualFunc(groups, lengths, func(group string, length int) bool {
		return len(group) == length && ascii.ConsistsOf(group, ascii.Digits+"abcdefABCDEF")
	})
}

// filterErrorID returns SVCnnnn, POLnnnn and 900nnn, and "" for anything else.
func filterErrorID(text string) string {
	for prefix, digits := range map[string]int{"SVC": 4, "POL": 4, "900": 3} {
		number, found := strings.CutPrefix(text, prefix)
		if found && len(number) == digits && ascii.IsDigits(number) {
			return text
		}
	}
	return ""
}

// maskPhoneNumber masks text of 8 to 15 digits, with or without "+" or "tel:+".
func maskPhoneNumber(text string) string {
	number := strings.TrimPrefix(strings.TrimPrefix(text, "tel:"), "+")
	if len(number) < 8 || len(number) > 15 || !ascii.IsDigits(number) {
		return text
	}
	return msisdn.Mask(number)
}

// maskPhoneNumbers masks possible phone numbers inside text: every run of at least 8 digits. A run continues across
// spaces, "-", ".", "/", brackets, "+", "_" and any other separator except a letter. More than 15 digits in one piece
// are not a phone number, and stay. The last two digits of a run are kept.
func maskPhoneNumbers(text string) string {
	var kept strings.Builder
	var run digitRun
	for i, char := range text {
		switch {
		case unicode.IsDigit(char):
			if run.digits == 0 {
				kept.WriteString(text[run.end:i])
				run.start, run.end = i, i
			}
			if run.digits == 0 || run.end < i {
				run.pieces++
			}
			run.digits, run.end = run.digits+1, i+utf8.RuneLen(char)
		case unicode.IsLetter(char):
			kept.WriteString(run.masked(text))
			run = digitRun{start: run.end, end: run.end}
		}
	}
	kept.WriteString(run.masked(text) + text[run.end:])
	return kept.String()
}

// digitRun is a run of digits in a text: its place, and how many digits and pieces it has. It is empty at first, and
// after a letter.
type digitRun struct{ start, end, digits, pieces int }

// masked returns the run, masked if it can be a phone number.
func (r digitRun) masked(text string) string {
	if r.digits >= 8 && (r.digits <= 15 || r.pieces > 1) {
		return msisdn.Mask(text[r.start:r.end])
	}
	return text[r.start:r.end]
}

// looksLikeCredential detects credentials: our own tokens and secrets by their prefixes anywhere, and the two schemes
// of Authorization at the start.
func looksLikeCredential(text string) bool {
	lower := strings.ToLower(text)
	isIn := func(prefix string) bool { return strings.Contains(lower, prefix) }
	return slices.ContainsFunc([]string{"gwl_", "gws_", "gwc_", "whsec_"}, isIn) ||
		strings.HasPrefix(lower, "bearer ") || strings.HasPrefix(lower, "basic ")
}

// replaceUnprintable replaces every unprintable character with a space.
func replaceUnprintable(text string) string {
	return strings.Map(func(char rune) rune {
		if unicode.IsPrint(char) {
			return char
		}
		return ' '
	}, text)
}

// truncate shortens text to a number of bytes, at a character boundary.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
