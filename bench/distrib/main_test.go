package main

import (
	"io"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// TestTables tries all tables out.
func TestTables(t *testing.T) {
	longtest.Skip(t)
	for _, tb := range tables() {
		t.Run(tb.name, func(t *testing.T) { tb.run(t, io.Discard, true) })
	}
}
