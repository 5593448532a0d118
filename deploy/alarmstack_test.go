package main

import (
	"os"
	"strings"
	"testing"
)

// TestAlarmStack checks that a deployment gives the outputs of the gateway's stack to that of the alarms, and stops if
// one is missing.
func TestAlarmStack(t *testing.T) {
	good := buildProgram(t, deployFlags("arm64")...)
	for name, want := range map[string]string{"deployed": "", "declined": "has no output"} {
		t.Run(name, func(t *testing.T) {
			s := newTestCheckout(t, good)
			if name == "declined" {
				t.Setenv("FAKE_DEPLOYED", "[]")
			}
			const topic = "arn:aws:sns:eu-west-1:123456789012:alarms"
			arguments := []string{"-stack", "mine", "-yes=1", "AlarmTopicArn=" + topic, "AccountConcurrency=500"}
			err := run(t.Context(), s.root, arguments, s.system())
			call, readErr := os.ReadFile(s.log + ".alarms")
			if want != "" {
				if err == nil || !strings.Contains(err.Error(), want) || readErr == nil {
					t.Errorf("error %v, want %q; the alarms were deployed: %v", err, want, readErr == nil)
				}
				return
			}
			if err != nil || readErr != nil {
				t.Fatal(err, readErr)
			}
			for _, word := range []string{"--stack-name mine-alarms ", "--no-confirm-changeset",
				"Gateway,ParameterValue=mine",
				"ParameterKey=SweepFunction,ParameterValue=SweepFunction", "LedgerTable,ParameterValue=LedgerTable",
				"AlarmTopicArn,ParameterValue=" + topic, "AccountConcurrency,ParameterValue=500"} {
				if !strings.Contains(string(call), word) {
					t.Errorf("the call %s\nlacks %s", call, word)
				}
			}
		})
	}
}
