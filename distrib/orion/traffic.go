package orion

// Placement is where the elements of an array are while a loop runs (section 5.3.4).
type Placement int

// What becomes of arrays: divided by space, or by time; or not at all, so that servers have it.
const (
	Stays Placement = iota
	Rotates
	Served
)

// String is the name of a placement.
func (p Placement) String() string { return [...]string{"stays", "rotates", "served"}[p] }

// Traffic is what a worker receives and sends to servers of an array in one pass over the loop, at
// most. With P workers:
//
//   - An array divided by the space dimension stays: every reference has that index at one place.
//     Where references add different constants to it, what lies between them is copied at both ends
//     of each part.
//   - One divided by the time dimension rotates: all of it comes by each worker once.
//   - Any other is served: a worker reads once what it may need, and sends once what it may write.
//     Where a subscript is the index that divides space, that is one part in P of its values.
//
// One worker receives nothing.
type Traffic struct {
	Array     string
	Placement Placement
	Elements  int64
	Bytes     int64
}

// elements is the sum, which is what a choice makes least.
func elements(all []Traffic) (n int64) {
	for _, t := range all {
		n += t.Elements
	}
	return n
}

// traffic is what workers receive of each array that is used.
func (c *Choice) traffic(x candidate) (all []Traffic) {
	for i, a := range c.Loop.Arrays {
		var refs []Ref
		for _, r := range c.Loop.Refs {
			if r.Array == i {
				refs = append(refs, r)
			}
		}
		if refs == nil {
			continue
		}
		t := c.trafficOf(a, refs, only(x.space), only(x.time))
		if t.Array = a.Name; c.Workers == 1 || c.Kind == Serial {
			t.Placement, t.Elements = Stays, 0
		}
		t.Bytes = t.Elements * a.Bytes
		all = append(all, t)
	}
	return all
}

func (c *Choice) trafficOf(a Array, refs []Ref, space, time int) Traffic {
	if between, ok := divided(a, refs, space); ok {
		return Traffic{Placement: Stays, Elements: min(2*between, a.Elements())}
	}
	if between, ok := divided(a, refs, time); ok {
		return Traffic{Placement: Rotates, Elements: a.Elements() + between}
	}
	t := Traffic{Placement: Served}
	var reads, writes int64
	for _, r := range refs {
		if r.Access == Read {
			reads += c.needed(a, r, space)
		} else {
			writes += c.needed(a, r, space)
		}
	}
	t.Elements = min(reads, a.Elements()) + min(writes, a.Elements())
	return t
}

// divided reports whether all references have the index of a dimension at the same place of an
// array, and how many elements lie between the first and the last of them.
func divided(a Array, refs []Ref, dim int) (between int64, ok bool) {
	for k, size := range a.Shape {
		first, last, all := int64(maxSize), int64(-maxSize), dim >= 0
		for _, r := range refs {
			s := r.At[k]
			all = all && s.Form == Index && s.Dim == dim
			first, last = min(first, s.Add), max(last, s.Add)
		}
		if all {
			return min(last-first, size) * (a.Elements() / size), true
		}
	}
	return 0, false
}

// needed is how many elements a worker uses by a reference, at most.
func (c *Choice) needed(a Array, r Ref, space int) int64 {
	n := int64(1)
	for k, s := range r.At {
		v := c.Loop.values(a, k, s)
		values := v.to - v.from + 1
		if s.Form == Index && s.Dim == space {
			values = (values + int64(c.Workers) - 1) / int64(c.Workers)
		}
		n *= values
	}
	return n
}
