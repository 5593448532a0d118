package explore

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"mobilegateway/proof/simulate/tape"
	model "mobilegateway/world/dynamodb"
)

// seen is what the code of an instance has seen: for each call by its name, the results and the times, in their order.
//
// The relay and the sweep make some calls at once: the payer's SMS beside the notification, two reads of the health of
// an endpoint. Two orders of such calls with the same results are the same to the code, so the order of calls with
// different names is left out. This loses nothing: each task continues from the results of its own calls. The tasks of
// an invocation share only what one passes to another at its start or its end. The name of a call identifies its task,
// with the number of its invocation: the rest of an earlier one can meet the next. Tasks that make the same calls are
// named by the kernel. If two make the same call at once all the same, the order of all further calls counts.
type seen struct {
	sum    uint64 // of the chains
	chains map[string]uint64
	// waiting has the calls that wait to be made. last is the call that saw something last, by the task that runs.
	waiting map[string]bool
	last    string
	// inOrder keeps the order of all calls.
	inOrder bool
}

// begin notes that a call waits to be made.
func (s *seen) begin(name string) {
	if s.waiting == nil {
		s.waiting = map[string]bool{}
	}
	s.inOrder = s.inOrder || s.waiting[name]
	s.waiting[name] = true
}

// add adds what the code sees of a call.
func (s *seen) add(name string, digests ...uint64) {
	delete(s.waiting, name)
	if s.last = name; s.inOrder {
		digests = append([]uint64{hashBytes([]byte(name))}, digests...)
		name = ""
	}
	if s.chains == nil {
		s.chains = map[string]uint64{}
	}
	before, found := s.chains[name]
	if found {
		s.sum -= tape.Mix(before)
	} else {
		before = hashBytes([]byte(name))
	}
	h := hash{before}
	for _, digest := range digests {
		h.add(digest)
	}
	s.chains[name] = h.sum
	s.sum += tape.Mix(h.sum)
}

// hash is an ordered hash of numbers and texts.
type hash struct{ sum uint64 }

func newHash() *hash { return &hash{14695981039346656037} }

func (h *hash) add(value uint64) {
	h.sum = (h.sum ^ value ^ value>>31) * 0x9e3779b97f4a7c15
	h.sum ^= h.sum >> 29
}

func (h *hash) addText(text string) { h.add(hashBytes([]byte(text))) }

// hashBytes is FNV-1a.
func hashBytes(text []byte) uint64 {
	sum := uint64(14695981039346656037)
	for _, b := range text {
		sum = (sum ^ uint64(b)) * 1099511628211
	}
	return sum
}

// conditionItems hashes the items that a failed condition returned.
func conditionItems(err error) uint64 {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return model.HashItem(failed.Item)
	}
	var cancelled *types.TransactionCanceledException
	var sum uint64
	if errors.As(err, &cancelled) {
		for _, reason := range cancelled.CancellationReasons {
			sum = sum*31 + model.HashItem(reason.Item)
		}
	}
	return sum
}

// outputDigest hashes the items in the output of a call.
func outputDigest(out any) (digest uint64) {
	switch out := out.(type) {
	case *dynamodb.GetItemOutput:
		return model.HashItem(out.Item)
	case *dynamodb.UpdateItemOutput:
		return model.HashItem(out.Attributes)
	case *dynamodb.QueryOutput:
		for _, item := range out.Items {
			digest = digest*31 + model.HashItem(item)
		}
	}
	return digest
}

// errorDigest hashes an error and the items in it.
func errorDigest(err error) uint64 {
	if err == nil {
		return 1
	}
	digest := hashBytes([]byte(err.Error()))
	return digest + conditionItems(err)
}
