package lda

import (
	"context"
	"encoding/binary"
	"fmt"
)

// perPart is how many slices there are for each part. A worker has as many for each of its own
// parts, so that it visits one while another is on its way to it.
const perPart = 2

// visited is the slice that a part visits in a step.
func (m *Model) visited(part, step int) int { return (perPart*part + step) % (perPart * m.Parts) }

// home is the slices that a worker begins with.
func (m *Model) home() span { return span{perPart * m.own.from, perPart * m.own.to} }

// rotation is a number of steps, in each of which every part visits a slice. A worker waits for one
// other at a time, and only for what that one had a step ago.
type rotation struct {
	*Model
	*mail
	step int // how many were done
	leg  int // the same of legs

	// What the parts that are here have changed of the topic summary, in this leg and in the last.
	told [2][]int32
}

// rotate has slices go round, as something is done, until they are at home again.
func (m *Model) rotate(ctx context.Context, do func(r *rotation) error) error {
	r := &rotation{Model: m, mail: m.mailing(ctx)}
	for i := range r.told {
		r.told[i] = make([]int32, m.Topics)
	}
	err := do(r)
	for step := r.step; step < r.step+perPart && err == nil; step++ {
		err = r.fetch(step)
	}
	return r.end(err)
}

// tagOf is the tag of a message of a step or leg.
func tagOf(tag uint64, number int) uint64 { return tag + uint64(number%atOnce) }

// next has each part visit the slice whose turn it is. It takes one from the worker behind, and
// hands one on to the worker before.
func (r *rotation) next(visit func(thread, part int, s *slice) error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.step >= perPart {
		if err := r.fetch(r.step); err != nil {
			return err
		}
	}
	err := r.each(func(thread, part int) error {
		return visit(thread, part, r.slices[r.visited(part, r.step)])
	})
	if err == nil && !r.alone() {
		leaves := r.visited(r.own.from, r.step)
		n, rank := r.Model.group.Size(), r.Model.group.Rank()
		err = r.post((rank+n-1)%n, tagOf(tagSlice, r.step), r.slices[leaves].append(nil))
		r.slices[leaves] = nil
	}
	r.step++
	return err
}

// fetch takes the slice that the last part here visits in a step.
func (r *rotation) fetch(step int) error {
	if r.alone() {
		return nil
	}
	b, err := r.take((r.Model.group.Rank()+1)%r.Model.group.Size(), tagOf(tagSlice, step-perPart))
	if err != nil {
		return err
	}
	s, err := readSlice(b, r.Topics)
	r.slices[r.visited(r.own.to-1, step)] = s
	return err
}

// The topic summary is used by all. Steps are in legs of perPart, and in a leg a part knows its own
// changes, and those of the others up to the leg before the last: so there is a leg's time for them
// to come, and what a part knows does not depend on when they do.

// begin begins a leg.
func (r *rotation) begin() error {
	if r.leg >= 2 {
		if err := r.learn(r.leg - 2); err != nil {
			return err
		}
	}
	for _, s := range r.samplers[r.own.from:r.own.to] {
		s.begin(r.all, r.leg == 0)
	}
	return nil
}

// tell ends a leg: the others are told what the parts here have changed.
func (r *rotation) tell() error {
	sum := r.told[r.leg%2]
	clear(sum)
	for _, s := range r.samplers[r.own.from:r.own.to] {
		s.end(r.all, sum)
	}
	r.leg++
	return r.toAll(tagOf(tagSummary, r.leg-1), appendSummary(nil, sum))
}

// appendSummary appends numbers of tokens by topic, as others read them.
func appendSummary(b []byte, sum []int32) []byte {
	for _, n := range sum {
		b = binary.AppendVarint(b, int64(n))
	}
	return b
}

// add adds what another worker says to the summary.
func (m *Model) add(rank int, b []byte) error {
	for k := range m.all {
		n, size := binary.Varint(b)
		if size <= 0 {
			return fmt.Errorf("lda: worker %d sends a summary of %d topics", rank, k)
		}
		m.all[k], b = m.all[k]+int32(n), b[size:]
	}
	return nil
}

// learn adds what all have changed in a leg to the summary.
func (r *rotation) learn(leg int) error {
	for k, n := range r.told[leg%2] {
		r.all[k] += n
	}
	return r.fromAll(tagOf(tagSummary, leg), r.add)
}

// settle learns what is left to learn.
func (r *rotation) settle() error {
	for leg := max(r.leg-2, 0); leg < r.leg; leg++ {
		if err := r.learn(leg); err != nil {
			return err
		}
	}
	return nil
}
