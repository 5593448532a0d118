package sandbox

import (
	"fmt"
	"strconv"
)

// Names of the variables that steer a sandbox from its start. SeedVariable alone turns every unkindness on at
// defaultFaultRate; the rates, between 0 and 1, say otherwise one by one.
const (
	SeedVariable         = "SANDBOX_SEED"
	DelayVariable        = "SANDBOX_DELAY"
	MaxDelayVariable     = "SANDBOX_MAX_DELAY_MS"
	DuplicateVariable    = "SANDBOX_DUPLICATE"
	ReorderVariable      = "SANDBOX_REORDER"
	LostResponseVariable = "SANDBOX_LOST_ANSWER"
	UnavailableVariable  = "SANDBOX_UNAVAILABLE"
)

// defaultFaultRate is the share of everything unkind where only a seed is given.
const defaultFaultRate = 0.1

// FaultSettingsFromEnvironment reads the steering that a sandbox starts with. Without any of the variables it is kind. The error names
// the variable.
func FaultSettingsFromEnvironment(lookup func(string) (string, bool)) (FaultSettings, error) {
	var v FaultSettings
	rates := map[string]*float64{
		DelayVariable: &v.Delay, DuplicateVariable: &v.Duplicate, ReorderVariable: &v.Reorder,
		LostResponseVariable: &v.LostResponse, UnavailableVariable: &v.Unavailable,
	}
	seed, _ := lookup(SeedVariable)
	if seed != "" {
		number, err := strconv.ParseUint(seed, 10, 64)
		if err != nil {
			return FaultSettings{}, fmt.Errorf("%s must be a whole number", SeedVariable)
		}
		v.Seed = number
	}
	for name, rate := range rates {
		text, _ := lookup(name)
		switch {
		case text != "":
			number, err := strconv.ParseFloat(text, 64)
			if err != nil || !(number >= 0 && number <= 1) {
				return FaultSettings{}, fmt.Errorf("%s must be a rate between 0 and 1", name)
			}
			*rate = number
		case seed != "":
			*rate = defaultFaultRate
		}
	}
	if text, _ := lookup(MaxDelayVariable); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil || number < 0 || number > maxDelayLimitMS {
			return FaultSettings{}, fmt.Errorf("%s must be between 0 and %d", MaxDelayVariable, maxDelayLimitMS)
		}
		v.MaxDelayMS = number
	}
	return v, nil
}
