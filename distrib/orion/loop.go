package orion

import (
	"errors"
	"fmt"
	"slices"
)

// What a loop may have at most: enough for any that is written by hand, and few enough for sums and
// products of them to be numbers of 64 bits.
const (
	maxDims     = 6
	maxArrays   = 64
	maxRefs     = 256
	maxSize     = 1 << 40
	maxElements = 1 << 50
)

// Loop is a loop over data: what its iterations are, and what each of them uses.
type Loop struct {
	Name    string
	Ordered bool  // iterations that depend on each other run in lexicographic order
	Space   []Dim // the first is the outermost
	Arrays  []Array
	Refs    []Ref
}

// Dim is a dimension of a loop. Its index runs from 0 to below Size.
type Dim struct {
	Name string
	Size int64
}

// Array is what iterations read and write. Bytes are those of an element.
type Array struct {
	Name  string
	Shape []int64
	Bytes int64
}

// Ref is one reference of the loop's body to an array, by its number, with a subscript for each of
// its dimensions.
type Ref struct {
	Array  int
	Access Access
	At     []Subscript
}

// Access is what a reference does.
type Access int

// The ways to use an element. What is buffered is written later, and not analysed.
const (
	Read Access = iota
	Write
	Buffer
)

// String is what an access is called in a loop's text.
func (a Access) String() string { return [...]string{"read", "write", "buffer"}[a] }

// Subscript is where in one of its dimensions a reference finds its element.
type Subscript struct {
	Form SubscriptForm
	Dim  int   // of an index, the loop's dimension
	Add  int64 // the constant, or what is added to an index
}

// SubscriptForm is what is known of a subscript.
type SubscriptForm int

// The forms of subscripts (section 5.3.2: stype). What is unknown may be anything.
const (
	Index SubscriptForm = iota
	Constant
	All
	Unknown
)

// Check reports what is wrong with a loop.
func (l *Loop) Check() error {
	switch {
	case len(l.Space) == 0 || len(l.Space) > maxDims:
		return fmt.Errorf("a loop of %d dimensions: want 1 to %d", len(l.Space), maxDims)
	case len(l.Arrays) > maxArrays:
		return fmt.Errorf("%d arrays: want %d at most", len(l.Arrays), maxArrays)
	case len(l.Refs) == 0 || len(l.Refs) > maxRefs:
		return fmt.Errorf("%d references to arrays: want 1 to %d", len(l.Refs), maxRefs)
	}
	names := map[string]bool{}
	var problems []error
	for _, d := range l.Space {
		problems = append(problems, newName(names, d.Name), sized("dimension "+d.Name, d.Size))
	}
	for _, a := range l.Arrays {
		problems = append(problems, newName(names, a.Name), a.check())
	}
	for _, r := range l.Refs {
		problems = append(problems, l.checkRef(r))
	}
	for _, err := range problems {
		if err != nil {
			return err
		}
	}
	return nil
}

// newName reports what is wrong with a name, and notes it.
func newName(names map[string]bool, name string) error {
	if !isName(name) {
		return fmt.Errorf("%.40q is no name: want a letter, then letters, digits or _", name)
	}
	if names[name] {
		return fmt.Errorf("there are two of the name %s", name)
	}
	names[name] = true
	return nil
}

func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}

func sized(what string, size int64) error {
	if size < 1 || size > maxSize {
		return fmt.Errorf("%s has size %d: want 1 to %d", what, size, int64(maxSize))
	}
	return nil
}

func (a Array) check() error {
	if len(a.Shape) == 0 || len(a.Shape) > maxDims {
		return fmt.Errorf("array %s of %d dimensions: want 1 to %d", a.Name, len(a.Shape), maxDims)
	}
	n := int64(1)
	for _, s := range a.Shape {
		if err := sized("a dimension of array "+a.Name, s); err != nil {
			return err
		}
		if n > maxElements/s {
			return fmt.Errorf("array %s has more than %d elements", a.Name, int64(maxElements))
		}
		n *= s
	}
	if a.Bytes < 1 || a.Bytes > 64 {
		return fmt.Errorf("an element of array %s has %d bytes: want 1 to 64", a.Name, a.Bytes)
	}
	return nil
}

// Elements are how many an array has.
func (a Array) Elements() int64 {
	n := int64(1)
	for _, s := range a.Shape {
		n *= s
	}
	return n
}

// checkRef reports what is wrong with a reference.
func (l *Loop) checkRef(r Ref) error {
	switch {
	case r.Array < 0 || r.Array >= len(l.Arrays):
		return errors.New("a reference to no array of the loop")
	case r.Access < Read || r.Access > Buffer:
		return fmt.Errorf("a reference to %s neither reads nor writes", l.Arrays[r.Array].Name)
	}
	a := l.Arrays[r.Array]
	if len(r.At) != len(a.Shape) {
		return fmt.Errorf("%s has %d subscripts, and array %s %d dimensions", l.refText(r),
			len(r.At), a.Name, len(a.Shape))
	}
	for k, s := range r.At {
		if s.Form == Index && (s.Dim < 0 || s.Dim >= len(l.Space)) {
			return fmt.Errorf("a subscript of array %s is an index of no loop", a.Name)
		}
		if s.Add < -maxSize || s.Add > maxSize {
			return fmt.Errorf("%s: %d is too far away", l.refText(r), s.Add)
		}
		if v := l.values(a, k, s); v.from > v.to {
			return fmt.Errorf("%s: subscript %d, %s, is never within 0 to %d", l.refText(r), k+1,
				l.subscriptText(s), a.Shape[k]-1)
		}
	}
	return nil
}

// interval are the whole numbers from one to another.
type interval struct{ from, to int64 }

func (a interval) and(b interval) interval {
	return interval{max(a.from, b.from), min(a.to, b.to)}
}

// values are those that a subscript takes in dimension k of an array.
func (l *Loop) values(a Array, k int, s Subscript) interval {
	all := interval{0, a.Shape[k] - 1}
	switch s.Form {
	case Index:
		return all.and(interval{s.Add, s.Add + l.Space[s.Dim].Size - 1})
	case Constant:
		return all.and(interval{s.Add, s.Add})
	}
	return all
}

// dim is the number of a dimension of a name.
func (l *Loop) dim(name string) (int, error) {
	k := slices.IndexFunc(l.Space, func(d Dim) bool { return d.Name == name })
	if k < 0 {
		return 0, fmt.Errorf("the loop has no dimension %.40q: want %s", name, l.dimNames())
	}
	return k, nil
}

// buffers reports whether the loop has buffered writes.
func (l *Loop) buffers() bool {
	return slices.ContainsFunc(l.Refs, func(r Ref) bool { return r.Access == Buffer })
}

// reach are the values of a coordinate in the loop's space.
func (l *Loop) reach(row []int64) (r interval) {
	for k, x := range row {
		if far := x * (l.Space[k].Size - 1); far < 0 {
			r.from += far
		} else {
			r.to += far
		}
	}
	return r
}

// span is how far apart a coordinate's values are.
func (l *Loop) span(row []int64) int64 {
	r := l.reach(row)
	return r.to - r.from
}

// has reports whether a point is in the loop's space.
func (l *Loop) has(p []int64) bool {
	for k, d := range l.Space {
		if len(p) != len(l.Space) || p[k] < 0 || p[k] >= d.Size {
			return false
		}
	}
	return true
}

// maxPoints is how many iterations of a whole space are listed.
const maxPoints = 1 << 20

// All are the points of a loop's whole space, in order; an error if they are more than a million.
func (l *Loop) All() ([][]int64, error) {
	n := int64(1)
	for _, d := range l.Space {
		if n *= d.Size; n > maxPoints {
			return nil, errors.New("the loop has more than a million iterations")
		}
	}
	points := make([][]int64, n)
	flat := make([]int64, n*int64(len(l.Space)))
	for i := range points {
		points[i] = flat[i*len(l.Space) : (i+1)*len(l.Space)]
		rest := int64(i)
		for k, d := range slices.Backward(l.Space) {
			points[i][k], rest = rest%d.Size, rest/d.Size
		}
	}
	return points, nil
}
