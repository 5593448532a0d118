package charge_test

import (
	"testing"

	"mobilegateway/proof/kits/operationtest"
)

func TestMalformedBodies(t *testing.T) { operationtest.CheckMalformedBodies(t, newFixture, newEvent) }
