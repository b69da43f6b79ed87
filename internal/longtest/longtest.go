// Package longtest says how long tests may be, and which cases they draw. The long form draws
// tens of thousands of cases where the short one, which runs with every `go test`, draws
// hundreds. Either draws the same ones every time, so that a change is judged by itself and not
// by chance; GOMEM_SEED=random draws others, and GOMEM_SEED=7 those of another seed (with -count=1,
// since go test does not see that a variable which is read this early has changed).
//
// Every package whose tests use rapid imports this one: importing it sets rapid's seed, and how
// many cases a property is checked with.
package longtest

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid" // defines the flag that is set here
)

// Enabled reports whether the environment asks for the long form: GOMEM_LONG is
// set, and not to "0".
func Enabled() bool {
	v := os.Getenv("GOMEM_LONG")
	return v != "" && v != "0"
}

// Skip skips a test in the shortest form, that of `go test -short`, which is run after each edit. A
// quicker one has to show the same law, or the same on a smaller model.
func Skip(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("longer than -short is")
	}
}

// Only skips a test but in the long form: a quicker one, which is named, shows the same law.
func Only(t testing.TB, quicker string) {
	t.Helper()
	if !Enabled() {
		t.Skip("left to the long form: " + quicker + " shows it, too")
	}
}

// Count is the number of cases to draw: long in the long form, else short.
func Count(short, long int) int {
	if Enabled() {
		return long
	}
	return short
}

// Some are the cases of a table: in the long form all of them, else the first n. Those that tell
// most come first.
func Some[T any](n int, all []T) []T { return all[:Count(min(n, len(all)), len(all))] }

// Check is rapid.Check with the cases of a round: those of another round are others, and each
// round's are the same every time. The seed is rapid's for all tests, so tests that are run in
// parallel must not call it.
func Check(t rapid.TB, round int, property func(*rapid.T)) {
	t.Helper()
	f := flag.Lookup("rapid.seed")
	first := f.Value.String()
	if n, err := strconv.ParseUint(first, 10, 64); err == nil && n != 0 {
		defer setSeed(t, f, first)
		setSeed(t, f, strconv.FormatUint(n+uint64(round), 10))
	}
	rapid.Check(t, property)
}

// setSeed sets rapid's seed.
func setSeed(t rapid.TB, f *flag.Flag, seed string) {
	t.Helper()
	if err := f.Value.Set(seed); err != nil {
		t.Fatal(err)
	}
}

// seed is rapid's seed for a value of GOMEM_SEED: 1 if there is none, and 0, which draws one, for
// "random".
func seed(value string) (uint64, error) {
	switch value {
	case "":
		return 1, nil
	case "random":
		return 0, nil
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("GOMEM_SEED=%q: want a number, or random", value)
	}
	return n, nil
}

// shortChecks is how many cases a property is checked with in the short form; rapid's own number, a
// hundred, is the long form's.
const shortChecks = 40

// garbage is how much of it, as a percentage of what is in use, tests let grow before they collect:
// they use little, so that collecting as often as programs do is a tenth of their time.
const garbage = 400

// init sets rapid's seed and its number of cases. What the command line says (-rapid.seed,
// -rapid.checks) is parsed later and wins, and so does rapid's own variable, RAPID_SEED.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	if !Enabled() && !slices.Contains(os.Args, "-test.short=true") { // -short has a fifth
		_ = flag.Lookup("rapid.checks").Value.Set(strconv.Itoa(shortChecks)) // it takes any number
	}
	f := flag.Lookup("rapid.seed")
	if f.Value.String() != "0" {
		return
	}
	n, err := seed(os.Getenv("GOMEM_SEED"))
	if err == nil {
		err = f.Value.Set(strconv.FormatUint(n, 10))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
