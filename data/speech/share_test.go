package speech

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestShare: a larger share holds out what a smaller one does, the order of the rest is
// what it was, and 1/50 is the default.
func TestShare(t *testing.T) {
	var comments []string
	for i := range 300 {
		comments = append(comments, fmt.Sprintf("It says %c%c.", 'a'+i%26, 'a'+i/26))
	}
	goTree(t, comments...)
	plain := open(t, "formant", Options{})
	same := func(a, b Utterance) bool { return a.Text == b.Text && a.Frames == b.Frames }
	smaller := plain.HeldOut
	for _, share := range []float64{0.02, 0.2, 0.6} {
		s := open(t, "formant", Options{EvalShare: share})
		for _, u := range smaller {
			if !slices.ContainsFunc(s.HeldOut, func(v Utterance) bool { return same(u, v) }) {
				t.Errorf("%v does not hold out %q, a smaller share does", share, u.Text)
			}
		}
		if share == 0.02 && !slices.EqualFunc(s.Train, plain.Train, same) {
			t.Errorf("1/50 is not the default: %s, %s", s.Info, plain.Info)
		}
		n, all := len(s.HeldOut), float64(s.Info.Pairs)
		if n != s.Info.HeldOut || len(s.Train)+n != s.Info.Pairs || s.Info.Pairs < 200 ||
			math.Abs(float64(n)-share*all) > 5*math.Sqrt(all*share) {
			t.Errorf("%v: %s", share, s.Info)
		}
		smaller = s.HeldOut
	}
	for _, share := range []float64{math.NaN(), -0.5, 1, math.Inf(1)} {
		_, err := Open(context.Background(), "formant", Options{EvalShare: share}, nil)
		if err == nil || !strings.Contains(err.Error(), "give a number above 0, below 1") {
			t.Errorf("%v: %v", share, err)
		}
	}
}
