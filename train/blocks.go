package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/mesh"
)

// The processes of a mesh have blocks of some variables. Their checkpoint has all of each, as
// that of a run which is not divided, so that any mesh goes on from it, or none. Process 0
// writes it, one variable at a time, of the blocks that it has and those that the others give
// it in turn; and each reads its own. A checksum is of a variable, so they see together whether
// what they have read is undamaged.

// divided reports whether processes have blocks of some variable.
func divided(s *gomem.Session) bool {
	return slices.ContainsFunc(s.Variables(), isApart(s))
}

// isApart tells the variables of which no process has all.
func isApart(s *gomem.Session) func(graph.Value) bool {
	return func(v graph.Value) bool { return len(s.Blocks(v)) > 0 }
}

// joined is a variable of its blocks.
func (s source) joined(v graph.Value, blocks []mesh.Owned) (tensor.View, error) {
	out := tensor.New(v.Type())
	for i, b := range blocks {
		part, err := s.value(foreign{v, b.Ranks[0], i})
		if err != nil {
			return out, err
		}
		b.Into(out, part)
	}
	return out, nil
}

// setBlocks gives a session the blocks of a variable that it has, and keeps what they are of
// the variable's checksum. A block that several have counts once.
func (o *opened) setBlocks(s *gomem.Session, v graph.Value, blocks []mesh.Owned) error {
	sum := uint32(0)
	for i, b := range blocks {
		if !slices.Contains(b.Ranks, s.Rank()) {
			continue
		}
		part, own, err := o.part(v, b.Piece)
		if err != nil {
			return err
		}
		if b.Ranks[0] == s.Rank() {
			sum ^= own
		}
		if err := s.SetBlock(v, i, part); err != nil {
			return err
		}
	}
	o.sums = append(o.sums, sum)
	return nil
}

// part reads a piece of a variable, and what it is of the checksum.
func (o *opened) part(v graph.Value, p mesh.Piece) (out tensor.View, sum uint32, err error) {
	out = tensor.New(p.Type(v.Type()))
	sum, err = o.file.ReadRuns(v.Node.Name, out.Data, func(visit func(at, to, n int)) {
		p.Runs(v.Type(), visit)
	})
	if err != nil {
		return out, 0, o.fail("%w", bare(err))
	}
	return out, sum, o.finite(v.Node.Name, out)
}

// beginning is what the workers of a run begin with.
type beginning struct {
	from *opened      // the checkpoint; nil: there is none
	init string       // initial values, of Options.Init
	warm []gomem.Part // what this one has read of divided weights among those
}

// undamaged demands that the processes of a mesh go on from one checkpoint, and that what all
// have read of divided variables has its checksums.
func (b beginning) undamaged(ctx context.Context, p *Parallel, step int,
	s *gomem.Session) error {
	from := b.from
	if from == nil {
		from = &opened{}
	}
	says := binary.LittleEndian.AppendUint64(nil, uint64(step))
	for _, sum := range from.sums {
		says = binary.LittleEndian.AppendUint32(says, sum)
	}
	for _, part := range b.warm {
		says = binary.LittleEndian.AppendUint32(says, part.Sum)
	}
	all, err := p.agree(ctx, says)
	if err != nil {
		return err
	}
	total := make([]uint32, len(all[0])/4-2)
	for rank, said := range all {
		if len(said) != len(all[0]) || !slices.Equal(said[:8], all[0][:8]) {
			return fmt.Errorf("worker %d goes on from another checkpoint than worker 0: start all "+
				"workers with the same --resume or --init", rank)
		}
		for i := range total {
			total[i] ^= binary.LittleEndian.Uint32(said[8+4*i:])
		}
	}
	warm := slices.Clone(b.warm)
	for i := range warm {
		warm[i].Sum = total[len(from.sums)+i]
	}
	if err := gomem.CheckParts(warm); err != nil {
		return &ErrCheckpoint{Path: b.init, Err: bare(err)}
	}
	return from.have(s, total[:len(from.sums)])
}

// have demands that divided variables have the checksums that were saved.
func (o *opened) have(s *gomem.Session, sums []uint32) error {
	i := 0
	for _, v := range s.Variables() {
		if len(s.Blocks(v)) == 0 || i == len(sums) {
			continue
		}
		if err := o.file.CheckParts(v.Node.Name, sums[i]); err != nil {
			return o.fail("%w", bare(err))
		}
		i++
	}
	return nil
}
