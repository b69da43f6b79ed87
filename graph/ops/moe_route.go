package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
)

// Route packs the choices of T tokens, as [Top2] makes them, by expert: the
// packed form has R = 2T rows, one per choice, those of expert 0 first, then
// those of expert 1, and so on; the last ones are not used if second choices
// are not kept. No token is dropped, however uneven the load. Within an expert
// first choices precede second ones, tokens in order.
//
//   - rows, i32[R], is the token of each packed row, −1 for those not used,
//   - inv, i32[T 2], the packed row of each choice, −1 if there is none,
//   - offsets, i32[experts+1], where each expert's rows begin and the last end.
func Route(idx1, idx2 graph.Value, experts int) (rows, inv, offsets graph.Value) {
	out := applyN(3, route{Experts: experts}, idx1, idx2)
	return out[0], out[1], out[2]
}

type route struct{ Experts int }

func (route) Name() string { return "route" }

func (o route) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := checkPair(in); err != nil {
		return nil, err
	}
	if o.Experts < 1 {
		return nil, fmt.Errorf("%d experts", o.Experts)
	}
	t := in[0].Elems()
	return []graph.Type{
		tensor.Of(graph.I32, 2*t), tensor.Of(graph.I32, t, 2), tensor.Of(graph.I32, o.Experts+1),
	}, nil
}

func (o route) Cost(in, out []graph.Type) graph.Cost {
	return graph.Cost{Bytes: 2*bytes(in, nil) + bytes(nil, out), Scratch: 4 * int64(o.Experts)}
}

func (route) VJP(*graph.Node, []graph.Value) []graph.Value { return none(2) }

// routeCPU is a counting sort.
func routeCPU(o route, c *kernel.Call) error {
	rows, inv, offsets := c.Out[0].I32(), c.Out[1].I32(), c.Out[2].I32()
	clear(offsets)
	if err := o.CheckData(c.In); err != nil {
		return err
	}
	for _, v := range c.In {
		for _, e := range v.I32() {
			if e >= 0 {
				offsets[e+1]++
			}
		}
	}
	for e := range o.Experts {
		offsets[e+1] += offsets[e]
	}
	next := ints(c.Scratch)
	copy(next, offsets)
	for k, v := range c.In {
		for t, e := range v.I32() {
			inv[2*t+k] = -1
			if e >= 0 {
				inv[2*t+k] = next[e]
				rows[next[e]] = int32(t)
				next[e]++
			}
		}
	}
	for r := int(offsets[o.Experts]); r < len(rows); r++ {
		rows[r] = -1
	}
	return nil
}

// routed checks the operands that [Route] or [RouteChoices] made, rows i32[R] and inv i32[T k],
// and returns T.
func routed(rows, inv graph.Type) (tokens int, err error) {
	if rows.DType != graph.I32 || inv.DType != graph.I32 || rows.Rank() != 1 || inv.Rank() != 2 ||
		inv.Size(1) < 1 || rows.Size(0) != inv.Elems() {
		return 0, fmt.Errorf("routing is %s and %s, want i32[R] and i32[T k] with R = k·T", rows,
			inv)
	}
	return inv.Size(0), nil
}

// matrix checks that t is f32 with two axes, the first of size rows.
func matrix(t graph.Type, rows int) error {
	if t.DType != graph.F32 || t.Rank() != 2 || t.Size(0) != rows {
		return fmt.Errorf("operand is %s, want f32 with two axes, the first of size %d%s", t, rows,
			convertible(t, graph.F32))
	}
	return nil
}

// routing returns the data of rows and inv, checked.
func routing(rows, inv tensor.View) ([]int32, []int32, error) {
	r, i := rows.I32(), inv.I32()
	if err := checkChoices(r, inv.Type.Size(0)); err != nil {
		return nil, nil, err
	}
	return r, i, checkChoices(i, len(r))
}

// expertRows is the range of an expert's rows among rows packed ones, checked.
func expertRows(offsets []int32, expert, rows int) (lo, hi int, err error) {
	lo, hi = int(offsets[expert]), int(offsets[expert+1])
	if lo < 0 || lo > hi || hi > rows {
		return 0, 0, fmt.Errorf("rows %d to %d of expert %d are not among %d", lo, hi, expert, rows)
	}
	return lo, hi, nil
}

func init() {
	kernel.Register(kernel.CPU, routeCPU)
	ids := func(sizes ...int) graph.Type { return tensor.Of(graph.I32, sizes...) }
	pick := fills{0: choices(5), 1: choices(5)}
	register(
		Sample{Op: route{Experts: 5}, In: []graph.Type{ids(3, 17), ids(3, 17)}, Fill: pick,
			NoGrad: []int{0, 1}},
		Sample{Op: route{Experts: 7}, In: []graph.Type{ids(17), ids(17)}, Fill: pick,
			NoGrad: []int{0, 1}},
	)
}
