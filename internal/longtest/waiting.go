package longtest

import (
	"flag"
	"testing"
)

// waiting is how many tests run at once of those that mostly wait.
const waiting = "6"

// RunWaiting is m.Run for tests that wait for leases to end and for other processes, and compute
// little: more of them run at once than there are processors, unless -parallel says how many.
func RunWaiting(m *testing.M) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", waiting) // it takes any number
	}
	return m.Run()
}
