package longtest_test

import (
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

func TestCount(t *testing.T) {
	for value, want := range map[string]int{"": 3, "0": 3, "1": 70, "yes": 70} {
		t.Setenv("GOMEM_LONG", value)
		if n := longtest.Count(3, 70); n != want {
			t.Errorf("GOMEM_LONG=%q: %d cases, want %d", value, n, want)
		}
	}
}
