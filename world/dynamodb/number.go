package dynamodb

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
)

// parseNumber reads a number in its canonical form. Fractions, other forms and numbers that are too large for an int64
// are not modelled.
func parseNumber(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (text[0] >= '1' && text[0] <= '9' || text[0] == '-' && text[1] != '0' || text == "0") {
		return n
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		notModelled("the number %s", text)
	}
	refuse("%s is not a number", text)
	return 0
}

func compareNumbers(a, b string) int { return cmp.Compare(parseNumber(a), parseNumber(b)) }

func addNumbers(a, b string) string {
	x, y := parseNumber(a), parseNumber(b)
	sum := x + y
	if (sum > x) != (y > 0) && y != 0 {
		notModelled("the sum of %s and %s", a, b)
	}
	return strconv.FormatInt(sum, 10)
}

// numberSortText returns a text whose order is the order of the numbers.
func numberSortText(text string) string {
	n := parseNumber(text)
	if n < 0 {
		return fmt.Sprintf("0%019d", n-math.MinInt64)
	}
	return fmt.Sprintf("1%019d", n)
}
