package distrib

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// WireSize is how many bytes AppendWire appends.
func (u Dense) WireSize() int { return 4 * len(u) }

// AppendWire appends the numbers.
func (u Dense) AppendWire(b []byte) []byte { return appendNumbers(b, u, F32) }

// WireSize is how many bytes AppendWire appends.
func (u Sparse) WireSize() int { return u.size(F32) }

// AppendWire appends where the numbers are, as a bitmap or as gaps, whatever is less, and
// the numbers.
func (u Sparse) AppendWire(b []byte) []byte { return u.appendAs(b, F32) }

// WireSize is how many bytes AppendWire appends.
func (u Factored) WireSize() int { return 4 * (len(u.A) + len(u.B)) }

// AppendWire appends A and B.
func (u Factored) AppendWire(b []byte) []byte {
	return appendNumbers(appendNumbers(b, u.A, F32), u.B, F32)
}

// WireSize is how many bytes AppendWire appends.
func (u Half) WireSize() int {
	switch v := u.Update.(type) {
	case Dense:
		return 2 * len(v)
	case Sparse:
		return v.size(u.As)
	case Factored:
		return 2 * (len(v.A) + len(v.B))
	}
	return u.Update.WireSize()
}

// AppendWire appends the update with two bytes a number.
func (u Half) AppendWire(b []byte) []byte {
	switch v := u.Update.(type) {
	case Dense:
		return appendNumbers(b, v, u.As)
	case Sparse:
		return v.appendAs(b, u.As)
	case Factored:
		return appendNumbers(appendNumbers(b, v.A, u.As), v.B, u.As)
	}
	return u.Update.AppendWire(b)
}

func appendNumbers(b []byte, x []float32, as DType) []byte {
	le := binary.LittleEndian
	from := len(b)
	b = append(b, make([]byte, as.Size()*len(x))...)
	out := b[from:]
	if as == F32 {
		for i, v := range x {
			le.PutUint32(out[4*i:], math.Float32bits(v))
		}
		return b
	}
	for i, v := range x {
		le.PutUint16(out[2*i:], as.bits(v))
	}
	return b
}

// numbers reads as many as b has bytes for.
func numbers(b []byte, as DType) []float32 {
	le := binary.LittleEndian
	out := make([]float32, len(b)/as.Size())
	if as == F32 {
		for i := range out {
			out[i] = math.Float32frombits(le.Uint32(b[4*i:]))
		}
		return out
	}
	for i := range out {
		out[i] = as.value(le.Uint16(b[2*i:]))
	}
	return out
}

// coding is the shorter way to say where a sparse update's numbers are, and its bytes.
func (u Sparse) coding() (kind byte, size int) {
	gaps := uvarintSize(uint64(len(u.Idx)))
	u.gaps(func(gap uint64) { gaps += uvarintSize(gap) })
	if bitmap := (u.N + 7) / 8; bitmap <= gaps {
		return kindBitmap, bitmap
	}
	return kindGaps, gaps
}

// gaps says how many elements are left out before each one.
func (u Sparse) gaps(yield func(uint64)) {
	next := uint64(0)
	for _, at := range u.Idx {
		yield(uint64(at) - next)
		next = uint64(at) + 1
	}
}

func uvarintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

func (u Sparse) size(as DType) int {
	_, n := u.coding()
	return n + as.Size()*len(u.Val)
}

func (u Sparse) appendAs(b []byte, as DType) []byte {
	if kind, n := u.coding(); kind == kindBitmap {
		from := len(b)
		b = append(b, make([]byte, n)...)
		for _, at := range u.Idx {
			b[from+int(at/8)] |= 1 << (at % 8)
		}
	} else {
		b = binary.AppendUvarint(b, uint64(len(u.Idx)))
		u.gaps(func(gap uint64) { b = binary.AppendUvarint(b, gap) })
	}
	return appendNumbers(b, u.Val, as)
}

// decodeBody reads an update of so many rows of cols elements.
func decodeBody(kind byte, as DType, rows, cols int, b []byte) (Update, error) {
	switch kind {
	case kindDense:
		if int64(len(b)) != int64(rows)*int64(cols)*int64(as.Size()) {
			return nil, badFrame("%d bytes for %d rows of %d %v", len(b), rows, cols, as)
		}
		return Dense(numbers(b, as)), nil
	case kindBitmap:
		return decodeBitmap(as, rows*cols, b)
	case kindGaps:
		return decodeGaps(as, rows*cols, b)
	case kindFactored:
		return decodeFactored(as, rows, cols, b)
	}
	return nil, badFrame("an update of kind %d", kind)
}

func decodeBitmap(as DType, n int, b []byte) (Update, error) {
	r := reader{b: b}
	idx, err := r.bits(n, as.Size())
	if err != nil {
		return nil, err
	}
	return decodeSparse(as, n, idx, r.b)
}

// decodeSparse reads the numbers of some elements.
func decodeSparse(as DType, n int, idx []uint32, b []byte) (Update, error) {
	if len(b) != len(idx)*as.Size() {
		return nil, badFrame("%d bytes for %d numbers of type %v", len(b), len(idx), as)
	}
	return Sparse{N: n, Idx: idx, Val: numbers(b, as)}, nil
}

// bits reads which of n elements are there, of which at least so many bytes each follow.
func (r *reader) bits(n, each int) ([]uint32, error) {
	size := (n + 7) / 8
	if len(r.b) < size {
		return nil, badFrame("%d bytes for a bitmap of %d elements", len(r.b), n)
	}
	bitmap := r.take(uint64(size))
	if n%8 != 0 && bitmap[size-1]>>(n%8) != 0 {
		return nil, badFrame("a bitmap of more than %d elements", n)
	}
	nz := 0
	for _, w := range bitmap {
		nz += bits.OnesCount8(w)
	}
	if len(r.b) < nz*each {
		return nil, badFrame("%d bytes for %d numbers", len(r.b), nz)
	}
	idx := make([]uint32, 0, nz)
	for i, w := range bitmap {
		for ; w != 0; w &= w - 1 {
			idx = append(idx, uint32(8*i+bits.TrailingZeros8(w)))
		}
	}
	return idx, nil
}

func decodeGaps(as DType, n int, b []byte) (Update, error) {
	r := reader{b: b}
	idx, err := r.places(n, as.Size())
	if err != nil {
		return nil, err
	}
	return decodeSparse(as, n, idx, r.b)
}

// places reads, by their gaps, which of n elements are there, of which at least so many bytes each
// follow.
func (r *reader) places(n, each int) ([]uint32, error) {
	nz := r.uvarint()
	if r.short || nz > uint64(len(r.b))/uint64(1+each) {
		return nil, badFrame("%d bytes for %d gaps and numbers", len(r.b), nz)
	}
	idx := make([]uint32, nz)
	next := uint64(0)
	for i := range idx {
		gap := r.uvarint()
		if r.short || gap >= uint64(n) || next+gap >= uint64(n) {
			return nil, badFrame("element %d of %d by its gap", next+gap, n)
		}
		idx[i] = uint32(next + gap)
		next += gap + 1
	}
	return idx, nil
}

func decodeFactored(as DType, j, k int, b []byte) (Update, error) {
	pair := (j + k) * as.Size()
	if pair == 0 || len(b)%pair != 0 {
		return nil, badFrame("%d bytes for factors of %d and %d", len(b), j, k)
	}
	r := len(b) / pair
	x := numbers(b, as)
	return Factored{R: r, J: j, K: k, A: x[: r*j : r*j], B: x[r*j:]}, nil
}
