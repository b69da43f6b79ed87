package tensor

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Dim is one axis: a size and, optionally, a name that layout rules refer to.
type Dim struct {
	Name string
	Size int
}

// Type is the element type and the shape of a value, row-major. The zero Type
// is no type at all; a scalar has an element type and an empty shape.
type Type struct {
	DType DType
	Shape []Dim
}

// Of makes a type with unnamed axes.
func Of(d DType, sizes ...int) Type {
	t := Type{DType: d, Shape: make([]Dim, len(sizes))}
	for i, n := range sizes {
		t.Shape[i].Size = n
	}
	return t
}

// Named makes a type from axes.
func Named(d DType, shape ...Dim) Type { return Type{DType: d, Shape: shape} }

// Rank is the number of axes.
func (t Type) Rank() int { return len(t.Shape) }

// Size is the extent of axis i; a negative i counts from the last axis.
func (t Type) Size(i int) int {
	if i < 0 {
		i += len(t.Shape)
	}
	return t.Shape[i].Size
}

// Sizes are the extents of all axes.
func (t Type) Sizes() []int {
	s := make([]int, len(t.Shape))
	for i, d := range t.Shape {
		s[i] = d.Size
	}
	return s
}

// Elems is the number of elements: 1 for a scalar.
func (t Type) Elems() int {
	n := 1
	for _, d := range t.Shape {
		n *= d.Size
	}
	return n
}

// Bytes is the storage that a value of this type needs.
func (t Type) Bytes() int64 { return int64(t.Elems()) * t.DType.Size() }

// Rows is the product of all axes but the last k.
func (t Type) Rows(k int) int {
	n := 1
	for _, d := range t.Shape[:len(t.Shape)-k] {
		n *= d.Size
	}
	return n
}

// Check reports a type that no value can have: no element type, an axis of negative
// size, a repeated axis name, or more bytes than an int64 counts, were axes of size zero
// of size one. A value with such an axis has no elements and no bytes.
func (t Type) Check() error {
	if t.DType.Size() == 0 {
		return errors.New("value without an element type")
	}
	bytes := t.DType.Size()
	for i, d := range t.Shape {
		if d.Size < 0 {
			return fmt.Errorf("axis %d of %.200s has size %d", i, t, d.Size)
		}
		if bytes > math.MaxInt64/int64(max(d.Size, 1)) {
			return fmt.Errorf("%.200s is too large", t)
		}
		bytes *= int64(max(d.Size, 1))
		if d.Name != "" && slices.ContainsFunc(t.Shape[:i],
			func(e Dim) bool { return e.Name == d.Name }) {
			return fmt.Errorf("%.200s names axis %.60q twice", t, d.Name)
		}
	}
	return nil
}

// Equal compares element types and sizes; names do not matter.
func (t Type) Equal(u Type) bool { return t.DType == u.DType && t.SameShape(u) }

// SameShape compares sizes only.
func (t Type) SameShape(u Type) bool {
	return slices.EqualFunc(t.Shape, u.Shape, func(a, b Dim) bool { return a.Size == b.Size })
}

// String prints "f32[batch:32 64]"; a scalar is "f32[]".
func (t Type) String() string {
	var b strings.Builder
	b.WriteString(t.DType.String())
	b.WriteByte('[')
	for i, d := range t.Shape {
		if i > 0 {
			b.WriteByte(' ')
		}
		if d.Name != "" {
			b.WriteString(d.Name)
			b.WriteByte(':')
		}
		b.WriteString(strconv.Itoa(d.Size))
	}
	b.WriteByte(']')
	return b.String()
}

// ParseType reads what String prints.
func ParseType(s string) (Type, error) {
	name, rest, ok := strings.Cut(s, "[")
	if !ok || !strings.HasSuffix(rest, "]") {
		return Type{}, fmt.Errorf("bad type %.60q: want for example f32[8 16]", s)
	}
	d, err := ParseDType(name)
	if err != nil {
		return Type{}, fmt.Errorf("bad type %.60q: %w", s, err)
	}
	t := Type{DType: d}
	for _, f := range strings.Fields(strings.TrimSuffix(rest, "]")) {
		dim := Dim{}
		if i := strings.LastIndexByte(f, ':'); i >= 0 {
			dim.Name, f = f[:i], f[i+1:]
		}
		if strings.ContainsFunc(dim.Name, func(r rune) bool {
			return !unicode.IsPrint(r) || r == unicode.ReplacementChar
		}) {
			return Type{}, fmt.Errorf("bad type %.60q: axis %.60q has no name that can be printed",
				s, dim.Name)
		}
		if dim.Size, err = strconv.Atoi(f); err != nil {
			return Type{}, fmt.Errorf("bad type %.60q: axis %.60q is not a number", s, f)
		}
		t.Shape = append(t.Shape, dim)
	}
	if err := t.Check(); err != nil {
		return Type{}, fmt.Errorf("bad type %.60q: %w", s, err)
	}
	return t, nil
}
