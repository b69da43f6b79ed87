package gauge

import (
	"math"
	"slices"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		before := slices.Clone(c.x)
		if got := Median(c.x); got != c.want || !slices.Equal(before, c.x) {
			t.Errorf("median of %v is %v, want %v; left %v", before, got, c.want, c.x)
		}
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("nothing has a median")
	}
}

func TestMachine(t *testing.T) {
	if Processor() == "" {
		t.Error("a processor without a name")
	}
}

func TestCPUTime(t *testing.T) {
	before, sum := CPUTime(), 0
	for range 100 {
		for i := range 1 << 20 {
			sum += i & sum
		}
	}
	if took := CPUTime() - before; took <= 0 {
		t.Errorf("%d was summed up in %s", sum, took)
	}
}
