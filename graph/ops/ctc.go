package ops

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel"
	"github.com/gomem/gomem/internal/libm"
)

// CTCLoss is the connectionist temporal classification loss (Graves et al. 2006):
// minus the logarithm of the probability that frames, read without repetitions
// and then without blanks, give the labels. Logits f32[t b v], of which the last
// symbol, v−1, is the blank; labels i32[b l] below v−1, of which item k has the
// first labelLengths[k]; frames, of which it has the first inputLengths[k]; →
// f32[b]. It takes the softmax of the logits itself, and computes in float64.
//
// An item that has no such reading, because it has more labels, counting a blank
// between equal ones, than frames, is skipped: its loss and gradient are zero. See
// [CTCReadable].
func CTCLoss(logits, labels, labelLengths, inputLengths graph.Value) graph.Value {
	return apply(ctc{}, logits, labels, labelLengths, inputLengths)
}

type ctc struct{}

func (ctc) Name() string { return "ctc" }

// checkCTC wants the operands of CTCLoss first.
func checkCTC(in []graph.Type) error {
	if len(in) < 4 {
		return arity(in, 4)
	}
	if err := want(in[:4], graph.F32, graph.I32, graph.I32, graph.I32); err != nil {
		return err
	}
	if in[0].Rank() != 3 || in[0].Size(2) < 2 {
		return fmt.Errorf("logits are %s, want three axes and a symbol besides the blank", in[0])
	}
	b := in[0].Size(1)
	if in[1].Rank() != 2 || in[1].Size(0) != b {
		return fmt.Errorf("labels are %s, want i32[%d …]", in[1], b)
	}
	for i, t := range in[2:4] {
		if t.Rank() != 1 || t.Size(0) != b {
			return fmt.Errorf("operand %d is %s, want i32[%d]%s", 2+i, t, b,
				convertible(t, graph.I32))
		}
	}
	return nil
}

func (ctc) Infer(in []graph.Type) ([]graph.Type, error) {
	if err := arity(in, 4); err != nil {
		return nil, err
	}
	if err := checkCTC(in); err != nil {
		return nil, err
	}
	return []graph.Type{{DType: graph.F32, Shape: in[0].Shape[1:2:2]}}, nil
}

// Cost: the scratch holds two rows of the lattice for every block.
func (ctc) Cost(in, out []graph.Type) graph.Cost {
	s := ctcSizeOf(in[0], in[1])
	return graph.Cost{FLOPs: s.flops(), Bytes: bytes(in, out),
		Scratch: 8 * int64(s.blocks()) * int64(2*s.states())}
}

func (ctc) VJP(n *graph.Node, dout []graph.Value) []graph.Value {
	return []graph.Value{apply(ctcGrad{}, append(n.In[:4:4], dout[0])...), {}, {}, {}}
}

// ctcSize is the geometry of t frames of b items of v symbols, and l labels.
type ctcSize struct{ t, b, v, l int }

func ctcSizeOf(logits, labels graph.Type) ctcSize {
	return ctcSize{logits.Size(0), logits.Size(1), logits.Size(2), labels.Size(1)}
}

// states is the length of a row of the lattice: labels and the blanks around
// them.
func (s ctcSize) states() int { return 2*s.l + 1 }

// blocks is the number of blocks of items.
func (s ctcSize) blocks() int { return min(s.b, 16) }

// flops counts an exponential as ten.
func (s ctcSize) flops() int64 {
	return 10 * int64(s.t) * int64(s.b) * int64(s.v+2*s.states())
}

// ctcItem is an item of the batch. Its lattice has a state for every label, at odd
// numbers, and for the blanks around them.
type ctcItem struct {
	ctcSize
	logits []float32 // from the item's first frame on; frames are b·v apart
	labels []int32   // its own
	frames int
}

// items are those of the operands of CTCLoss, which are checked.
func ctcItems(in []tensor.View) (ctcSize, func(k int) ctcItem, error) {
	s := ctcSizeOf(in[0].Type, in[1].Type)
	if err := (ctc{}).CheckData(in); err != nil {
		return s, nil, err
	}
	logits, labels, labelLengths, inputLengths := in[0].F32(), in[1].I32(), in[2].I32(), in[3].I32()
	item := func(k int) ctcItem {
		return ctcItem{s, logits[k*s.v:], labels[k*s.l:][:labelLengths[k]], int(inputLengths[k])}
	}
	return s, item, nil
}

// CheckData wants lengths that there are and, of each item, labels of symbols.
func (ctc) CheckData(in []tensor.View) error {
	s := ctcSizeOf(in[0].Type, in[1].Type)
	if err := checkLengths("label", known(in[2]), s.l); err != nil {
		return err
	}
	if err := checkLengths("input", known(in[3]), s.t); err != nil {
		return err
	}
	labels := known(in[1])
	if labels == nil {
		return nil
	}
	for k, n := range known(in[2]) {
		for i, label := range labels[k*s.l:][:n] {
			if label < 0 || int(label) >= s.v-1 {
				return fmt.Errorf("label %d at position %d of item %d is not one of %d symbols",
					label, i, k, s.v-1)
			}
		}
	}
	return nil
}

// checkLengths reports a length outside [0, most].
func checkLengths(what string, lengths []int32, most int) error {
	for i, n := range lengths {
		if n < 0 || int(n) > most {
			return fmt.Errorf("%s length %d at position %d is not between 0 and %d", what, n, i,
				most)
		}
	}
	return nil
}

// readable reports whether there are frames enough.
func (p ctcItem) readable() bool { return framesFor(p.labels) <= p.frames }

// frame is the logits of a frame.
func (p ctcItem) frame(t int) []float32 { return p.logits[t*p.b*p.v:][:p.v] }

// states is the number of states of this item.
func (p ctcItem) states() int { return 2*len(p.labels) + 1 }

// symbol is that of a state, counted from the end if back is true.
func (p ctcItem) symbol(state int, back bool) int {
	if back {
		state = p.states() - 1 - state
	}
	if state%2 == 0 {
		return p.v - 1
	}
	return int(p.labels[state/2])
}

// advance computes a row of the lattice, the logarithms of the probabilities that
// the frames up to t end in each state, from the row before; none before the
// first. Back, all is mirrored: the frames from t on, and the states from the
// last.
func (p ctcItem) advance(row, before []float64, t int, back bool) {
	x := p.frame(t)
	shares := newShares(x)
	for s := range row {
		sum := math.Inf(-1)
		switch {
		case before == nil && s < 2:
			sum = 0
		case before != nil:
			sum = p.arrivals(before, s, back)
		}
		row[s] = sum + shares.log(p.symbol(s, back))
	}
}

// arrivals adds up the ways into a state: to stay, from the state before, and
// over a blank between different labels.
func (p ctcItem) arrivals(before []float64, s int, back bool) float64 {
	sum := before[s]
	if s > 0 {
		sum = logAdd(sum, before[s-1])
	}
	if s > 2 && s%2 == 1 && p.symbol(s, back) != p.symbol(s-2, back) {
		sum = logAdd(sum, before[s-2])
	}
	return sum
}

// total is the logarithm of the probability of a whole lattice, given its last
// row: it ends with the last label or the blank after it.
func (p ctcItem) total(last []float64) float64 {
	n := len(last)
	switch {
	case n == 0 && len(p.labels) == 0: // nothing is read from no frame
		return 0
	case n == 0:
		return math.Inf(-1)
	case n == 1:
		return last[0]
	}
	return logAdd(last[n-1], last[n-2])
}

// logAdd is log(eᵃ + eᵇ).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + libm.Log1p(libm.Exp(b-a))
}

// shares are the probabilities of a frame's symbols: the softmax of its logits. The
// largest is kept apart from log Σ eˣ, which would be lost beside it.
type shares struct {
	logits    []float32
	most, sum float64 // log Σ eˣ is their sum
}

func newShares(x []float32) shares {
	most := float64(slices.Max(x))
	sum := 0.0
	for _, v := range x {
		sum += libm.Exp(float64(v) - most)
	}
	return shares{x, most, libm.Log(sum)}
}

// log is the logarithm of the probability of a symbol.
func (s shares) log(symbol int) float64 { return float64(s.logits[symbol]) - s.most - s.sum }

// doubles is scratch memory as 64-bit floats; it is aligned to 64 bytes.
func doubles(scratch []byte) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(scratch))), len(scratch)/8)
}

// each visits the items, in parallel, each with so many numbers of scratch.
func (s ctcSize) each(c *kernel.Call, numbers int, f func(k int, buf []float64)) {
	blocks := s.blocks()
	c.Pool.Run(blocks, func(b int) {
		buf := doubles(c.Scratch)[b*numbers : (b+1)*numbers]
		lo, hi := block(b, blocks, s.b)
		for k := lo; k < hi; k++ {
			f(k, buf)
		}
	})
}

func ctcCPU(_ ctc, c *kernel.Call) error {
	s, item, err := ctcItems(c.In)
	if err != nil {
		return err
	}
	out := c.Out[0].F32()
	s.each(c, 2*s.states(), func(k int, buf []float64) {
		p := item(k)
		if out[k] = 0; !p.readable() {
			return
		}
		row, before := buf[:p.states()], []float64(nil)
		spare := buf[s.states():][:p.states()]
		for t := range p.frames {
			p.advance(row, before, t, false)
			row, before, spare = spare, row, row
		}
		out[k] = float32(-p.total(before))
	})
	return nil
}

func init() {
	kernel.Register(kernel.CPU, ctcCPU)
	for _, in := range ctcVariants() {
		s := ctcSizeOf(in[0], in[1])
		register(Sample{Op: ctc{}, In: in, Fill: ctcFills(s), NoGrad: []int{1, 2, 3}})
	}
}
