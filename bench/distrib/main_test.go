package main

import (
	"io"
	"testing"
)

// TestTables tries all tables out.
func TestTables(t *testing.T) {
	for _, tb := range tables() {
		t.Run(tb.name, func(t *testing.T) { tb.run(t, io.Discard, true) })
	}
}
