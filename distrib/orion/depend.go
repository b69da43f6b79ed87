package orion

import (
	"fmt"
	"slices"
	"strings"
)

// Entry is one of a dependence vector's.
type Entry struct {
	Form EntryForm
	N    int64 // of a number
}

// EntryForm is what an entry may be.
type EntryForm int

// The forms of entries: one number, any, or any from 1.
const (
	Number EntryForm = iota
	Any
	Positive
)

// String is a number, any or +.
func (e Entry) String() string {
	switch e.Form {
	case Any:
		return "any"
	case Positive:
		return "+"
	}
	return fmt.Sprint(e.N)
}

// zero reports whether an entry is 0 and nothing else.
func (e Entry) zero() bool { return e == Entry{} }

// negative reports whether an entry may be.
func (e Entry) negative() bool { return e.Form == Any || e.Form == Number && e.N < 0 }

// has reports whether an entry stands for a number.
func (e Entry) has(n int64) bool {
	return e.Form == Any || e.Form == Positive && n > 0 || e.Form == Number && n == e.N
}

// Vector is the difference that an iteration may have from an earlier one that it depends on, an
// entry for each dimension of the loop. The first that is not 0 is positive.
type Vector []Entry

// String is the entries in parentheses.
func (v Vector) String() string {
	words := make([]string, len(v))
	for i, e := range v {
		words[i] = e.String()
	}
	return "(" + strings.Join(words, ", ") + ")"
}

// Vectors are all that dependences of a loop may have, sorted, no two the same: Algorithm 3 with
// the repairs that the package's comment lists.
func (l *Loop) Vectors() []Vector {
	var all []Vector
	for i, a := range l.Refs {
		for _, b := range l.Refs[i:] {
			if a.Array != b.Array || a.Access == Buffer || b.Access == Buffer ||
				a.Access == Read && b.Access == Read {
				continue
			}
			if v := l.between(a, b); v != nil {
				all = append(all, positive(v)...)
			}
		}
	}
	slices.SortFunc(all, compare)
	return distinct(all)
}

// between is the difference of an iteration in which b is the same element as a is in another one,
// and nil if there is none.
func (l *Loop) between(a, b Ref) Vector {
	v := make(Vector, len(l.Space))
	for k := range v {
		if v[k].Form = Any; l.Space[k].Size == 1 {
			v[k].Form = Number
		}
	}
	array := l.Arrays[a.Array]
	for k, s := range a.At {
		t := b.At[k]
		if both := l.values(array, k, s).and(l.values(array, k, t)); both.from > both.to {
			return nil
		}
		if s.Form != Index || t.Form != Index || s.Dim != t.Dim {
			continue
		}
		distance := s.Add - t.Add
		if !v[s.Dim].has(distance) {
			return nil
		}
		v[s.Dim] = Entry{N: distance}
	}
	return v
}

// positive are the lexicographically positive vectors among those that v stands for and those that
// it does with the other sign, without what is all 0.
func positive(v Vector) []Vector {
	k := slices.IndexFunc(v, func(e Entry) bool { return !e.zero() })
	switch {
	case k < 0:
		return nil
	case v[k].Form == Number && v[k].N > 0:
		return []Vector{v}
	case v[k].Form == Number:
		return []Vector{negated(v)}
	}
	first, second, rest := slices.Clone(v), negated(v), slices.Clone(v)
	first[k], second[k], rest[k] = Entry{Form: Positive}, Entry{Form: Positive}, Entry{}
	return append(positive(rest), first, second)
}

// negated is a vector, without positive entries, with the other sign.
func negated(v Vector) Vector {
	out := slices.Clone(v)
	for k := range out {
		out[k].N = -out[k].N
	}
	return out
}

// compare orders vectors: numbers, any, positive ones.
func compare(a, b Vector) int {
	return slices.CompareFunc(a, b, func(x, y Entry) int {
		if x.Form != y.Form {
			return int(x.Form) - int(y.Form)
		}
		switch {
		case x.N < y.N:
			return -1
		case x.N > y.N:
			return 1
		}
		return 0
	})
}

// distinct leaves out vectors that another one covers.
func distinct(sorted []Vector) []Vector {
	sorted = slices.CompactFunc(sorted, func(a, b Vector) bool { return slices.Equal(a, b) })
	return slices.DeleteFunc(slices.Clone(sorted), func(v Vector) bool {
		return slices.ContainsFunc(sorted, func(w Vector) bool {
			return !slices.Equal(v, w) && w.contains(v)
		})
	})
}

// contains reports whether all that v stands for is what w does.
func (w Vector) contains(v Vector) bool {
	for k, e := range w {
		switch {
		case e.Form == Any || e == v[k]:
		case e.Form == Positive && v[k].Form == Number && v[k].N > 0:
		default:
			return false
		}
	}
	return true
}
