package train

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestMean: it is the weighted mean, by the formula.
func TestMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Mean
		var sum, weights float64
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			x, w := rapid.Float64Range(-9, 9).Draw(t, "x"), float64(rapid.IntRange(0, 5).Draw(t,
				"weight"))
			m.Add(x, w)
			sum, weights = sum+x*w, weights+w
		}
		want := 0.0
		if weights > 0 {
			want = sum / weights
		}
		if math.Abs(m.Value()-want) > 1e-12 || m.Weight() != weights {
			t.Fatalf("mean %v over %v, want %v over %v", m.Value(), m.Weight(), want, weights)
		}
	})
}

func TestRecent(t *testing.T) {
	r := Recent{Share: 0.25}
	for _, c := range []struct{ add, want float64 }{{4, 4}, {8, 6}, {3, 5}, {9, 6}, {2, 5}} {
		if r.Add(c.add); r.Value() != c.want {
			t.Errorf("after %v: %v, want %v", c.add, r.Value(), c.want)
		}
	}
}

func TestConfusion(t *testing.T) {
	c := NewConfusion(3)
	if c.Accuracy() != 0 || c.Precision(0) != 0 || c.Recall(0) != 0 {
		t.Error("of nothing, a share is not 0")
	}
	for _, pair := range [][2]int{{0, 0}, {0, 1}, {1, 1}, {1, 1}, {2, 1}, {-1, 0}, {0, 3}} {
		c.Add(pair[0], pair[1])
	}
	if c.Accuracy() != 0.6 || c.Precision(1) != 0.5 || c.Recall(0) != 0.5 || c.Count(2, 1) != 1 {
		t.Errorf("accuracy %v, precision %v, recall %v", c.Accuracy(), c.Precision(1), c.Recall(0))
	}
}
