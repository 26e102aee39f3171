package main

import (
	"os"
	"testing"
)

// pending leaves out a test of a fault that is known and not mended yet.
// DRAINIT_PENDING=1 runs it all the same.
func pending(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("DRAINIT_PENDING") == "" {
		t.Skip("to be mended: " + what)
	}
}
