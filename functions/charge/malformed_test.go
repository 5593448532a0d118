package charge_test

import (
	"testing"

	"mobilegateway/internal/operationtest"
)

func TestMalformedBodies(t *testing.T) { operationtest.CheckMalformedBodies(t, newFixture, newEvent) }
