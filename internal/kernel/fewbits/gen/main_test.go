package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCheckedIn makes sure that the package's files are what the generator writes.
func TestCheckedIn(t *testing.T) {
	for name, want := range generate() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
		} else if string(got) != want {
			t.Errorf("%s is not what go generate writes", name)
		}
	}
}
