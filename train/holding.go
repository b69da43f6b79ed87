package train

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// holding is a worker's variables, which it compares with what the others have, and brings from
// one to the other.
type holding struct {
	session  *gomem.Session
	of       *Parallel
	computes bool // the device does
}

// whole reports whether all of the variables can be read.
func (x holding) whole() bool {
	if !x.computes {
		return true
	}
	for _, v := range x.session.Variables() {
		if _, err := x.session.Get(v); err != nil {
			return false
		}
	}
	return true
}

// portion is the most bytes of a variable that are shared at once.
const portion = 4 << 20

// share gives all the variables of one.
func (x holding) share(ctx context.Context, source int) error {
	if !x.computes {
		return nil
	}
	for _, v := range x.session.Variables() {
		value := tensor.New(v.Type())
		if x.of.Rank == source {
			var err error
			if value, err = x.session.Get(v); err != nil {
				return err
			}
		}
		for part := range slices.Chunk(value.Data, portion) {
			var says []byte
			if x.of.Rank == source {
				says = part
			}
			told, err := x.of.agree(ctx, says)
			if err != nil {
				return err
			}
			if len(told[source]) != len(part) {
				return fmt.Errorf("worker %d gives %d bytes of variable %s, %d are expected",
					x.of.number(source), len(told[source]), v.Node.Name, len(part))
			}
			copy(part, told[source])
		}
		if err := x.session.Set(v, value); err != nil {
			return err
		}
	}
	return nil
}

// equal demands that the variables of all workers have the same values, but for those that
// are divided among them, after a step.
func (x holding) equal(ctx context.Context, step int) error {
	if !x.computes {
		return nil
	}
	vars := slices.DeleteFunc(x.session.Variables(), isApart(x.session))
	sums, err := checksums(x.session, vars)
	if err != nil {
		return err
	}
	all, err := x.of.agree(ctx, sums)
	if err != nil {
		return err
	}
	for rank, said := range all {
		if i := differ(said, all[0]); i >= 0 {
			return fmt.Errorf("after step %d, variable %s of worker %d has other values than "+
				"that of worker %d", step, nameOf(vars, i), x.of.number(rank), x.of.number(0))
		}
	}
	return nil
}

// nameOf is the name of a variable, if there is one of the number.
func nameOf(vars []graph.Value, i int) string {
	if i >= len(vars) {
		return fmt.Sprint(i)
	}
	return vars[i].Node.Name
}

// lacking are the blocks that worker 0 has not, in the order in which it asks for them.
func (x holding) lacking() (list []foreign) {
	for _, v := range x.session.Variables() {
		for i, b := range x.session.Blocks(v) {
			if b.Ranks[0] != 0 {
				list = append(list, foreign{v, b.Ranks[0], i})
			}
		}
	}
	return list
}

// collect is what other workers have otherwise than worker 0.
func (x holding) collect(ctx context.Context) (list []foreign, err error) {
	vars := x.session.Variables()
	sums, err := checksums(x.session, vars)
	if err != nil {
		return nil, err
	}
	all, err := x.of.agree(ctx, sums)
	if err != nil {
		return nil, err
	}
	for i, v := range vars {
		for rank, said := range all {
			at, end := 4*i, 4*i+4
			if len(said) < end {
				return nil, fmt.Errorf("worker %d has other variables", rank)
			}
			if !slices.Equal(said[at:end], all[0][at:end]) {
				list = append(list, foreign{v, rank, entire})
			}
		}
	}
	return list, nil
}

// fetch brings what another worker has to worker 0, a portion at a time. All take part in it;
// to who neither gives nor takes it comes to nothing.
func (x holding) fetch(ctx context.Context, what foreign) (tensor.View, error) {
	var value tensor.View
	var err error
	gives := x.of.Rank == what.rank
	switch {
	case gives:
		value, err = what.of(x.session)
	case x.of.Rank == 0:
		value = tensor.New(what.kind(x.session))
	}
	if err != nil {
		return value, err
	}
	total := int(what.kind(x.session).Bytes())
	for lo := 0; lo < total; lo += portion {
		hi := min(lo+portion, total)
		var says []byte
		if gives {
			says = value.Data[lo:hi]
		}
		told, err := x.of.give(ctx, 0, says)
		if err != nil {
			return value, err
		}
		if x.of.Rank != 0 {
			continue
		}
		if len(told[what.rank]) != hi-lo {
			return value, fmt.Errorf("worker %d gives %d bytes of variable %s, %d are expected",
				what.rank, len(told[what.rank]), what.v.Node.Name, hi-lo)
		}
		copy(value.Data[lo:], told[what.rank])
	}
	return value, nil
}
