package orion

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// some are a few of a loop's points, more of them at small indices, or nil for all.
func some(rng *rand.Rand, l *Loop) [][]int64 {
	if rng.IntN(2) == 0 {
		return nil
	}
	return slices.DeleteFunc(all(l), func(p []int64) bool { return rng.Int64N(2+p[0]) > 0 })
}

// scheduled is a random loop with its schedule, its points and the pairs that depend.
func scheduled(t *testing.T, rng *rand.Rand, n int) (*Schedule, [][]int64, map[[2]int]bool) {
	l := valid(rng, n%2 == 0)
	c, err := Choose(l, Options{Workers: 1 + rng.IntN(4)})
	if err != nil {
		t.Fatal(err)
	}
	points := some(rng, l)
	s := c.Schedule(points)
	if points == nil {
		points = all(l)
	}
	return s, points, dependent(l, points)
}

// TestSchedulesAreSound: no two dependent iterations run at the same time, and they keep their
// order in loops that have one, by what happens before what: a worker's blocks, and the waits.
func TestSchedulesAreSound(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	kinds := map[Kind]int{}
	for n := range longtest.Count(1000, 12000) {
		s, points, pairs := scheduled(t, rng, n)
		kinds[s.Kind]++
		if why := broken(s, points, pairs); why != "" {
			t.Fatalf("case %d: %s: %s, of\n%s%v, %d workers", n, s.Kind, why, s.Loop, s.Vectors,
				s.Workers)
		}
	}
	for k := Serial; k <= Unimodular; k++ {
		if kinds[k] == 0 {
			t.Errorf("no loop is %s: %v", k, kinds)
		}
	}
}

// TestWaitsAreNeeded is the control of the test above: without waits, and without the look at
// vectors, it finds loops that are broken.
func TestWaitsAreNeeded(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	waits, blind := map[Kind]int{}, 0
	for n := range longtest.Count(1000, 3000) {
		s, points, pairs := scheduled(t, rng, n)
		for _, blocks := range s.Blocks {
			for i := range blocks {
				blocks[i].After = nil
			}
		}
		if broken(s, points, pairs) != "" {
			waits[s.Kind]++
		}
		c := &Choice{Loop: s.Loop, Workers: s.Workers}
		if c.consider(OneD, sides{-1, -1}); c.Kind == OneD &&
			broken(c.Schedule(nil), points, pairs) != "" {
			blind++
		}
	}
	for _, k := range []Kind{Rotation, Wavefront, Unimodular} {
		if waits[k] == 0 {
			t.Errorf("without waits, no %s is broken: %v", k, waits)
		}
	}
	if blind == 0 || waits[OneD]+waits[DataParallel]+waits[Serial] > 0 {
		t.Errorf("%d are broken without a look at vectors; %v", blind, waits)
	}
}

// TestUnimodular: time is positive for every difference that a vector covers, space never negative,
// and, with one more row where there are three dimensions, they are a matrix of determinant 1 or
// -1.
func TestUnimodular(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	found := map[int]int{}
	for n := range longtest.Count(2000, 12000) {
		s, points, _ := scheduled(t, rng, n)
		if s.Kind != Unimodular {
			continue
		}
		found[len(s.Space)]++
		for _, p := range points {
			d := minus(p, points[0])
			for _, v := range s.Vectors {
				if v.covers(d) && (dot(s.Time, d) <= 0 || dot(s.Space, d) < 0) {
					t.Fatalf("%v and %v of %v, which %s covers", s.Time, s.Space, d, v)
				}
			}
		}
		if !completes(s.Time, s.Space) {
			t.Fatalf("%v and %v are rows of no unimodular matrix", s.Time, s.Space)
		}
	}
	if found[2] == 0 || found[3] == 0 {
		t.Errorf("%v", found)
	}
}

// completes looks for a third row, if there is to be one, by trying.
func completes(a, b []int64) bool {
	if len(a) == 2 {
		det := a[0]*b[1] - a[1]*b[0]
		return det == 1 || det == -1
	}
	for n := range int64(7 * 7 * 7) {
		c := []int64{n%7 - 3, n/7%7 - 3, n/49 - 3}
		det := a[0]*(b[1]*c[2]-b[2]*c[1]) - a[1]*(b[0]*c[2]-b[2]*c[0]) + a[2]*(b[0]*c[1]-b[1]*c[0])
		if det == 1 || det == -1 {
			return true
		}
	}
	return false
}

// TestLeast: what a combination is at least, of vectors with entries of all forms.
func TestLeast(t *testing.T) {
	c := &Choice{Vectors: []Vector{{{N: 2}, {Form: Positive}, {}}, {{}, {N: 3}, {Form: Any}}}}
	for _, x := range []struct {
		row     []int64
		least   int64
		bounded bool
	}{{[]int64{1, 1, 0}, 3, true}, {[]int64{-1, 1, 0}, -1, true}, {[]int64{1, -1, 0}, 0, false},
		{[]int64{1, 1, 1}, 0, false}, {[]int64{2, 0, 0}, 0, true}} {
		if least, bounded := c.least(x.row); least != x.least || bounded != x.bounded {
			t.Errorf("%v: %d, %v", x.row, least, bounded)
		}
	}
}

const (
	factorisation = `{"space": ["i 600", "j 900"], "arrays": [{"name": "W", "shape": [600, 10]},
		{"name": "H", "shape": [900, 10]}], "body": ["read W[i, :]", "write W[i, :]",
		"read H[j, :]", "write H[j, :]"]}`
	stencil = `{"ordered": true, "space": ["i 40", "j 40"],
		"arrays": [{"name": "A", "shape": [40, 40]}],
		"body": ["write A[i, j]", "read A[i-1, j+1]", "read A[i-1, j]", "read A[i, j-1]"]}`
	regression = `{"space": ["n 100"], "arrays": [{"name": "V", "shape": [1000]}],
		"body": ["read V[?]", "buffer V[?]"]}`
)

// TestChoices: which kind loops get, by which dimensions, what of their arrays moves, and that what
// is asked for is done or refused.
func TestChoices(t *testing.T) {
	ordered := strings.Replace(factorisation, "{", `{"ordered": true, `, 1)
	for _, c := range []struct {
		loop string
		o    Options
		want string
	}{
		{factorisation, Options{Workers: 4}, "2D without an order (rotation) [0 1] [1 0] 6000"},
		{factorisation, Options{Workers: 4, Space: "i"},
			"2D without an order (rotation) [1 0] [0 1] 9000"},
		{ordered, Options{Workers: 4}, "2D with an order (wavefront) [0 1] [1 0] 6000"},
		{ordered, Options{Workers: 1}, "2D with an order (wavefront) [1 0] [0 1] 0"},
		{factorisation, Options{Workers: 4, Space: "k"},
			`space: the loop has no dimension "k": want i, j`},
		{factorisation, Options{Workers: 4, Space: "i", Time: "i"}, "space and time are both i: " +
			"want two dimensions"},
		{factorisation, Options{}, "0 workers: want 1 to 256"},
		{stencil, Options{Workers: 2}, "unimodular, then a wavefront [1 0] [2 1] 80"},
		{stencil, Options{Workers: 2, Space: "j"}, "the loop cannot be divided by space j: 1D: " +
			"i is not 0 in (1, -1), j is not 0 in (0, 1); 2D without an order (rotation): the " +
			"loop is ordered; 2D with an order (wavefront): (1, -1) is negative in one of " +
			"i and j; unimodular, then a wavefront: sound, but not by the " +
			"dimensions that were asked for"},
		{regression, Options{Workers: 4}, "data parallel [1] [0] 2000"},
		{strings.Replace(regression, "buffer", "write", 1), Options{Workers: 4},
			"serial [0] [0] 0"},
		{strings.Replace(regression, "100", "1", 1), Options{Workers: 4}, "serial [0] [0] 0"},
	} {
		x, err := Choose(parse(t, c.loop), c.o)
		have := fmt.Sprint(err)
		if err == nil {
			have = fmt.Sprint(x.Kind, " ", x.Space, " ", x.Time, " ", elements(x.Traffic))
		}
		if have != c.want {
			t.Errorf("%v: %s\nwant %s", c.o, have, c.want)
		}
	}
}

// TestRotation: as in figure 5.13, four workers begin with two parts of time each, go on with the
// next worker's, and wait for that alone, for what it has left a step ago.
func TestRotation(t *testing.T) {
	c, err := Choose(parse(t, strings.Replace(factorisation, "j 900", "j 800", 1)),
		Options{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Schedule(nil)
	for w, blocks := range s.Blocks {
		for i, b := range blocks {
			step := i / 2 // two parts of space
			if b.Step != step || b.Time != (2*w+step)%8 || b.Space != w+4*(i%2) {
				t.Errorf("worker %d, block %d: %v", w, i, b)
			}
			if late := step >= 2 && i%2 == 0; late != (b.After != nil) ||
				late && *b.After != (Place{(w + 1) % 4, 2*(step-2) + 1}) {
				t.Errorf("worker %d, block %d waits for %v", w, i, b.After)
			}
		}
	}
}

// TestBalance: where half of all points have one index, it is alone, and the others are divided.
func TestBalance(t *testing.T) {
	l := parse(t, factorisation)
	c, err := Choose(l, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	var points [][]int64
	for i := range int64(600) {
		points = append(points, []int64{i, 0}, []int64{i, 1 + i*899/600})
	}
	slices.SortFunc(points, slices.Compare)
	s := c.Schedule(points)
	if !slices.Equal(s.weights(slices.Values(points)), []int64{600, 200, 200, 200}) {
		t.Errorf("cuts %v: %v", s.Across.Cuts, s.weights(slices.Values(points)))
	}
	if loads := s.Loads(points); !slices.Equal(loads, []int64{600, 600}) {
		t.Errorf("loads %v", loads)
	}
	for _, c := range []struct {
		histogram []int64
		parts     int
		want      []int64
	}{
		{[]int64{1, 1, 1, 1}, 2, []int64{0, 2, 4}}, {[]int64{9, 0, 0}, 3, []int64{0, 1, 2, 3}},
		{[]int64{0, 0, 9}, 3, []int64{0, 1, 2, 3}}, {[]int64{5, 1, 1, 5}, 2, []int64{0, 2, 4}},
		{[]int64{0, 0, 0}, 1, []int64{0, 3}}, {[]int64{8, 1, 1, 1, 1}, 2, []int64{0, 1, 5}},
		{[]int64{8, 0, 1, 1, 1, 1}, 3, []int64{0, 1, 4, 6}},
	} {
		if have := balanced(c.histogram, c.parts); !slices.Equal(have, c.want) {
			t.Errorf("%v in %d: %v, want %v", c.histogram, c.parts, have, c.want)
		}
	}
}
