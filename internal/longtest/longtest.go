// Package longtest says how long tests may be. The long form draws tens of
// thousands of cases where the short one, which runs with every `go test`,
// draws hundreds.
package longtest

import "os"

// Enabled reports whether the environment asks for the long form: GOMEM_LONG is
// set, and not to "0".
func Enabled() bool {
	v := os.Getenv("GOMEM_LONG")
	return v != "" && v != "0"
}

// Count is the number of cases to draw: long in the long form, else short.
func Count(short, long int) int {
	if Enabled() {
		return long
	}
	return short
}
