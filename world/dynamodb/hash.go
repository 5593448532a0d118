package dynamodb

import (
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The constants of FNV-1a.
const (
	hashSeed  uint64 = 14695981039346656037
	hashPrime uint64 = 1099511628211
)

// hashText continues a hash.
func hashText(hash uint64, text string) uint64 {
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * hashPrime
	}
	return hash
}

// mixHash spreads a hash over all bits, so that hashes can be added.
func mixHash(hash uint64) uint64 {
	hash = (hash ^ hash>>33) * 0xff51afd7ed558ccd
	hash = (hash ^ hash>>33) * 0xc4ceb9fe1a85ec53
	return hash ^ hash>>33
}

// hashValue returns the hash of an item. It is computed once.
func (s *stored) hashValue() uint64 {
	if hash := s.hash.Load(); hash != 0 {
		return hash
	}
	hash := mixHash(hashText(hashSeed, s.key)) + HashItem(s.item)
	s.hash.Store(hash)
	return hash
}

// HashItem returns a hash of an item, which does not depend on the order of its attributes.
func HashItem(item Item) (hash uint64) {
	for name, value := range item {
		hash += hashAttribute(hashText(hashSeed, name), value)
	}
	return hash
}

func hashAttribute(seed uint64, value types.AttributeValue) uint64 {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return mixHash(hashText(seed^'S', v.Value))
	case *types.AttributeValueMemberN:
		return mixHash(hashText(seed^'N', v.Value))
	case *types.AttributeValueMemberB:
		return mixHash(hashText(seed^'B', string(v.Value)))
	}
	text, _ := json.Marshal(newTypedValue(value)) // a flag
	return mixHash(hashText(seed, string(text)))
}
