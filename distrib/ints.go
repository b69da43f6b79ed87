package distrib

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
)

// IntRows is the kind of rows of int32 counts: a row is sparse until more than half of its elements
// are not zero, where a dense one takes no more memory, and sparse again when less than a quarter
// are. Updates are [Ints]. Sums are exact modulo 2^32, in any order.
type IntRows struct{}

// Name is "int32".
func (IntRows) Name() string { return "int32" }

// Zero has no elements.
func (IntRows) Zero(cols int) Update { return Ints{N: cols} }

// Most is that of a dense row, and how it is written.
func (IntRows) Most(cols int) int { return 4*cols + 1 }

// Check admits [Ints]. The error is a *[ShapeError].
func (IntRows) Check(u Update, cols int) error {
	x, ok := u.(Ints)
	what := fmt.Sprintf("an update of type %T, of a row of integers,", u)
	if ok {
		what = x.misfit(cols)
	}
	if what != "" {
		return &ShapeError{1, cols, what}
	}
	return nil
}

// Ints is integers for some of N elements: Val[i] for element Idx[i], which ascend; or one for
// every element, if Idx is nil and there are as many of Val.
type Ints struct {
	N   int
	Idx []uint32
	Val []int32

	some int // of a dense one, how many are not zero; 0: nobody has counted
}

func (u Ints) dense() bool { return u.Idx == nil && len(u.Val) > 0 }

func (u Ints) misfit(n int) string {
	switch {
	case u.N != n:
		return fmt.Sprintf("a row of %d integers", u.N)
	case u.dense() && len(u.Val) != n, u.Idx != nil && len(u.Idx) != len(u.Val):
		return fmt.Sprintf("a row of %d integers, %d of them at %d places,", n, len(u.Val),
			len(u.Idx))
	}
	return ascending(u.Idx, n)
}

// At is an element.
func (u Ints) At(i int) int32 {
	if u.dense() {
		return u.Val[i]
	}
	if at, ok := slices.BinarySearch(u.Idx, uint32(i)); ok {
		return u.Val[at]
	}
	return 0
}

// All is the elements that are not zero, ascending.
func (u Ints) All() iter.Seq2[int, int32] {
	return func(yield func(int, int32) bool) {
		for i, v := range u.Val {
			at := i
			if u.Idx != nil {
				at = int(u.Idx[i])
			}
			if v != 0 && !yield(at, v) {
				return
			}
		}
	}
}

// AddTo adds scale*u to dst, which has N elements. cols does not matter.
func (u Ints) AddTo(dst []float32, cols int, scale float32) {
	for at, v := range u.All() {
		dst[at] += float32(scale * float32(v))
	}
}

// Norm is the Euclidean norm.
func (u Ints) Norm() float64 {
	var sum float64
	for _, v := range u.Val {
		sum += float64(float64(v) * float64(v))
	}
	return math.Sqrt(sum)
}

// Elements is N.
func (u Ints) Elements() int { return u.N }

// Bytes is eight an element of a sparse row, and four of a dense one.
func (u Ints) Bytes() int { return 4 * (len(u.Idx) + len(u.Val)) }

// Sums is exact below 2^53.
func (u Ints) Sums() (sum, size float64) {
	for _, v := range u.Val {
		sum, size = sum+float64(v), size+math.Abs(float64(v))
	}
	return sum, size
}

// Values are the elements that are there.
func (u Ints) Values() []float32 {
	x := make([]float32, len(u.Val))
	for i, v := range u.Val {
		x[i] = float32(v)
	}
	return x
}

// Divide sends some elements, and keeps the others but zeros.
func (u Ints) Divide(goes func(float32) bool) (send, keep Update) {
	sent, kept := Ints{N: u.N}, Ints{N: u.N}
	for i, v := range u.Val {
		to, at := &kept, uint32(i)
		if goes(float32(v)) {
			to = &sent
		}
		if v == 0 {
			continue
		}
		if u.Idx != nil {
			at = u.Idx[i]
		}
		to.Idx, to.Val = append(to.Idx, at), append(to.Val, v)
	}
	return sent.orNil(), kept.orNil()
}

func (u Ints) orNil() Update {
	if len(u.Val) == 0 {
		return nil
	}
	return u.fitting(len(u.Val))
}

// Plus is the sum.
func (u Ints) Plus(other Update, owned bool) Update {
	v := other.(Ints)
	switch {
	case u.dense():
		return u.plusDense(v, owned)
	case v.dense():
		return v.plusDense(u, false)
	}
	return u.plusSparse(v, owned)
}

// plusDense is the sum of a dense row and another.
func (u Ints) plusDense(v Ints, owned bool) Ints {
	if u.some == 0 {
		u.some = countOf(u.Val)
	}
	if !owned {
		u.Val = slices.Clone(u.Val)
	}
	for at, d := range v.All() {
		before := u.Val[at]
		u.Val[at] += d
		switch {
		case before == 0:
			u.some++
		case u.Val[at] == 0:
			u.some--
		}
	}
	return u.fitting(u.some)
}

func countOf(x []int32) int {
	n := 0
	for _, v := range x {
		if v != 0 {
			n++
		}
	}
	return n
}

// plusSparse merges two sparse rows; what comes to zero goes.
func (u Ints) plusSparse(v Ints, owned bool) Ints {
	if owned && u.addInPlace(v) {
		return u
	}
	out := Ints{N: u.N, Idx: make([]uint32, 0, len(u.Idx)+len(v.Idx))}
	out.Val = make([]int32, 0, cap(out.Idx))
	for i, j := 0, 0; i < len(u.Idx) || j < len(v.Idx); {
		var at uint32
		var sum int32
		inU := j == len(v.Idx) || i < len(u.Idx) && u.Idx[i] <= v.Idx[j]
		inV := i == len(u.Idx) || j < len(v.Idx) && v.Idx[j] <= u.Idx[i]
		if inU {
			at, sum = u.Idx[i], u.Val[i]
			i++
		}
		if inV {
			at, sum = v.Idx[j], sum+v.Val[j]
			j++
		}
		if sum != 0 {
			out.Idx, out.Val = append(out.Idx, at), append(out.Val, sum)
		}
	}
	return out.fitting(len(out.Idx))
}

// addInPlace adds a row whose elements are all there already and none of which comes to zero; or
// it does nothing.
func (u Ints) addInPlace(v Ints) bool {
	places := make([]int, len(v.Idx))
	for i, at := range v.Idx {
		k, ok := slices.BinarySearch(u.Idx, at)
		if !ok || u.Val[k]+v.Val[i] == 0 {
			return false
		}
		places[i] = k
	}
	for i, k := range places {
		u.Val[k] += v.Val[i]
	}
	return true
}

// fitting is a row of so many elements that are not zero in its form: more than half are dense,
// fewer than a quarter are not, and in between it stays what it is.
func (u Ints) fitting(some int) Ints {
	switch {
	case !u.dense() && 2*some > u.N:
		out := Ints{N: u.N, Val: make([]int32, u.N), some: some}
		for at, v := range u.All() {
			out.Val[at] = v
		}
		return out
	case u.dense() && 4*some < u.N:
		out := Ints{N: u.N, Idx: make([]uint32, 0, some), Val: make([]int32, 0, some)}
		for at, v := range u.All() {
			out.Idx, out.Val = append(out.Idx, uint32(at)), append(out.Val, v)
		}
		return out
	case u.dense():
		return u
	}
	return Ints{N: u.N, Idx: tight(u.Idx), Val: tight(u.Val)}
}

// tight is a list that has not much more memory than it needs.
func tight[T any](x []T) []T {
	if cap(x)-len(x) > len(x)/4 {
		return slices.Clone(x)
	}
	return x
}

// How integers are written: a byte, and then
const (
	intsDense  byte = iota // N of four bytes
	intsGaps               // varint count, gaps as of [Sparse], and zigzag varints
	intsBitmap             // a bit for each of N elements, and zigzag varints
)

func zigzag(v int32) uint64 { return uint64(uint32(v)<<1 ^ uint32(v>>31)) }

func unzigzag(v uint64) (int32, bool) {
	return int32(uint32(v)>>1) ^ -int32(v&1), v <= math.MaxUint32
}

// coding is the shortest way to write integers, and its bytes.
func (u Ints) coding() (form byte, size int) {
	gaps, values, some := 0, 0, 0
	next := 0
	for at, v := range u.All() {
		gaps += uvarintSize(uint64(at - next))
		values += uvarintSize(zigzag(v))
		next = at + 1
		some++
	}
	form, size = intsGaps, uvarintSize(uint64(some))+gaps+values
	if n := (u.N+7)/8 + values; n < size {
		form, size = intsBitmap, n
	}
	if n := 4 * u.N; n < size {
		form, size = intsDense, n
	}
	return form, size + 1
}

// WireSize is how many bytes AppendWire appends.
func (u Ints) WireSize() int {
	_, n := u.coding()
	return n
}

// AppendWire appends the integers that are not zero, in the shortest of three ways.
func (u Ints) AppendWire(b []byte) []byte {
	form, _ := u.coding()
	b = append(b, form)
	switch form {
	case intsDense:
		for i := range u.N {
			b = binary.LittleEndian.AppendUint32(b, uint32(u.At(i)))
		}
		return b
	case intsGaps:
		b = u.appendGaps(b)
	case intsBitmap:
		from := len(b)
		b = append(b, make([]byte, (u.N+7)/8)...)
		for at := range u.All() {
			b[from+at/8] |= 1 << (at % 8)
		}
	}
	for _, v := range u.All() {
		b = binary.AppendUvarint(b, zigzag(v))
	}
	return b
}

func (u Ints) appendGaps(b []byte) []byte {
	some, next := len(u.Val), 0
	if slices.Contains(u.Val, 0) {
		some = countOf(u.Val)
	}
	b = binary.AppendUvarint(b, uint64(some))
	for at := range u.All() {
		b = binary.AppendUvarint(b, uint64(at-next))
		next = at + 1
	}
	return b
}

// Decode reads what [Ints.AppendWire] has written. The error is a *[FrameError].
func (IntRows) Decode(b []byte, cols int) (Update, error) {
	r := reader{b: b}
	form := r.byte()
	var idx []uint32
	var err error
	switch {
	case r.short:
		return nil, badFrame("no integers")
	case form == intsDense:
		return decodeDenseInts(r.b, cols)
	case form == intsGaps:
		idx, err = r.places(cols, 1)
	case form == intsBitmap:
		idx, err = r.bits(cols, 1)
	default:
		return nil, badFrame("integers written in way %d", form)
	}
	if err != nil {
		return nil, err
	}
	u := Ints{N: cols, Idx: idx, Val: make([]int32, len(idx))}
	for i := range u.Val {
		v, fits := unzigzag(r.uvarint())
		if r.short || !fits || v == 0 {
			return nil, badFrame("integer %d of %d is 0, of more than 32 bits, or not there", i,
				len(idx))
		}
		u.Val[i] = v
	}
	if len(r.b) > 0 {
		return nil, badFrame("%d bytes behind %d integers", len(r.b), len(idx))
	}
	return u.fitting(len(idx)), nil
}

func decodeDenseInts(b []byte, cols int) (Update, error) {
	if int64(len(b)) != 4*int64(cols) {
		return nil, badFrame("%d bytes for %d integers", len(b), cols)
	}
	u := Ints{N: cols, Val: make([]int32, cols)}
	for i := range u.Val {
		u.Val[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	u.some = countOf(u.Val)
	return u.fitting(u.some), nil
}
