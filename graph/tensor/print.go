package tensor

import (
	"math"
	"strconv"
	"strings"
)

// What is printed of a tensor: all of up to so many elements, and of a larger one so
// many at both ends of every axis; in lines of at most so many columns.
const (
	mostPrinted = 1000
	ends        = 3
	lineColumns = 75
)

// String prints the type and the values, as NumPy does: of a large tensor the corners,
// of floating-point numbers up to six significant digits.
//
//	f32[3] [  1 2.5  -3]
//	f32[2 3]
//	[[1    2    3]
//	 [4 5.25 -inf]]
func (v View) String() string {
	t := v.Type
	if t.DType.Size() == 0 || int64(len(v.Data)) != t.Bytes() {
		return t.String() + " without data"
	}
	p := printer{view: v, edge: t.Elems() > mostPrinted, element: v.text()}
	p.WriteString(t.String())
	if t.Rank() > 1 {
		p.WriteByte('\n')
	} else {
		p.WriteByte(' ')
		p.column = p.Len()
	}
	if t.Rank() > 0 {
		p.measure(0, 0)
	}
	p.axis(0, 0)
	return p.String()
}

// text is how an element is printed, by number.
func (v View) text() func(i int) string {
	switch v.Type.DType {
	case F32:
		return func(i int) string { return number(float64(v.F32()[i])) }
	case F64:
		return func(i int) string { return number(v.F64()[i]) }
	case BF16:
		return func(i int) string { return number(float64(FromBF16(v.U16()[i]))) }
	case F16:
		return func(i int) string { return number(float64(FromF16(v.U16()[i]))) }
	case Bool:
		return func(i int) string { return strconv.FormatBool(v.U8()[i] != 0) }
	case U64:
		return func(i int) string { return strconv.FormatUint(v.U64()[i], 10) }
	}
	return func(i int) string { return strconv.FormatInt(v.integer(i), 10) }
}

// integer is an element of a view of integers that an int64 holds.
func (v View) integer(i int) int64 {
	out := New(Of(I64))
	size := int(v.Type.DType.Size())
	Convert(out, View{Type: Of(v.Type.DType), Data: v.Data[i*size : (i+1)*size]}, 0, 1)
	return out.I64()[0]
}

func number(x float64) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// printer prints the values of a view.
type printer struct {
	strings.Builder
	view    View
	element func(i int) string
	edge    bool // only the ends of axes
	width   int  // of the widest element
	column  int  // of the line that is being printed
}

// each calls f for the indices of an axis that are printed; with −1 for those that are
// left out.
func (p *printer) each(axis int, f func(i int)) {
	n := p.view.Type.Size(axis)
	for i := 0; i < n; i++ {
		if p.edge && i == ends && n > 2*ends {
			f(-1)
			i = n - ends
		}
		f(i)
	}
}

// measure finds the widest element that is printed, of those below an axis whose first
// is at.
func (p *printer) measure(axis, at int) {
	if axis == p.view.Type.Rank() {
		p.width = max(p.width, len(p.element(at)))
		return
	}
	p.each(axis, func(i int) {
		if i >= 0 {
			p.measure(axis+1, at*p.view.Type.Size(axis)+i)
		}
	})
}

// axis prints what is below an axis, in brackets; below the last one is an element.
func (p *printer) axis(axis, at int) {
	rank := p.view.Type.Rank()
	if axis == rank {
		p.WriteString(p.element(at))
		return
	}
	p.write("[")
	first := true
	p.each(axis, func(i int) {
		if !first && axis < rank-1 {
			p.newLine(axis+1, rank-1-axis)
		}
		switch {
		case i < 0 && axis == rank-1:
			p.item("...", first, axis)
		case i < 0:
			p.write("...")
		case axis == rank-1:
			p.item(p.element(at*p.view.Type.Size(axis)+i), first, axis)
		default:
			p.axis(axis+1, at*p.view.Type.Size(axis)+i)
		}
		first = false
	})
	p.write("]")
}

// item prints an element of the last axis, right-aligned, where there is room.
func (p *printer) item(s string, first bool, axis int) {
	if s != "..." {
		s = strings.Repeat(" ", p.width-len(s)) + s
	}
	switch {
	case first:
	case p.column+1+len(s) > lineColumns:
		p.newLine(axis+1, 1)
	default:
		p.write(" ")
	}
	p.write(s)
}

func (p *printer) write(s string) {
	p.WriteString(s)
	p.column += len(s)
}

// newLine begins a line below so many open brackets. Between the parts of an outer axis
// there are blank lines, as in NumPy.
func (p *printer) newLine(indent, lines int) {
	p.WriteString(strings.Repeat("\n", lines) + strings.Repeat(" ", indent))
	p.column = indent
}
