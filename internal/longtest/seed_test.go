package longtest

import (
	"flag"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSameCases draws the same cases twice, as two runs of a test would.
func TestSameCases(t *testing.T) {
	if flag.Lookup("rapid.seed").Value.String() == "0" {
		t.Skip("cases are drawn at random, as asked for")
	}
	draw := func() (all []uint64) {
		rapid.Check(t, func(t *rapid.T) { all = append(all, rapid.Uint64().Draw(t, "n")) })
		return all
	}
	if first, second := draw(), draw(); !slices.Equal(first, second) {
		t.Errorf("drew %d and then %d, of which the first is %d and then %d",
			len(first), len(second), first[0], second[0])
	}
}

// TestRounds: another round draws other cases, the same one the same.
func TestRounds(t *testing.T) {
	draw := func(round int) (all []uint64) {
		Check(t, round, func(t *rapid.T) { all = append(all, rapid.Uint64().Draw(t, "n")) })
		return all
	}
	first := draw(1)
	if slices.Equal(first, draw(2)) {
		t.Errorf("two rounds draw %d first", first[0])
	}
	if flag.Lookup("rapid.seed").Value.String() != "0" && !slices.Equal(first, draw(1)) {
		t.Error("a round draws other cases another time")
	}
}

func TestSeed(t *testing.T) {
	for value, want := range map[string]uint64{"": 1, "random": 0, "7": 7} {
		if n, err := seed(value); n != want || err != nil {
			t.Errorf("GOMEM_SEED=%q: %d, %v, want %d", value, n, err, want)
		}
	}
	if _, err := seed("often"); err == nil {
		t.Error("GOMEM_SEED=often: no error")
	}
}
