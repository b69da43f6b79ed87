package orion

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gomem/gomem/internal/longtest"
)

// TestVectorsAreSound: each dependence that brute force finds is covered by a vector, which is
// lexicographically positive.
func TestVectorsAreSound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	found := 0
	for n := range longtest.Count(1000, 12000) {
		l := valid(rng, n%2 == 0)
		points := all(l)
		pairs := dependent(l, points)
		found += len(pairs)
		vectors := l.Vectors()
		if d := uncovered(vectors, points, pairs); d != nil {
			t.Fatalf("case %d: %v is covered by none of %v in\n%s", n, d, vectors, l)
		}
		for _, v := range vectors {
			k := slices.IndexFunc(v, func(e Entry) bool { return !e.zero() })
			if k < 0 || v[k].Form == Any || v[k].Form == Number && v[k].N < 0 {
				t.Fatalf("case %d: %v is not positive", n, v)
			}
		}
	}
	if found == 0 {
		t.Error("no loop has dependences")
	}
}

// TestVectorsAreExact: where subscripts at one place have the same index, and stay within arrays,
// all that a vector covers within the space is the difference of two dependent iterations.
func TestVectorsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for n := range longtest.Count(1000, 12000) {
		l := valid(rng, true)
		points := all(l)
		have := map[string]bool{}
		key := func(d []int64) string { return Vector(numbers(d)).String() }
		for pair := range dependent(l, points) {
			have[key(minus(points[pair[1]], points[pair[0]]))] = true
		}
		vectors := l.Vectors()
		for i, p := range points {
			for _, q := range points[i+1:] {
				d := minus(q, p)
				for _, v := range vectors {
					if v.covers(d) && !have[key(d)] {
						t.Fatalf("case %d: %s covers %v, which is none in\n%s", n, v, d, l)
					}
				}
			}
		}
	}
}

func numbers(d []int64) (v []Entry) {
	for _, x := range d {
		v = append(v, Entry{N: x})
	}
	return v
}

// oneSign are vectors as the thesis corrects them: of those that begin with anything, the ones with
// the other sign in what follows are left out.
func oneSign(vectors []Vector) []Vector {
	return slices.DeleteFunc(slices.Clone(vectors), func(v Vector) bool {
		k := slices.IndexFunc(v, func(e Entry) bool { return !e.zero() })
		return v[k].Form == Positive && slices.ContainsFunc(v[k+1:], func(e Entry) bool {
			return e.Form == Number && e.N < 0
		})
	})
}

// TestOneSignIsUnsound: what the repair is for. With one sign of (any, 1), a dependence is covered
// by no vector, and the schedule that is chosen breaks it.
func TestOneSignIsUnsound(t *testing.T) {
	l := parse(t, `{"ordered": true, "space": ["i 4", "j 4"],
		"arrays": [{"name": "A", "shape": [5]}], "body": ["write A[j]", "read A[j+1]"]}`)
	points := all(l)
	pairs := dependent(l, points)
	schedule := func(vectors []Vector) string {
		c := &Choice{Loop: l, Vectors: vectors, Workers: 2}
		for _, kind := range []Kind{OneD, Wavefront, Unimodular} {
			c.consider(kind, sides{-1, -1})
		}
		if c.Kind == Serial {
			return "serial"
		}
		return broken(c.Schedule(nil), points, pairs)
	}
	kept := l.Vectors()
	if len(kept) != 4 || uncovered(kept, points, pairs) != nil || schedule(kept) != "" {
		t.Errorf("%v: %s", kept, schedule(kept))
	}
	one := oneSign(kept)
	why := schedule(one)
	if len(one) != 3 || uncovered(one, points, pairs) == nil || why == "" || why == "serial" {
		t.Errorf("%v is enough: %s", one, why)
	}
}

func parse(t testing.TB, text string) *Loop {
	t.Helper()
	l, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestKnownVectors: those of the thesis' examples, and of others that are known by hand.
func TestKnownVectors(t *testing.T) {
	for _, c := range []struct {
		name, loop string
		want       []string
	}{
		{"factorisation", `{"space": ["i 8", "j 9"], "arrays": [{"name": "W", "shape": [8, 3]},
			{"name": "H", "shape": [9, 3]}], "body": ["read W[i, :]", "write W[i, :]",
			"read H[j, :]", "write H[j, :]"]}`, []string{"(0, +)", "(+, 0)"}},
		{"buffered", `{"space": ["i 8"], "arrays": [{"name": "W", "shape": [9]}],
			"body": ["read W[?]", "buffer W[?]"]}`, nil},
		{"unknown", `{"space": ["i 8"], "arrays": [{"name": "W", "shape": [9]}],
			"body": ["write W[?]"]}`, []string{"(+)"}},
		{"nine points", `{"space": ["i 8", "j 8"], "arrays": [{"name": "A", "shape": [8, 8]}],
			"body": ["write A[i, j]", "read A[i-1, j-1]", "read A[i-1, j]", "read A[i-1, j+1]",
			"read A[i, j-1]"]}`, []string{"(0, 1)", "(1, -1)", "(1, 0)", "(1, 1)"}},
		{"too far", `{"space": ["i 8"], "arrays": [{"name": "A", "shape": [99]}],
			"body": ["write A[i]", "read A[i+8]"]}`, nil},
		{"apart", `{"space": ["i 8", "j 8"], "arrays": [{"name": "A", "shape": [99]}],
			"body": ["write A[i]", "read A[j+8]"]}`, []string{"(0, +)"}},
		{"both signs", `{"space": ["i 8", "j 8"], "arrays": [{"name": "A", "shape": [9]}],
			"body": ["write A[j]", "read A[j+1]"]}`,
			[]string{"(0, 1)", "(+, -1)", "(+, 0)", "(+, 1)"}},
	} {
		var have []string
		for _, v := range parse(t, c.loop).Vectors() {
			have = append(have, v.String())
		}
		if !reflect.DeepEqual(have, c.want) {
			t.Errorf("%s: %q, want %q", c.name, have, c.want)
		}
	}
}
