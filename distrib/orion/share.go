package orion

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// sharing is what a worker knows of changes to arrays that are neither divided by space nor by
// time. Within a pass, changes go with the parts of time along which workers wait for each other,
// and with them those of workers before, so that whoever may read an element has what came before;
// after it, all tell all what they have changed.
type sharing struct {
	*Worker
	ahead []change // that the next worker does not know
	mine  []wrote  // in this pass
}

// change is new values of elements, made by a worker.
type change struct {
	rank int
	Elements
	b []byte
}

// wrote is that elements were changed in a step.
type wrote struct {
	Elements
	step int
}

// note takes down what a block has changed, as the loop declares it.
func (s *sharing) note(index int) {
	t := s.route.turns[index]
	for _, e := range s.written(s.Points(index)) {
		s.mine = append(s.mine, wrote{e, t.Step})
		s.ahead = append(s.ahead, change{s.Group.Rank(), e, s.load([]Elements{e})})
	}
}

// written are the elements of shared arrays that iterations may write, each once.
func (s *sharing) written(points iter.Seq[[]int64]) (list []Elements) {
	seen := make([]map[int64]bool, len(s.Loop.Arrays))
	for p := range points {
		for _, r := range s.Loop.Refs {
			if r.Access != Write || !s.route.shared[r.Array] {
				continue
			}
			if seen[r.Array] == nil {
				seen[r.Array] = map[int64]bool{}
			}
			s.Loop.elements(r, p, func(e int64) { seen[r.Array][e] = true })
		}
	}
	for array, set := range seen {
		var all []int64
		for e := range set {
			all = append(all, e)
		}
		slices.Sort(all)
		for _, e := range all {
			if last := len(list) - 1; last >= 0 && list[last].Array == array &&
				list[last].From+list[last].N == e {
				list[last].N++
				continue
			}
			list = append(list, Elements{array, e, 1})
		}
	}
	return list
}

// elements visits those that a reference of an iteration may be to.
func (l *Loop) elements(r Ref, index []int64, visit func(int64)) {
	shape := l.Arrays[r.Array].Shape
	var from func(k int, element int64)
	from = func(k int, element int64) {
		if k == len(shape) {
			visit(element)
			return
		}
		first, last := int64(0), shape[k]-1
		switch s := r.At[k]; s.Form {
		case Index:
			first = index[s.Dim] + s.Add
			last = first
		case Constant:
			first, last = s.Add, s.Add
		}
		for x := max(first, 0); x <= min(last, shape[k]-1); x++ {
			from(k+1, element*shape[k]+x)
		}
	}
	from(0, 0)
}

// give is the bytes of what the next worker does not know, but for its own changes.
func (s *sharing) give(to int) (b []byte) {
	for _, c := range s.ahead {
		if c.rank != to {
			b = appendChange(b, c.rank, c.Elements, c.b)
		}
	}
	s.ahead = nil
	return b
}

// take takes changes.
func (s *sharing) take(b []byte) error {
	return s.changes(b, func(rank int, e Elements, b []byte) {
		s.Memory.Store(e.Array, e.From, e.N, b)
		s.ahead = append(s.ahead, change{rank, e, b})
	})
}

// settle has all workers have what all have changed in a pass: they write it in the order of the
// steps, by which all that write an element come one after the other.
func (s *sharing) settle(ctx context.Context) error {
	me := s.Group.Rank()
	var own []byte
	for _, x := range s.mine {
		own = appendChange(own, x.step, x.Elements, s.load([]Elements{x.Elements}))
	}
	for rank := range s.Workers {
		if rank != me {
			s.sending.do(func(ctx context.Context) error {
				return s.send(ctx, rank, settleTag, own)
			})
		}
	}
	var all []change
	for rank := range s.Workers {
		b, err := own, error(nil)
		if rank != me {
			b, err = s.receive(ctx, rank, settleTag)
		}
		if err == nil {
			err = s.changes(b, func(step int, e Elements, b []byte) {
				all = append(all, change{step, e, b})
			})
		}
		if err != nil {
			return err
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return a.rank - b.rank })
	for _, c := range all {
		s.Memory.Store(c.Array, c.From, c.N, c.b)
	}
	s.mine, s.ahead = nil, nil
	return nil
}

// appendChange writes a change down: a rank or step, the array, the elements and their bytes.
func appendChange(b []byte, rank int, e Elements, data []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(le.AppendUint32(b, uint32(rank)), uint32(e.Array))
	b = le.AppendUint64(le.AppendUint64(b, uint64(e.From)), uint64(e.N))
	return append(b, data...)
}

// errChanges is what is said of bytes that are no changes.
var errChanges = errors.New("another worker says what is no change of an array of the loop")

// changes reads what appendChange wrote.
func (s *sharing) changes(b []byte, each func(rank int, e Elements, b []byte)) error {
	const head = 24
	le := binary.LittleEndian
	for len(b) > 0 {
		if len(b) < head {
			return errChanges
		}
		e := Elements{int(le.Uint32(b[4:])), int64(le.Uint64(b[8:])), int64(le.Uint64(b[16:]))}
		if e.Array >= len(s.route.shared) || !s.route.shared[e.Array] {
			return errChanges
		}
		a := s.Loop.Arrays[e.Array]
		if e.From < 0 || e.N < 1 || e.From > a.Elements()-e.N ||
			int64(len(b)-head) < e.N*a.Bytes {
			return errChanges
		}
		n := head + int(e.N*a.Bytes)
		each(int(le.Uint32(b)), e, b[head:n])
		b = b[n:]
	}
	return nil
}

// mostChanges is the most bytes of changes at once.
const mostChanges = 1 << 30

// send sends bytes whose number the other does not know.
func (s *sharing) send(ctx context.Context, to int, tag uint64, b []byte) error {
	if len(b) > mostChanges {
		return fmt.Errorf("%d bytes of changes to arrays that are not divided: want %d at most",
			len(b), mostChanges)
	}
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(b)))
	if err := s.Group.Send(ctx, to, tag, head); err != nil {
		return err
	}
	return s.Group.Send(ctx, to, tag, b)
}

// receive receives them.
func (s *sharing) receive(ctx context.Context, from int, tag uint64) ([]byte, error) {
	head := make([]byte, 8)
	if err := s.Group.Recv(ctx, from, tag, head); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head)
	if n > mostChanges {
		return nil, errChanges
	}
	b := make([]byte, n)
	return b, s.Group.Recv(ctx, from, tag, b)
}
