package distrib

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// The wire format. A message of updates is frames one after the other. A frame is a
// header of 40 bytes, little endian, and a body:
//
//	 0  magic 0x6d67    2  kind, dtype    4  param    8  row    12  n
//	16  clock, 48 bits    22  tag, 48 bits    28  epoch    32  bytes of body
//	36  CRC-32C of the header up to here and the body
//
// Bodies, numbers in the type of the header:
//
//	dense     rows*cols numbers
//	bitmap    a bit for each of rows*cols elements, and the numbers of those that are set
//	gaps      varint count; for each element how many are left out before it, as varint;
//	          the numbers
//	factored  R rows of J numbers, R rows of K
//	cell      what a [Cell] appends, of one row of a parameter that has a [Kind]
//	batch     n records, rows ascending: {varint rows left out, varint rows, kind, clock and
//	          tag less the header's as signed varints, varint bytes, body}
//
// A batch is for many rows of one parameter in one message: a record costs 6 bytes or so
// where a frame costs 40. Row and n of a batch's header are the first row and the number
// of records.
const (
	magic      = 0x6d67
	headerSize = 40
)

const (
	kindDense byte = iota + 1
	kindBitmap
	kindGaps
	kindFactored
	kindBatch
	kindCell
)

// Frame is an update on its way: what a receiver must know of it.
type Frame struct {
	Ref   Ref
	Clock Clock   // 0 to 2^48-1
	Tag   Version // the same
	Epoch int64   // 0 to 2^32-1
	U     Update
}

// FrameError says that bytes are no frame, or not one for these parameters.
type FrameError struct{ What string }

// Error is one line.
func (e *FrameError) Error() string { return "bad frame of updates: " + e.What }

func badFrame(format string, args ...any) error { return &FrameError{fmt.Sprintf(format, args...)} }

// Shapes gives a parameter's rows and columns; !ok if there is none of that number.
type Shapes func(ParamID) (rows, cols int, ok bool)

// FrameSize is how many bytes AppendFrame appends.
func FrameSize(f Frame) int { return headerSize + f.U.WireSize() }

// AppendFrame appends a frame to b. The error is a *[FrameError]: a number does not fit
// its field, or the update is no form of this package.
func AppendFrame(b []byte, f Frame) ([]byte, error) {
	kind, err := kindOf(f.U)
	if err != nil {
		return b, err
	}
	if err := fits(f); err != nil {
		return b, err
	}
	from := len(b)
	b = appendHeader(b, f, kind, dtypeOf(f.U))
	return seal(f.U.AppendWire(b), from)
}

func kindOf(u Update) (byte, error) {
	switch u := plain(u).(type) {
	case Dense:
		return kindDense, nil
	case Sparse:
		kind, _ := u.coding()
		return kind, nil
	case Factored:
		return kindFactored, nil
	case Cell:
		return kindCell, nil
	}
	return 0, badFrame("updates of type %T have no wire format", u)
}

func dtypeOf(u Update) DType {
	if h, ok := u.(Half); ok {
		return h.As
	}
	return F32
}

const most48 = 1<<48 - 1

func fits(f Frame) error {
	switch {
	case f.Clock < 0 || f.Clock > most48:
		return badFrame("clock %d has more than 48 bits", f.Clock)
	case f.Tag < 0 || f.Tag > most48:
		return badFrame("tag %d has more than 48 bits", f.Tag)
	case f.Epoch < 0 || f.Epoch > math.MaxUint32:
		return badFrame("epoch %d has more than 32 bits", f.Epoch)
	case f.Ref.Param < 0 || f.Ref.Row < 0 || f.Ref.N < 0:
		return badFrame("negative rows %+v", f.Ref)
	}
	return nil
}

func appendHeader(b []byte, f Frame, kind byte, dtype DType) []byte {
	le := binary.LittleEndian
	b = le.AppendUint16(b, magic)
	b = append(b, kind, byte(dtype))
	b = le.AppendUint32(b, uint32(f.Ref.Param))
	b = le.AppendUint32(b, uint32(f.Ref.Row))
	b = le.AppendUint32(b, uint32(f.Ref.N))
	b = append48(b, uint64(f.Clock))
	b = append48(b, uint64(f.Tag))
	b = le.AppendUint32(b, uint32(f.Epoch))
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0)
}

func append48(b []byte, v uint64) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(v))
	return binary.LittleEndian.AppendUint16(b, uint16(v>>32))
}

func get48(b []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint16(b[4:]))<<32
}

// seal fills in length and checksum of the frame that begins at from.
func seal(b []byte, from int) ([]byte, error) {
	f := b[from:]
	n := len(f) - headerSize
	if int64(n) > math.MaxUint32 {
		return b[:from], badFrame("a body of %d bytes has no room", n)
	}
	binary.LittleEndian.PutUint32(f[32:], uint32(n))
	binary.LittleEndian.PutUint32(f[36:], checksum(f))
	return b, nil
}

func checksum(f []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // the package's own, made once
	return crc32.Update(crc32.Checksum(f[:36], table), table, f[headerSize:])
}

// AppendBatch appends one frame of many updates of one parameter, epoch and dtype, whose
// rows ascend and do not overlap. The error is a *[FrameError].
func AppendBatch(b []byte, frames []Frame) ([]byte, error) {
	if len(frames) == 0 {
		return b, nil
	}
	first := frames[0]
	from, next := len(b), first.Ref.Row
	head := first
	head.Ref.N = int32(len(frames))
	b = appendHeader(b, head, kindBatch, dtypeOf(first.U))
	for _, f := range frames {
		if err := inBatch(first, f, next); err != nil {
			return b[:from], err
		}
		b = appendRecord(b, first, f, next)
		next = f.Ref.Row + f.Ref.N
	}
	return seal(b, from)
}

func inBatch(first, f Frame, next int32) error {
	if _, err := kindOf(f.U); err != nil {
		return err
	}
	if err := fits(f); err != nil {
		return err
	}
	switch {
	case f.Ref.Param != first.Ref.Param || f.Epoch != first.Epoch:
		return badFrame("one batch of %+v in epoch %d and %+v in epoch %d",
			first.Ref, first.Epoch, f.Ref, f.Epoch)
	case dtypeOf(f.U) != dtypeOf(first.U):
		return badFrame("one batch of %v and %v", dtypeOf(first.U), dtypeOf(f.U))
	case f.Ref.N == 0 || f.Ref.Row < next:
		return badFrame("rows %+v in a batch after row %d", f.Ref, next)
	}
	return nil
}

func appendRecord(b []byte, first, f Frame, next int32) []byte {
	kind, _ := kindOf(f.U)
	b = binary.AppendUvarint(b, uint64(f.Ref.Row-next))
	b = binary.AppendUvarint(b, uint64(f.Ref.N))
	b = append(b, kind)
	b = binary.AppendVarint(b, int64(f.Clock-first.Clock))
	b = binary.AppendVarint(b, int64(f.Tag-first.Tag))
	b = binary.AppendUvarint(b, uint64(f.U.WireSize()))
	return f.U.AppendWire(b)
}

// Decode calls yield with every update of a message, in order. Checksums, and lengths
// against the parameters' shapes, are checked before memory is allocated, of which there
// is no more for numbers than four times the message. The updates share none with it. The
// error is a *[FrameError], or what yield returned; what came before it has been yielded,
// frame by frame.
func Decode(msg []byte, shapes Shapes, yield func(Frame) error) error {
	return decode(msg, shapes, func(ParamID) Kind { return nil }, yield)
}

// decode is [Decode] where parameters may have rows of a kind: nil is dense numbers.
func decode(msg []byte, shapes Shapes, kinds func(ParamID) Kind, yield func(Frame) error) error {
	for len(msg) > 0 {
		d, rest, err := open(msg, shapes)
		if err != nil {
			return err
		}
		msg, d.own = rest, kinds(d.head.Ref.Param)
		if d.kind == kindBatch {
			err = d.batch(yield)
		} else {
			err = d.single(yield)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decoder is a frame that has been opened.
type decoder struct {
	head       Frame // without its update
	kind       byte
	dtype      DType
	rows, cols int // of the parameter
	own        Kind
	body       []byte
}

// open checks a message's first frame and returns what is behind it.
func open(msg []byte, shapes Shapes) (d *decoder, rest []byte, err error) {
	le := binary.LittleEndian
	if len(msg) < headerSize {
		return nil, nil, badFrame("%d bytes are less than a header", len(msg))
	}
	if m := le.Uint16(msg); m != magic {
		return nil, nil, badFrame("it begins with %#04x", m)
	}
	size := int64(le.Uint32(msg[32:]))
	if size > int64(len(msg)-headerSize) {
		return nil, nil, badFrame("a body of %d bytes where %d are left", size,
			len(msg)-headerSize)
	}
	f, rest := msg[:headerSize+size], msg[headerSize+size:]
	if got, want := checksum(f), le.Uint32(f[36:]); got != want {
		return nil, nil, badFrame("checksum %08x where its header says %08x", got, want)
	}
	d = &decoder{kind: f[2], dtype: DType(f[3]), body: f[headerSize:]}
	if d.dtype >= dtypes {
		return nil, nil, badFrame("%v", d.dtype)
	}
	return d, rest, d.readHead(f, shapes)
}

func (d *decoder) readHead(f []byte, shapes Shapes) error {
	le := binary.LittleEndian
	param, row, n := le.Uint32(f[4:]), le.Uint32(f[8:]), le.Uint32(f[12:])
	if max(param, row, n) > math.MaxInt32 {
		return badFrame("rows [%d, +%d) of parameter %d", row, n, param)
	}
	var ok bool
	if d.rows, d.cols, ok = shapes(ParamID(param)); !ok {
		return badFrame("there is no parameter %d", param)
	}
	d.head = Frame{
		Ref:   Ref{Param: ParamID(param), Row: int32(row), N: int32(n)},
		Clock: Clock(get48(f[16:])),
		Tag:   Version(get48(f[22:])),
		Epoch: int64(le.Uint32(f[28:])),
	}
	return nil
}

// span is how many rows a frame is about, if the parameter has them.
func (d *decoder) span(r Ref) (int, error) {
	if r.N == 0 && r.Row == 0 {
		return d.rows, nil
	}
	if r.N == 0 || int(r.Row) > d.rows || int(r.N) > d.rows-int(r.Row) {
		return 0, badFrame("rows [%d, +%d) of parameter %d, which has %d",
			r.Row, r.N, r.Param, d.rows)
	}
	return int(r.N), nil
}

func (d *decoder) single(yield func(Frame) error) error {
	n, err := d.span(d.head.Ref)
	if err != nil {
		return err
	}
	f := d.head
	if f.U, err = d.update(d.kind, n, d.body); err != nil {
		return err
	}
	return yield(f)
}

func (d *decoder) batch(yield func(Frame) error) error {
	b, next := d.body, int64(d.head.Ref.Row)
	for range d.head.Ref.N {
		f, rest, err := d.record(b, next)
		if err != nil {
			return err
		}
		b, next = rest, int64(f.Ref.Row)+int64(f.Ref.N)
		if err := yield(f); err != nil {
			return err
		}
	}
	if len(b) > 0 {
		return badFrame("%d bytes behind a batch of %d", len(b), d.head.Ref.N)
	}
	return nil
}

// record reads a batch's record, whose row is at least next.
func (d *decoder) record(b []byte, next int64) (f Frame, rest []byte, err error) {
	r := reader{b: b}
	gap, n := r.uvarint(), r.uvarint()
	kind := r.byte()
	clock, tag := r.varint(), r.varint()
	body := r.take(r.uvarint())
	if r.short || gap > math.MaxInt32 || n > math.MaxInt32 {
		return f, nil, badFrame("a batch of %d ends early", d.head.Ref.N)
	}
	f = d.head
	f.Clock, f.Tag = f.Clock+Clock(clock), f.Tag+Version(tag)
	row := next + int64(gap)
	if row > math.MaxInt32 || n == 0 {
		return f, nil, badFrame("a batch of rows [%d, +%d)", row, n)
	}
	f.Ref.Row, f.Ref.N = int32(row), int32(n)
	if err := fits(f); err != nil {
		return f, nil, err
	}
	rows, err := d.span(f.Ref)
	if err != nil {
		return f, nil, err
	}
	f.U, err = d.update(kind, rows, body)
	return f, r.b, err
}

// update reads an update of so many rows.
func (d *decoder) update(kind byte, rows int, body []byte) (Update, error) {
	if d.own != nil && rows != 1 {
		return nil, badFrame("an update of %d rows of kind %s", rows, d.own.Name())
	}
	return decodeRow(d.own, kind, d.dtype, rows, d.cols, body)
}

// decodeRow reads an update of rows of a kind, nil if they are dense numbers.
func decodeRow(own Kind, kind byte, as DType, rows, cols int, body []byte) (u Update, err error) {
	switch {
	case kind != kindCell:
		u, err = decodeBody(kind, as, rows, cols, body)
	case own == nil:
		return nil, badFrame("a cell in rows of dense numbers")
	default:
		u, err = own.Decode(body, cols)
	}
	if err == nil && own != nil {
		err = own.Check(u, cols)
	}
	if err != nil && own != nil {
		err = badFrame("a row of kind %s: %v", own.Name(), err)
	}
	return u, err
}

// reader takes numbers from bytes, and notes if there were too few.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.advance(n)
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	r.advance(n)
	return v
}

func (r *reader) advance(n int) {
	if n <= 0 {
		r.short, r.b = true, nil
		return
	}
	r.b = r.b[n:]
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// take is the next n bytes, nil if there are fewer.
func (r *reader) take(n uint64) []byte {
	if r.short || n > uint64(len(r.b)) {
		r.short, r.b = true, nil
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}
