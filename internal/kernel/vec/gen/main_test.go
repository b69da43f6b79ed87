package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCheckedInFilesAreWhatIsGenerated asks for go generate after a change here.
func TestCheckedInFilesAreWhatIsGenerated(t *testing.T) {
	for name, want := range files() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what the generator writes: run go generate in internal/kernel/vec",
				name)
		}
	}
}

// TestGenerationIsDeterministic guards against an order that comes from a map.
func TestGenerationIsDeterministic(t *testing.T) {
	first, second := files(), files()
	for name := range first {
		if first[name] != second[name] {
			t.Errorf("%s differs between two runs", name)
		}
	}
}
