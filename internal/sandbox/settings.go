package sandbox

import (
	"fmt"
	"strconv"
)

// Names of the variables that steer a sandbox from its start. SeedVariable alone turns every unkindness on at
// usualRate; the rates, between 0 and 1, say otherwise one by one.
const (
	SeedVariable        = "SANDBOX_SEED"
	DelayVariable       = "SANDBOX_DELAY"
	MaxDelayVariable    = "SANDBOX_MAX_DELAY_MS"
	DuplicateVariable   = "SANDBOX_DUPLICATE"
	ReorderVariable     = "SANDBOX_REORDER"
	LostAnswerVariable  = "SANDBOX_LOST_ANSWER"
	UnavailableVariable = "SANDBOX_UNAVAILABLE"
)

// usualRate is the share of everything unkind where only a seed is given.
const usualRate = 0.1

// FromEnvironment reads the steering that a sandbox starts with. Without any of the variables it is kind. The error names
// the variable.
func FromEnvironment(lookup func(string) (string, bool)) (Steering, error) {
	var v Steering
	rates := map[string]*float64{
		DelayVariable: &v.Delay, DuplicateVariable: &v.Duplicate, ReorderVariable: &v.Reorder,
		LostAnswerVariable: &v.LostAnswer, UnavailableVariable: &v.Unavailable,
	}
	seed, _ := lookup(SeedVariable)
	if seed != "" {
		number, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return Steering{}, fmt.Errorf("%s must be a whole number", SeedVariable)
		}
		v.Seed = number
	}
	for name, rate := range rates {
		text, _ := lookup(name)
		switch {
		case text != "":
			number, err := strconv.ParseFloat(text, 64)
			if err != nil || !(number >= 0 && number <= 1) {
				return Steering{}, fmt.Errorf("%s must be a rate between 0 and 1", name)
			}
			*rate = number
		case seed != "":
			*rate = usualRate
		}
	}
	if text, _ := lookup(MaxDelayVariable); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil || number < 0 || number > longestDelay {
			return Steering{}, fmt.Errorf("%s must be between 0 and %d", MaxDelayVariable, longestDelay)
		}
		v.MaxDelay = number
	}
	return v, nil
}
