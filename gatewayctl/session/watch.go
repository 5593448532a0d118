package session

import (
	"fmt"
	"time"

	"github.com/alecthomas/kong"
)

// WatchFlag is the flag of lists that are shown again and again. The tool repeats the command.
type WatchFlag struct {
	Watch Interval `placeholder:"2s" help:"Show it again every 2s, or every time such as 5s, until interrupted."`
}

// WatchName is the name of the flag.
const WatchName = "watch"

// Interval is the time between two runs of a command, 0 for a single run.
type Interval time.Duration

// Limits of an Interval.
const (
	usualInterval = Interval(2 * time.Second)
	minInterval   = time.Second
)

// Decode implements kong.MapperValue. The time may be missing: a word behind the flag that is not a time is another
// argument.
func (i *Interval) Decode(c *kong.DecodeContext) error {
	*i = usualInterval
	token := c.Scan.Peek()
	text, isText := token.Value.(string)
	wait, err := time.ParseDuration(text)
	if !isText || err != nil && token.Type != kong.FlagValueToken {
		return nil
	}
	c.Scan.Pop()
	if err != nil || wait < minInterval {
		return fmt.Errorf("%q is not a time of at least %s, such as 5s", text, minInterval)
	}
	*i = Interval(wait)
	return nil
}
