package orion

import (
	"encoding/binary"
	"errors"
)

// What a trial takes at most: elements of all arrays, and uses of one in a pass.
const (
	maxTrial = 1 << 24
	maxUses  = 1 << 30
)

// Trial is numbers for the arrays of a loop, and a body that uses them as the loop declares. What
// an iteration writes is a hash of all that it has read, so that the bits at the end are others if
// dependent iterations ran in another order, or at the same time.
type Trial struct {
	loop    *Loop
	data    [][]uint64         // of each array
	buffers []map[place]uint64 // of each worker: what is added at the end of the pass
}

// place is an element: the number of its array, and its own.
type place struct{ array, element int }

// NewTrial is a trial for workers, before a pass over so many iterations. Loops that are too large
// to try are an error.
func NewTrial(l *Loop, workers, iterations int) (*Trial, error) {
	t := &Trial{loop: l, buffers: make([]map[place]uint64, workers)}
	var elements, uses int64
	for _, a := range l.Arrays {
		if elements += a.Elements(); elements > maxTrial {
			return nil, errors.New("the loop's arrays are too large to try it: want 16 million " +
				"elements at most")
		}
		data := make([]uint64, a.Elements())
		for i := range data {
			data[i] = mix(uint64(i))
		}
		t.data = append(t.data, data)
	}
	for _, r := range l.Refs {
		n := int64(iterations)
		for k, s := range r.At {
			if s.Form == All {
				n *= l.Arrays[r.Array].Shape[k] // of 16 million at most
			}
		}
		if uses += n; uses > maxUses {
			return nil, errors.New("the loop uses too many elements to try it: want a " +
				"billion at most")
		}
	}
	for w := range t.buffers {
		t.buffers[w] = map[place]uint64{}
	}
	return t, nil
}

// mix is a bijection that leaves no pattern (SplitMix64's, of G. Steele and others).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Body reads, then writes and buffers.
func (t *Trial) Body(it *Iteration) error {
	h := uint64(0)
	for _, x := range it.Index {
		h = mix(h ^ uint64(x))
	}
	draw := h // says what is at unknown subscripts
	for i, r := range t.loop.Refs {
		if r.Access == Read {
			t.each(it, r, draw+uint64(i), func(at place) {
				h = mix(h ^ t.data[at.array][at.element])
			})
		}
	}
	for i, r := range t.loop.Refs {
		if r.Access != Read {
			t.each(it, r, draw+uint64(i), func(at place) {
				value := mix(h ^ uint64(at.element))
				if r.Access == Buffer {
					t.buffers[it.Worker][at] += value
				} else {
					t.data[at.array][at.element] = value
				}
			})
		}
	}
	return nil
}

// each announces and visits the elements of a reference that there are. A subscript that is unknown
// is drawn.
func (t *Trial) each(it *Iteration, r Ref, draw uint64, visit func(place)) {
	array := t.loop.Arrays[r.Array]
	at := make([]int64, len(r.At))
	var from func(k int, element int64)
	from = func(k int, element int64) {
		if k == len(at) {
			it.Use(r.Access, array.Name, at...)
			visit(place{r.Array, int(element)})
			return
		}
		s, size := r.At[k], array.Shape[k]
		first, last := s.Add, s.Add
		switch s.Form {
		case Index:
			first += it.Index[s.Dim]
			last = first
		case All:
			first, last = 0, size-1
		case Unknown:
			first = int64(mix(draw+uint64(k)<<32) % uint64(size))
			last = first
		}
		for x := max(first, 0); x <= min(last, size-1); x++ {
			at[k] = x
			from(k+1, element*size+x)
		}
	}
	from(0, 0)
}

// Finish applies what is buffered, and is a hash of all bits.
func (t *Trial) Finish() uint64 {
	for _, b := range t.buffers {
		for at, x := range b {
			t.data[at.array][at.element] += x
		}
		clear(b)
	}
	sum := uint64(0)
	for _, data := range t.data {
		for _, x := range data {
			sum = mix(sum ^ x)
		}
	}
	return sum
}

// TrialBytes is how many bytes an element of a trial has.
const TrialBytes = 8

// Load appends numbers: a [Memory] of a loop whose elements have [TrialBytes].
func (t *Trial) Load(b []byte, array int, from, n int64) []byte {
	for _, x := range t.data[array][from:][:n] {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

// Store takes numbers.
func (t *Trial) Store(array int, from, n int64, b []byte) {
	for i := range t.data[array][from:][:n] {
		t.data[array][from+int64(i)] = binary.LittleEndian.Uint64(b[TrialBytes*i:])
	}
}

// Join takes what a worker has buffered, in a trial of its own.
func (t *Trial) Join(worker int, own *Trial) { t.buffers[worker] = own.buffers[worker] }
