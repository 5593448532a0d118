package keys

import (
	"fmt"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/gatewayctl/session"
)

// AddFirst adds the first key to a ring that has none. It returns whether the ring had none, and the ring's newest key
// in words. A ring with a key stays as it is.
func AddFirst(s *session.Session, ring string) (added bool, newest string, err error) {
	current, err := RingArgument{ring}.ProvideRing(s)
	if err != nil {
		return false, "", err
	}
	describe := func(value []byte) (string, error) {
		views, err := current.Views(s, value)
		if err != nil || len(views) == 0 {
			return "", err
		}
		last := views[len(views)-1]
		return fmt.Sprintf("key %d, signs from %s", last.Number, output.FormatTime(last.SignsFrom)), nil
	}
	if len(current.Private.Value) > 0 {
		newest, err = describe(current.Private.Value)
		return false, newest, err
	}
	err = s.Execute("add a key", "ring "+ring, func() (string, error) {
		next, err := current.addKey(s)
		if err != nil {
			return "", err
		}
		if newest, err = describe(next.Private); err != nil {
			return "", err
		}
		return newest, current.put(s, next)
	})
	return true, newest, err
}
