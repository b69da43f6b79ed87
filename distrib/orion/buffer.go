package orion

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/gomem/gomem/distrib"
)

// WriteBuffer keeps writes of one worker, which the analysis of a loop leaves out, until they are
// applied by a function of the user's (section 5.2.3, and appendix A.2: the writes are a
// DistArray buffer). What is read meanwhile may be old.
type WriteBuffer[T any] struct {
	most  int
	merge func(have, write T) T
	apply func(element int64, x T) error
	held  map[int64]T
}

// NewWriteBuffer is a buffer of writes to so many elements at most: with one more, all are applied.
// Writes to one element are merged.
func NewWriteBuffer[T any](most int, merge func(have, write T) T,
	apply func(element int64, x T) error) *WriteBuffer[T] {
	return &WriteBuffer[T]{max(most, 1), merge, apply, map[int64]T{}}
}

// Write keeps a write. Errors are those of the function that applies.
func (b *WriteBuffer[T]) Write(element int64, x T) error {
	if have, ok := b.held[element]; ok {
		b.held[element] = b.merge(have, x)
		return nil
	}
	if len(b.held) == b.most {
		if err := b.Flush(); err != nil {
			return err
		}
	}
	b.held[element] = x
	return nil
}

// Flush applies all writes, in the order of their elements. After an error those are left that
// were not applied.
func (b *WriteBuffer[T]) Flush() error {
	for _, e := range slices.Sorted(maps.Keys(b.held)) {
		if err := b.apply(e, b.held[e]); err != nil {
			return err
		}
		delete(b.held, e)
	}
	return nil
}

// Prefetch brings what a block reads of an array that servers have, before it runs, in one message
// to each of them (section 5.2.4). What that is says a body that does nothing but note subscripts;
// for each block it is asked once. Subscripts that depend on what is read cannot be noted: these
// are pulled when they are read.
type Prefetch struct {
	// Reads notes the rows that an iteration reads.
	Reads func(index []int64, note func(row int64))

	rows map[int][]distrib.Ref // by block
}

// Pull brings the rows of a parameter that a block reads, from the servers of a worker's.
func (p *Prefetch) Pull(ctx context.Context, s distrib.Batched, param distrib.ParamID, block int,
	points iter.Seq[[]int64]) error {
	refs, ok := p.rows[block]
	if !ok {
		refs = p.refs(param, points)
		if p.rows == nil {
			p.rows = map[int][]distrib.Ref{}
		}
		p.rows[block] = refs
	}
	return s.PullRows(ctx, refs)
}

// refs are what iterations read, each row once.
func (p *Prefetch) refs(param distrib.ParamID, points iter.Seq[[]int64]) (refs []distrib.Ref) {
	seen := map[int64]bool{}
	for index := range points {
		p.Reads(index, func(row int64) { seen[row] = true })
	}
	for _, row := range slices.Sorted(maps.Keys(seen)) {
		refs = append(refs, distrib.Ref{Param: param, Row: int32(row), N: 1})
	}
	return refs
}
