package dynamo

import (
	"bytes"
	"encoding/binary"

	"mobilegateway/shared/logsafe"
)

// packed is a response's body. It has a short stored form, because it is the largest part of an item, and DynamoDB
// bills each write of the item by its size. A response repeats names that packDictionary has, and its own values.
// Both forms are always read; Store.PackResponses decides which one is written.
//
// The short form is packedForm and a sequence of steps. A step is a number n as a varint. If n is even, n/2 bytes
// follow as they are. If n is odd, n/2 bytes are copied, and the distance back to the first of them follows as a
// varint. The distance reaches into the dictionary, which comes before the body. A body that does not get shorter is
// stored as it is, and so were all bodies before there was a short form. A response is JSON, which never begins with
// packedForm.
type packed []byte

const (
	// packedForm is the first byte of the short form with this dictionary. Another dictionary needs another one.
	packedForm = 1
	// minCopy is the number of bytes from which a copy is shorter than the bytes.
	minCopy = 5
	// maxUnpacked bounds a body that is read: more than an item can have.
	maxUnpacked = 512 << 10
	// packBits is the size of the table that finds repeated bytes, as a power of two.
	packBits = 11
)

// packDictionary is the text that responses have in common. It must never change: stored items refer to it.
const packDictionary = `{"outboundSMSMessageRequest":{"address":["acr:X-Operator-ISE2"],"senderAddress":"tel:+22",` +
	`"outboundSMSTextMessage":{"message":"","senderName":"","clientCorrelator":"","receiptRequest":{"notifyURL":` +
	`"https://","callbackData":"","resourceURL":"https:///smsmessaging/v1/outbound/tel%3A%2B22/requests/` +
	`{"requestError":{"serviceException":{"messageId":"SVC0001","text":"A service error occurred. Error code is %1"` +
	`,"variables":["policyException":{"messageId":"POL` +
	`{"status":201,"message":"OK","pay_token":"","payment_url":"https://","notif_token":"","state":"` +
	`{"meta":{"type":"payment","source":"","channel":"tpe"},"status":"successful","channel":"ussd"},` +
	`"status":"pending","amount":"","order-id":"","currency":"XOF","reference":"","country-code":"CI","state":"",` +
	`"user_msisdn":"0","Transaction-id":"","date":"2026-","intTransaction-id":"","extTransaction-id":"",` +
	`"statusDescription":"Payment is waiting for the customer's approval"}` +
	`{"amountTransaction":{"endUserId":"acr:OperatorAPIToken","paymentAmount":{"chargingInformation":{"amount":"",` +
	`"currency":"XOF","description":""},"totalAmountCharged":"","chargingMetaData":{"onBehalfOf":"","serviceId":"` +
	`"}},"transactionOperationStatus":"Charged","referenceCode":"","serverReferenceCode":"","clientCorrelator":"",` +
	`"resourceURL":"https:///payment/v1/acr%3AOperatorAPIToken/transactions/amount/"}}`

var (
	errPacked  = logsafe.New("not a packed body")
	errTooLong = logsafe.New("a packed body of more than the limit")
)

// plain returns the body as it is, the stored form that each program reads. Only a body that would be taken for the
// short form is packed; JSON never is.
func (body packed) plain() []byte {
	if len(body) > 0 && body[0] == packedForm {
		return body.pack()
	}
	return body
}

// pack returns the short stored form of a body.
func (body packed) pack() []byte {
	window := append([]byte(packDictionary), body...)
	var last [1 << packBits]int32 // the position after the latest occurrence of some bytes, by their hash
	stored := []byte{packedForm}
	start := len(packDictionary) // of the bytes that no step has yet
	for at := 0; at+minCopy <= len(window); {
		slot := packHash(window[at:])
		from := int(last[slot]) - 1
		last[slot] = int32(at + 1)
		if at < len(packDictionary) {
			at++
			continue
		}
		length := 0
		if from >= 0 {
			length = commonPrefix(window[from:], window[at:])
		}
		if length < minCopy {
			at++
			continue
		}
		stored = appendLiteral(stored, window[start:at])
		stored = binary.AppendUvarint(stored, uint64(length)<<1|1)
		stored = binary.AppendUvarint(stored, uint64(at-from)) //nolint:gosec // from is before at
		at += length
		start = at
	}
	stored = appendLiteral(stored, window[start:])
	if len(stored) >= len(body) && (len(body) == 0 || body[0] != packedForm) || len(body) > maxUnpacked {
		return body
	}
	return stored
}

// appendLiteral appends a step with bytes as they are; none for no bytes.
func appendLiteral(stored, literal []byte) []byte {
	if len(literal) == 0 {
		return stored
	}
	return append(binary.AppendUvarint(stored, uint64(len(literal))<<1), literal...)
}

// packHash is a hash of the first minCopy bytes.
func packHash(text []byte) uint32 {
	const prime = 2654435761
	return (binary.LittleEndian.Uint32(text) ^ uint32(text[4])<<7) * prime >> (32 - packBits)
}

// commonPrefix returns the number of bytes that both texts begin with.
func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// unpack returns the body of a stored form. Its errors contain no value.
func unpack(stored []byte) ([]byte, error) {
	if len(stored) == 0 || stored[0] != packedForm {
		return stored, nil
	}
	window := []byte(packDictionary)
	for rest := stored[1:]; len(rest) > 0; {
		step, read := binary.Uvarint(rest)
		if read <= 0 || step>>1 > maxUnpacked {
			return nil, errPacked
		}
		rest = rest[read:]
		length := int(step >> 1)
		if len(window)-len(packDictionary)+length > maxUnpacked {
			return nil, errTooLong
		}
		if step&1 == 0 {
			if length > len(rest) {
				return nil, errPacked
			}
			window, rest = append(window, rest[:length]...), rest[length:]
			continue
		}
		distance, read := binary.Uvarint(rest)
		if read <= 0 || distance == 0 || distance > uint64(len(window)) {
			return nil, errPacked
		}
		rest = rest[read:]
		for from := len(window) - int(distance); length > 0; length-- { //nolint:gosec // at most the window's length
			window = append(window, window[from])
			from++
		}
	}
	return bytes.Clone(window[len(packDictionary):]), nil
}
