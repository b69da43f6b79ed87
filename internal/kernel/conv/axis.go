package conv

// axis is a convolution along one axis, forward or backward.
//
// Destination element r + spread*j is computed from source elements
// phase + step*(j+off), one for every tap. Forward, step is the stride and spread
// is 1; backward it is the reverse. So either is a set of plain shifts, once the
// source is cut into planes by phase, and the destination into views by r.
type axis struct {
	src, dst     int
	step, spread int
	out          int     // elements of a view: those past the destination are not stored
	views        [][]tap // by r
	phases       []phase // of the planes that taps use
	first, span  int     // a plane holds its elements first … first+span-1
	shared       int     // leading zeros of a plane that can be trailing ones of another
}

// phase is a plane's first source element, if its elements began at zero, and
// which of the plane's elements are in the source.
type phase struct{ first, lo, hi int }

// tap is one element of the filter: k is its index, plane and off say what it
// multiplies.
type tap struct{ k, plane, off int }

// forward is the axis of y from x.
func forward(src, dst, k, stride, pad, dil int) axis {
	a := axis{src: src, dst: dst, step: stride, spread: 1, out: dst, views: make([][]tap, 1)}
	for i := range k {
		off, first := floorDiv(i*dil-pad, stride)
		a.views[0] = append(a.views[0], tap{i, a.plane(first), off})
	}
	a.measure()
	return a
}

// backward is the axis of dx from dy, which has src elements.
func backward(src, dst, k, stride, pad, dil int) axis {
	a := axis{src: src, dst: dst, step: 1, spread: stride, out: ceil(dst, stride),
		views: make([][]tap, min(stride, dst))}
	a.phases = []phase{{}}
	for i := range k {
		for r := range a.views {
			if off, rest := floorDiv(r+pad-i*dil, stride); rest == 0 {
				a.views[r] = append(a.views[r], tap{i, 0, off})
			}
		}
	}
	a.measure()
	return a
}

// plane returns the index of a phase's plane.
func (a *axis) plane(first int) int {
	for i, p := range a.phases {
		if p.first == first {
			return i
		}
	}
	a.phases = append(a.phases, phase{first: first})
	return len(a.phases) - 1
}

// measure finds which part of the planes is used, and how much of it is zeros on
// both sides.
func (a *axis) measure() {
	lo, hi, any := 0, 0, false
	for _, view := range a.views {
		for _, t := range view {
			if !any {
				lo, hi, any = t.off, t.off, true
			}
			lo, hi = min(lo, t.off), max(hi, t.off)
		}
	}
	a.first, a.span = lo, a.out+hi-lo
	end := 0 // one past the last element of a plane that is in the source
	for i := range a.phases {
		p := &a.phases[i]
		p.lo, p.hi = min(max(0, -lo), a.span), ceil(max(0, a.src-p.first), a.step)-lo
		end = max(end, p.hi)
	}
	a.shared = min(max(0, -lo), max(0, a.span-end), hi-lo)
	for i := range a.phases {
		p := &a.phases[i]
		p.hi = min(max(p.hi, p.lo), a.span-a.shared)
		p.lo = min(p.lo, p.hi)
	}
}

// plain says that a plane is the source as it stands.
func (a *axis) plain() bool {
	return a.step == 1 && a.first == 0 && a.span == a.out && a.src == a.out
}

// ceil returns x/y rounded up.
func ceil(x, y int) int { return (x + y - 1) / y }

// floorDiv returns x/y rounded down, and the rest.
func floorDiv(x, y int) (quotient, rest int) {
	quotient, rest = x/y, x%y
	if rest < 0 {
		return quotient - 1, rest + y
	}
	return quotient, rest
}

// split cuts x into the fewest parts of at most limit, as even as they can be,
// and returns the size of all but the last.
func split(x, limit int) int { return ceil(x, ceil(x, max(1, limit))) }
