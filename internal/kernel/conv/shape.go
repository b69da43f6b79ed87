package conv

import "fmt"

// Shape is a two-dimensional convolution of images in NCHW order: x is
// [Batch InC InH InW], w is [OutC InC/Groups KH KW] and y is
// [Batch OutC OutH OutW]. Lengths are in elements.
type Shape struct {
	Batch, InC, InH, InW                 int
	OutC, KH, KW                         int
	StrideH, StrideW                     int // at least 1
	PadTop, PadLeft, PadBottom, PadRight int // zeros around an image
	DilH, DilW                           int // distance of taps, at least 1
	Groups                               int // channels fall into so many, which do not mix
}

// largest bounds every size, so that the arithmetic of shapes does not overflow.
const largest = 1 << 30

// OutH is the rows of a result.
func (s Shape) OutH() int { return (s.InH+s.PadTop+s.PadBottom-s.DilH*(s.KH-1)-1)/s.StrideH + 1 }

// OutW is the columns of a result.
func (s Shape) OutW() int { return (s.InW+s.PadLeft+s.PadRight-s.DilW*(s.KW-1)-1)/s.StrideW + 1 }

// Validate reports what is wrong with a shape.
func (s Shape) Validate() error {
	for _, f := range []struct {
		name        string
		value, from int
	}{
		{"groups", s.Groups, 1},
		{"batch", s.Batch, 0}, {"input channels", s.InC, 1}, {"input height", s.InH,
			1}, {"input width", s.InW, 1},
		{"output channels", s.OutC, 1}, {"filter height", s.KH, 1}, {"filter width", s.KW, 1},
		{"vertical stride", s.StrideH, 1}, {"horizontal stride", s.StrideW, 1},
		{"top padding", s.PadTop, 0}, {"left padding", s.PadLeft, 0},
		{"bottom padding", s.PadBottom, 0}, {"right padding", s.PadRight, 0},
		{"vertical dilation", s.DilH, 1}, {"horizontal dilation", s.DilW, 1},
	} {
		if f.value < f.from || f.value > largest {
			return fmt.Errorf("convolution: %s is %d, want %d to %d", f.name, f.value, f.from,
				largest)
		}
	}
	if s.InC%s.Groups != 0 || s.OutC%s.Groups != 0 {
		return fmt.Errorf("convolution: %d input and %d output channels do not divide into %d "+
			"groups", s.InC, s.OutC, s.Groups)
	}
	if h := s.DilH*(s.KH-1) + 1; h > s.InH+s.PadTop+s.PadBottom {
		return fmt.Errorf("convolution: the filter spans %d rows, the padded image has %d", h,
			s.InH+s.PadTop+s.PadBottom)
	}
	if w := s.DilW*(s.KW-1) + 1; w > s.InW+s.PadLeft+s.PadRight {
		return fmt.Errorf("convolution: the filter spans %d columns, the padded image has %d", w,
			s.InW+s.PadLeft+s.PadRight)
	}
	return nil
}

// taps is the elements of a filter's plane.
func (s Shape) taps() int { return s.KH * s.KW }

// FLOPs is the floating-point operations of a direct computation, the same for
// Forward and both gradients; a multiply-add counts as two.
func (s Shape) FLOPs() int64 {
	results := int64(s.Batch) * int64(s.OutC) * int64(s.OutH()) * int64(s.OutW())
	return 2 * results * int64(s.InC/s.Groups) * int64(s.taps())
}

// in and out are the elements of x and y, filter those of w.
func (s Shape) in() int     { return s.Batch * s.InC * s.InH * s.InW }
func (s Shape) out() int    { return s.Batch * s.OutC * s.OutH() * s.OutW() }
func (s Shape) filter() int { return s.OutC * (s.InC / s.Groups) * s.taps() }
