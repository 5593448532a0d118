package telemetry

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mobilegateway/shared/msisdn"
)

// Redacted stands where something was left out of a text.
const Redacted = "***"

// The measures of what is taken for a secret.
const (
	minTokenLength    = 20 // characters of a word with letters and digits that is taken for a token
	minRedactedDigits = 4  // digits in a run that is taken for a one-time code or a number
)

// filterWord lets a word of a closed vocabulary pass, and drops everything else.
func filterWord(text string) string {
	if text == "" || len(text) > maxVocabularyWord || !isLetter(text[0]) || looksLikeCredential(text) {
		return ""
	}
	return redactDigits(filterIdentifier(text, maxVocabularyWord))
}

// filterIdentifier lets letters, digits, "-", "_" and "." pass up to a length, and drops everything else.
func filterIdentifier(text string, limit int) string {
	if len(text) > limit || looksLikeCredential(text) {
		return ""
	}
	for i := range len(text) {
		if !isLetter(text[i]) && !isDigit(text[i]) && !strings.ContainsRune("-_.", rune(text[i])) {
			return ""
		}
	}
	return text
}

// filterMerchantName lets what can be a merchant's name pass (decision "merchant-names").
func filterMerchantName(text string) string {
	if len(text) > maxMerchantName {
		return ""
	}
	for i := range len(text) {
		if !isLetter(text[i]) && !isDigit(text[i]) {
			return ""
		}
	}
	return maskPhoneNumber(text)
}

// redactKey bounds a key that a merchant chose, masks the telephone numbers in it and drops a credential. order says
// that it may be an order_id: it then stays as it is, for operators find a payment's lines by it.
func redactKey(text string, mayBeOrderID bool) string {
	if looksLikeCredential(text) {
		return Redacted
	}
	text = truncate(replaceUnprintable(text), 4*maxKey) // masked before it is cut, so that no half of a number is left
	if mayBeOrderID && isOrderID(text) || isUUID(text) {
		return text
	}
	return truncate(maskPhoneNumbers(text), maxKey)
}

// isOrderID is true for <MerchantName>_<digits>, whatever the digits are: at most 30 characters, and a name that is no
// number itself (decision "pay-order-id").
func isOrderID(text string) bool {
	name, number, found := strings.Cut(text, "_")
	return found && len(text) <= maxOrderID && name != "" && filterMerchantName(name) == name && maskPhoneNumbers(name) == name &&
		strings.ContainsFunc(name, unicode.IsLetter) && number != "" && strings.Trim(number, "0123456789") == ""
}

// isUUID is true for the form of a transactionId and of a request_id.
func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (text[i] == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", rune(text[i])) {
			return false
		}
	}
	return true
}

// filterErrorID lets SVCnnnn, POLnnnn and 900nnn pass.
func filterErrorID(text string) string {
	rest, known := strings.CutPrefix(text, "900")
	length := 3
	if !known {
		rest, known = strings.CutPrefix(text, "SVC")
		length = 4
	}
	if !known {
		rest, known = strings.CutPrefix(text, "POL")
	}
	if !known || len(rest) != length || strings.Trim(rest, "0123456789") != "" {
		return ""
	}
	return text
}

// maskPhoneNumber masks a text that is 8 to 15 digits, with or without "+" or "tel:+".
func maskPhoneNumber(text string) string {
	number := strings.TrimPrefix(strings.TrimPrefix(text, "tel:"), "+")
	if len(number) < 8 || len(number) > 15 || strings.Trim(number, "0123456789") != "" {
		return text
	}
	return msisdn.Mask(number)
}

// maskPhoneNumbers masks what may be a telephone number inside a text: every run of 8 digits and more, counted across what
// people put between digits (spaces, "-", ".", "/", brackets, "+", "_", anything but a letter), so that it need not stand
// alone nor be written in one piece. More than 15 digits in one piece are no telephone number, and stay. The last two
// digits of a run are kept.
func maskPhoneNumbers(text string) string {
	var kept strings.Builder
	start, end, digits, pieces := -1, 0, 0, 0 // of the run: where it is, its digits, and in how many pieces they are
	endRun := func() {
		if start >= 0 && digits >= 8 && (digits <= 15 || pieces > 1) {
			kept.WriteString(msisdn.Mask(text[start:end]))
		} else if start >= 0 {
			kept.WriteString(text[start:end])
		}
		start, digits, pieces = -1, 0, 0
	}
	for i, char := range text {
		switch {
		case unicode.IsDigit(char):
			if start < 0 {
				kept.WriteString(text[end:i])
				start = i
			}
			if digits == 0 || end < i {
				pieces++
			}
			digits, end = digits+1, i+utf8.RuneLen(char)
		case unicode.IsLetter(char):
			endRun()
		}
	}
	endRun()
	kept.WriteString(text[end:])
	return kept.String()
}

// looksLikeCredential knows credentials: our own tokens and secrets by their prefixes, wherever they stand, and the two schemes
// of Authorization at the head.
func looksLikeCredential(text string) bool {
	lower := strings.ToLower(text)
	for _, prefix := range [...]string{"gwl_", "gws_", "gwc_", "whsec_"} {
		if strings.Contains(lower, prefix) {
			return true
		}
	}
	return strings.HasPrefix(lower, "bearer ") || strings.HasPrefix(lower, "basic ")
}

// redactCause keeps of an error's text what helps to find the cause, and nothing that could be a client's value.
func redactCause(text string) string {
	text = truncate(replaceUnprintable(text), 4*maxCause)
	var kept strings.Builder
	afterAuthScheme := false // the word before was Bearer or Basic
	for text != "" {
		end := strings.IndexFunc(text, isSeparator)
		if end < 0 {
			end = len(text)
		}
		if end > 0 {
			scheme := strings.EqualFold(text[:end], "bearer") || strings.EqualFold(text[:end], "basic")
			if afterAuthScheme && !scheme {
				kept.WriteString(Redacted)
			} else {
				kept.WriteString(redactWord(text[:end]))
			}
			afterAuthScheme = scheme
		} else {
			end = 1
			kept.WriteString(text[:end])
		}
		text = text[end:]
	}
	return truncate(kept.String(), maxCause)
}

// isSeparator ends a word of an error's text. Those of URLs and tokens are no separators. All are one byte long.
func isSeparator(char rune) bool { return strings.ContainsRune(" \"'`,;()[]{}<>|", char) }

// redactWord scrubs one word: of a URL, scheme and host are kept.
func redactWord(text string) string {
	tail := ""
	if trimmed := strings.TrimRight(text, ".:"); trimmed != text {
		text, tail = trimmed, text[len(trimmed):]
	}
	if scheme, rest, isURL := strings.Cut(text, "://"); isURL {
		host := rest
		if end := strings.IndexAny(host, "/?#"); end >= 0 {
			host = host[:end]
		}
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			host = host[at+1:]
		}
		return scheme + "://" + redactDigits(host) + tail
	}
	if before, _, query := strings.Cut(text, "?"); query {
		text, tail = before, "?"+Redacted+tail
	}
	if looksLikeCredential(text) || looksLikeToken(text) {
		return Redacted + tail
	}
	if name, _, assigned := strings.Cut(text, "="); assigned {
		return redactDigits(name) + "=" + Redacted + tail
	}
	return redactDigits(text) + tail
}

// looksLikeToken is true for a word with a piece so long, and made of letters and digits, that it may be a token, a signature
// or a key. Pieces are what stands between slashes, points and colons, so that the name of a Go function is none.
func looksLikeToken(text string) bool {
	for piece := range strings.FieldsFuncSeq(text, func(char rune) bool { return char == '/' || char == '.' || char == ':' }) {
		letters := strings.ContainsFunc(piece, unicode.IsLetter)
		if len(piece) >= minTokenLength && letters && strings.ContainsAny(piece, "0123456789") {
			return true
		}
	}
	return false
}

// redactDigits puts Removed in the place of every run of four digits and more, but where the run is an error code of the
// OneAPI family.
func redactDigits(text string) string {
	var kept strings.Builder
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		switch {
		case end == i:
			kept.WriteByte(text[i])
			end++
		case end-i >= minRedactedDigits && !isErrorCode(text[:i], text[i:end]):
			kept.WriteString(Redacted)
		default:
			kept.WriteString(text[i:end])
		}
		i = end
	}
	return kept.String()
}

// isErrorCode is true for the digits of SVCnnnn, POLnnnn and PDK_SMSW_nnnn, and for 9009nn.
func isErrorCode(before, run string) bool {
	if len(run) == 6 && strings.HasPrefix(run, "9009") {
		return before == ""
	}
	family := strings.HasSuffix(before, "SVC") || strings.HasSuffix(before, "POL") || strings.HasSuffix(before, "PDK_SMSW_")
	return len(run) == 4 && family
}

// replaceUnprintable puts a space in the place of every character that is none to be printed.
func replaceUnprintable(text string) string {
	return strings.Map(func(char rune) rune {
		if unicode.IsPrint(char) {
			return char
		}
		return ' '
	}, text)
}

// truncate cuts a text to a number of bytes, at the border of a character.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

func isLetter(char byte) bool { return char|0x20 >= 'a' && char|0x20 <= 'z' }

func isDigit(char byte) bool { return char >= '0' && char <= '9' }
