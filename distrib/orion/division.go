package orion

import "slices"

// division is what becomes of an array's elements while several processes run a loop.
type division struct {
	how   howDivided
	place int // of the index that divides it
	add   int64
}

type howDivided int

// An array that is not changed is the same for all. One of which all references have the index of
// space at one place, with the same number added, is divided by it; and likewise by time. Any other
// is shared: all workers have all of it, and say what they change.
const (
	unchanged howDivided = iota
	stays
	rotates
	shares
	whole // stays with the only worker that there is
)

// divisions are those of all arrays.
func (s *Schedule) divisions() []division {
	list := make([]division, len(s.Loop.Arrays))
	for i, a := range s.Loop.Arrays {
		var refs []Ref
		for _, r := range s.Loop.Refs {
			if r.Array == i && r.Access != Buffer {
				refs = append(refs, r)
			}
		}
		switch {
		case !slices.ContainsFunc(refs, func(r Ref) bool { return r.Access == Write }):
		case len(s.Blocks) == 1:
			list[i].how = whole
		default:
			list[i] = divisionOf(a, refs, only(s.Space), only(s.Time))
		}
	}
	return list
}

func divisionOf(a Array, refs []Ref, space, time int) division {
	by := func(how howDivided, dim int) division {
		for k := range a.Shape {
			first := refs[0].At[k]
			other := func(r Ref) bool { return r.At[k] != first }
			if dim >= 0 && first.Form == Index && first.Dim == dim &&
				!slices.ContainsFunc(refs, other) {
				return division{how, k, first.Add}
			}
		}
		return division{how: shares}
	}
	if d := by(stays, space); d.how == stays {
		return d
	}
	return by(rotates, time)
}

// shared are the arrays that are.
func shared(arrays []division) []bool {
	list := make([]bool, len(arrays))
	for i, d := range arrays {
		list[i] = d.how == shares
	}
	return list
}

// part is the elements of a part of an axis, of all arrays that are divided by it.
func (s *Schedule) part(arrays []division, how howDivided, axis Axis, part int) (all []Elements) {
	for i, d := range arrays {
		a := s.Loop.Arrays[i]
		switch {
		case d.how == how:
			all = append(all, a.slab(i, d.place, axis.Cuts[part]+d.add, axis.Cuts[part+1]+d.add)...)
		case part == 0 && how == stays && (d.how == whole || d.how == shares):
			all = append(all, Elements{i, 0, a.Elements()})
		}
	}
	return all
}

// slab is the elements of an array with an index from one to below another.
func (a Array) slab(number, place int, from, to int64) (all []Elements) {
	size, outer, inner := a.Shape[place], int64(1), int64(1)
	for _, n := range a.Shape[:place] {
		outer *= n
	}
	for _, n := range a.Shape[place+1:] {
		inner *= n
	}
	from, to = max(from, 0), min(to, size)
	for o := range outer {
		if from < to {
			all = append(all, Elements{number, (o*size + from) * inner, (to - from) * inner})
		}
	}
	return all
}
