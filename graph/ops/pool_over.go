package ops

import (
	"fmt"

	"github.com/gomem/gomem/graph"
)

// sweep is how a window moves along an axis. The last one ends with the padding, or inside.
type sweep struct{ Size, Stride, Dilation, Before, After int }

// length is from a window's first element to its last.
func (s sweep) length() int { return s.Dilation*(s.Size-1) + 1 }

// windows is how they move along N axes; as an attribute it is comparable.
type windows struct {
	N    int
	Axis [maxSpatial]sweep
}

// maxSpatial is how many spatial axes there may be.
const maxSpatial = 3

// setting is what a list says of an axis, or else what none means.
func setting(list []int, i, none int) int {
	if list == nil {
		return none
	}
	return list[i]
}

// perAxis demands lists of an element for each of so many spatial axes, or nil.
func perAxis(what string, axes int, lists ...[]int) error {
	for _, list := range lists {
		if list != nil && len(list) != axes {
			return fmt.Errorf("%s by %v of values with %d spatial axes", what, list, axes)
		}
	}
	return nil
}

// over is how windows move over x. It is an error of the graph if they cannot.
func (p Pool) over(x graph.Value) (w windows, ok bool) {
	if !x.Valid() {
		return w, false
	}
	w, err := p.windows(x.Type())
	if err == nil {
		_, err = w.pooled(x.Type())
	}
	if err != nil {
		x.Graph().Fail(err)
	}
	return w, err == nil
}

func (p Pool) windows(x graph.Type) (w windows, err error) {
	w.N = x.Rank() - 2
	if w.N < 1 || w.N > maxSpatial || p.Size == nil {
		return w, fmt.Errorf("windows of %v over %s, want batch, channels and up to %d other axes",
			p.Size, x, maxSpatial)
	}
	if err := perAxis("windows", w.N, p.Size, p.Stride, p.Dilation, p.Before, p.After); err != nil {
		return w, err
	}
	for i := range w.N {
		s := sweep{p.Size[i], setting(p.Stride, i, p.Size[i]), setting(p.Dilation, i, 1),
			setting(p.Before, i, 0), setting(p.After, i, 0)}
		if err := s.check(); err != nil {
			return w, err
		}
		w.Axis[i] = s.until(x.Size(2+i), p.Ceil)
	}
	return w, nil
}

// check rejects windows of no elements, and such that may lie outside.
func (s sweep) check() error {
	const most = 1 << 15
	switch {
	case min(s.Size, s.Stride, s.Dilation) < 1 || max(s.Size, s.Stride, s.Dilation) > most:
		return fmt.Errorf("windows of %d elements %d apart, %d from one to the next", s.Size,
			s.Dilation, s.Stride)
	case min(s.Before, s.After) < 0 || max(s.Before, s.After) >= s.length():
		return fmt.Errorf("padding %d and %d is not between 0 and a window's %d", s.Before, s.After,
			s.length())
	}
	return nil
}

// until is the sweep whose padding ends with the last window.
func (s sweep) until(size int, ceil bool) sweep {
	room := size + s.Before + s.After - s.length()
	last := room / s.Stride
	if ceil && room%s.Stride > 0 && (last+1)*s.Stride < size+s.Before {
		last++
	}
	if room >= 0 {
		s.After = max(0, last*s.Stride+s.length()-size-s.Before)
	}
	return s
}

// count is how many windows an axis has.
func (s sweep) count(size int) int {
	return (size+s.Before+s.After-s.length())/s.Stride + 1
}

// empty reports a window that has no element inside.
func (s sweep) empty(size int) bool {
	for i := range s.count(size) {
		if at := i*s.Stride - s.Before; at < 0 {
			at += (-at + s.Dilation - 1) / s.Dilation * s.Dilation
			if at >= size || at > i*s.Stride-s.Before+s.length()-1 {
				return true
			}
		} else if at >= size {
			return true
		}
	}
	return false
}

// pooled is the type of x with windows in place of elements.
func (w windows) pooled(x graph.Type) (graph.Type, error) {
	if w.N < 1 || w.N > maxSpatial || x.Rank() != w.N+2 {
		return x, fmt.Errorf("operand is %s, want batch, channels and %d other axes", x, w.N)
	}
	out := graph.Type{DType: x.DType, Shape: append([]graph.Dim{}, x.Shape[:2]...)}
	for i, s := range w.Axis[:w.N] {
		n := x.Size(2 + i)
		if err := s.check(); err != nil {
			return x, err
		}
		if n < 1 || n+s.Before+s.After < s.length() || s.empty(n) {
			return x, fmt.Errorf("windows of %d elements of %s do not fit along axis %d, padded "+
				"by %d and %d", s.length(), x, 2+i, s.Before, s.After)
		}
		out.Shape = append(out.Shape, graph.Dim{Size: s.count(n)})
	}
	return out, nil
}

// plain reports whether windows have no gaps.
func (w windows) plain() bool {
	for _, s := range w.Axis[:w.N] {
		if s.Dilation > 1 {
			return false
		}
	}
	return true
}

// small reports whether images' windows have few enough elements to keep a place in a byte.
func (w windows) small() bool {
	n := 1
	for _, s := range w.Axis[max(0, w.N-2):w.N] {
		n *= s.Size
	}
	return n <= 256 && w.Axis[0].Size <= 256
}

// elements are those of a plane of x.
func (windows) elements(x graph.Type) int { return graph.Type{Shape: x.Shape[2:]}.Elems() }

// padded is the windows over x with its padding, which sizes get.
func (w windows) padded(sizes []int, p Pool) windows {
	for i := range w.N {
		s := &w.Axis[i]
		before, after := setting(p.Before, i, 0), setting(p.After, i, 0)
		sizes[2+i] += before + after
		s.Before, s.After = 0, max(0, s.After-after)
	}
	return w
}
