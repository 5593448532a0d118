package operator

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"io"

	"mobilegateway/shared/logsafe"
)

// maxShortKey is the length of a KeyShort in characters.
const maxShortKey = 20

// NewPaymentKey makes the upstream key of a payment in a platform's form. random has the bytes of a UUID; its error is
// the only one.
func NewPaymentKey(form KeyForm, orderID string, random io.Reader) (string, error) {
	switch form {
	case KeyUUID:
		var b [16]byte
		if _, err := io.ReadFull(random, b[:]); err != nil {
			return "", logsafe.Errorf("drawing a UUID: %w", err)
		}
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
	case KeyShort:
		if len(orderID) <= maxShortKey {
			return orderID, nil
		}
		sum := sha256.Sum256([]byte(orderID))
		return base32.HexEncoding.EncodeToString(sum[:])[:maxShortKey], nil
	default:
		return orderID, nil
	}
}
