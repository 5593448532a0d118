package orangesms

import (
	"strings"
	"unicode/utf16"
)

// The alphabet of GSM-7 (3GPP TS 23.038). A character of gsmExtension takes two septets.
const (
	gsmBasic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
		"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmExtension = "^{}\\[~]|€\f"
)

// The lengths of one SMS and of one part of a longer one, in septets or in UTF-16 units.
const (
	gsmSingle, gsmPart   = 160, 153
	ucs2Single, ucs2Part = 70, 67
)

// unitsOf returns the units of the bundle that a text uses: one for each part.
func unitsOf(text string) int {
	septets := 0
	for _, c := range text {
		switch {
		case strings.ContainsRune(gsmBasic, c):
			septets++
		case strings.ContainsRune(gsmExtension, c):
			septets += 2
		default:
			return parts(len(utf16.Encode([]rune(text))), ucs2Single, ucs2Part)
		}
	}
	return parts(septets, gsmSingle, gsmPart)
}

func parts(length, single, part int) int {
	if length <= single {
		return 1
	}
	return (length + part - 1) / part
}
