package ops

import (
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
)

// tileBytes is how much is in f32 at a time of an operation on bfloat16 that is computed in
// blocks of rows, unless that were more than mostTiles blocks; what each block needs, such as
// weights, is beside it. Of small operations it is an eighth, but leastTileBytes: blocks that are
// smaller take more time than they save memory.
const (
	tileBytes      = 1 << 20
	mostTiles      = 16
	leastTileBytes = 16 << 10
)

// in16 is implemented by operations whose kernel on the host reads and writes bfloat16 as it is.
type in16 interface {
	graph.Op
	// form16 is of which operands and results it does, as [formOf] says it: a star is either.
	form16() string
	// scratch16 is the scratch that it then takes.
	scratch16(in, out []graph.Type) int64
}

// asItIs is the operation, if its kernel takes these operands and results as they are.
func (o inBF16) asItIs(in, out []graph.Type) (in16, bool) {
	op, ok := o.Op.(in16)
	return op, ok && hasForm(op.form16(), in, out)
}

// hasForm reports whether operands and results have a form, of which a star is either.
func hasForm(want string, in, out []graph.Type) bool {
	form := formOf(in) + ">" + formOf(out)
	for i := range want {
		if i < len(form) && want[i] == '*' && strings.IndexByte("hf", form[i]) >= 0 {
			form = form[:i] + "*" + form[i+1:]
		}
	}
	return form == want
}

// formOf says of values whether they are of bfloat16, h, of f32, f, or neither.
func formOf(types []graph.Type) string {
	form := make([]byte, len(types))
	for i, t := range types {
		switch t.DType {
		case graph.BF16:
			form[i] = 'h'
		case graph.F32:
			form[i] = 'f'
		default:
			form[i] = '.'
		}
	}
	return string(form)
}

// tiling is how an operation on bfloat16 is computed with little scratch: in blocks of rows, of
// which each is converted, computed and rounded, or as a whole.
type tiling struct {
	cut      graph.Cut
	rows     int          // of a block; 0: as a whole
	in, out  []graph.Type // of the operation in f32
	fromBF16 []bool       // by operand: is converted
	toBF16   []bool       // by result: is rounded
}

func (t tiling) tiled() bool { return t.rows > 0 }

// tiling divides into blocks of which so many bytes of f32 are made. Direct: the operation reads
// bfloat16 as it is.
func (o inBF16) tiling(in, out []graph.Type, limit int, direct bool) tiling {
	t := tiling{in: inF32(in), out: inF32(out), fromBF16: make([]bool, len(in)),
		toBF16: make([]bool, len(out))}
	for i, ty := range in {
		t.fromBF16[i] = ty.DType == graph.BF16 && !direct
	}
	for i := range out {
		t.toBF16[i] = o.rounds(i)
	}
	op, ok := o.Op.(graph.Cutter)
	if !ok {
		return t
	}
	if t.cut, ok = op.Cut(t.in, t.out); !ok || t.cut.Sums() {
		return t
	}
	perRow := 0
	add := func(types []graph.Type, cut []int, converted []bool) {
		for i, ty := range types {
			if cut[i] > 0 && converted[i] {
				perRow += int(ty.Bytes()) / t.cut.Rows
			}
		}
	}
	add(t.in, t.cut.In, t.fromBF16)
	add(t.out, t.cut.Out, t.toBF16)
	if perRow == 0 {
		return t
	}
	rows := max(min(limit, max(perRow*eighth(t.cut.Rows), leastTileBytes))/perRow,
		t.cut.Rows/mostTiles, t.cut.Least, 1)
	rows = (rows + t.cut.Align - 1) / t.cut.Align * t.cut.Align
	if rows+t.cut.Least <= t.cut.Rows {
		t.rows = rows
	}
	return t
}

// blocks calls f for each block of rows, the last of which may be larger than the others, so
// that it is not too small.
func (t tiling) blocks(f func(lo, hi int) error) error {
	for lo := 0; lo < t.cut.Rows; {
		hi := lo + t.rows
		if t.cut.Rows-hi < max(t.cut.Least, 1) {
			hi = t.cut.Rows
		}
		if err := f(lo, hi); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// slab is a block as an operation in f32 with its operands and results, or the whole.
type slab struct {
	op      graph.Op
	in, out []graph.Type
}

// slab is the block of rows lo to hi-1.
func (o inBF16) slab(t tiling, lo, hi int) slab {
	if !t.tiled() {
		return slab{o.Op, t.in, t.out}
	}
	return slab{o.Op.(graph.Cutter).Part(t.in, t.out, lo, hi), cutTypes(t.in, t.cut.In, hi-lo),
		cutTypes(t.out, t.cut.Out, hi-lo)}
}

// cutTypes are the types of so many rows.
func cutTypes(types []graph.Type, axes []int, rows int) []graph.Type {
	types = slices.Clone(types)
	for i := range types {
		if axes[i] > 0 {
			types[i] = graph.RowsOf(types[i], axes[i], rows)
		}
	}
	return types
}

// padded is bytes of scratch with those after which the next begin.
func padded(bytes int64) int64 { return (bytes + 63) &^ 63 }

// room is the scratch that converted operands and results of a block take.
func (t tiling) room(b slab) (bytes int64) {
	for i, ty := range b.in {
		if t.fromBF16[i] {
			bytes += padded(ty.Bytes())
		}
	}
	for i, ty := range b.out {
		if t.toBF16[i] {
			bytes += padded(ty.Bytes())
		}
	}
	return bytes
}

// most is the most scratch that a block takes, where an operation in f32 takes what inner says.
func (o inBF16) most(t tiling, inner func(slab) int64) (bytes int64) {
	need := func(lo, hi int) {
		b := o.slab(t, lo, hi)
		bytes = max(bytes, t.room(b)+inner(b))
	}
	if !t.tiled() {
		need(0, 0)
		return bytes
	}
	last := -1 // blocks of one size take as much
	_ = t.blocks(func(lo, hi int) error {
		if hi-lo != last {
			need(lo, hi)
		}
		last = hi - lo
		return nil
	})
	return bytes
}

// scratch is what computing takes.
func (o inBF16) scratch(in, out []graph.Type) int64 {
	if _, ok := o.asChain(in, out); ok {
		return 0
	}
	if op, ok := o.asItIs(in, out); ok {
		return op.scratch16(in, out)
	}
	if pieces := o.pieces(in, out); pieces != nil {
		most := int64(0)
		for _, p := range pieces {
			most = max(most, p.room(in, out))
		}
		return most
	}
	return o.most(o.tiling(in, out, tileBytes, takesBF16(o.Op)), func(b slab) int64 {
		return b.op.Cost(b.in, b.out).Scratch
	})
}
