package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync/atomic"

	"google.golang.org/grpc/mem"

	"github.com/gomem/gomem/distrib"
)

// A message travels as frames, each one message of gRPC:
//
//	magic u32 | crc32c u32 of what follows | kind u8 | class u8 | head u16 | 0 u32 |
//	tag u64 | body u64 | head | bytes of the body          first frame of a message
//	magic u32 | crc32c u32 of what follows | kind u8 | class u8 | 0 u16 | number u32 |
//	bytes of the body                                      the ones after it
//
// Numbers are little endian. The body's bytes follow each other as they are.
const (
	magic      = 0x31746d67 // "gmt1"
	firstKind  = 1
	moreKind   = 2
	firstSize  = 32
	moreSize   = 16
	summed     = 8 // where the sum begins
	frameBytes = 1 << 20
	inlineSize = 8 << 10 // a frame's header, a head, and small pieces of a body
	small      = 2 << 10 // pieces below this are copied rather than referred to
	maxRefs    = 16
)

// maxFrame is the most bytes that a frame has.
const maxFrame = frameBytes + inlineSize

// FrameError is bytes that are no frame, or none that may come here.
type FrameError struct{ What string }

// Error is one line.
func (e *FrameError) Error() string { return "corrupt frame: " + e.What }

// frame is what one call of SendMsg carries. It is used again when all of its bytes have
// been written.
type frame struct {
	head    []byte // inlineSize of capacity
	refs    [maxRefs][]byte
	n       int // of refs
	payload int // bytes of the message
	of      *sending
	left    atomic.Int32
	bufs    [maxRefs + 1]mem.Buffer
}

func newFrame() *frame { return &frame{head: make([]byte, 0, inlineSize)} }

// buffers is the frame as gRPC takes it; what it has written comes back through Put.
func (f *frame) buffers() mem.BufferSlice {
	f.left.Store(int32(f.n) + 1)
	f.bufs[0] = mem.NewBuffer(&f.head, f)
	for i := range f.n {
		f.bufs[i+1] = mem.NewBuffer(&f.refs[i], f)
	}
	return f.bufs[:f.n+1]
}

// Get is not called: a frame is a pool only of what it has given out.
func (f *frame) Get(n int) *[]byte { b := make([]byte, n); return &b }

// Put is called when gRPC has no more use for a piece of the frame.
func (f *frame) Put(*[]byte) {
	if f.left.Add(-1) == 0 {
		f.of.wrote(f)
	}
}

// cut makes frames of a message.
type cut struct {
	m      *distrib.Msg
	bare   bool // frames have no sums
	number uint32
	body   int64
	part   int // of the body
	at     int // in that part
}

func (c *cut) begin(m *distrib.Msg) {
	*c = cut{m: m}
	for _, b := range m.Body {
		c.body += int64(len(b))
	}
	c.skip()
}

// next fills a frame, and reports whether there was anything to put into it.
func (c *cut) next(f *frame) bool {
	if c.number > 0 && c.part == len(c.m.Body) {
		return false
	}
	f.head, f.n = f.head[:0], 0
	le := binary.LittleEndian
	f.head = le.AppendUint32(f.head, magic)
	f.head = le.AppendUint32(f.head, 0)
	if c.number == 0 {
		f.head = append(f.head, firstKind, byte(c.m.Class))
		f.head = le.AppendUint16(f.head, uint16(len(c.m.Head)))
		f.head = le.AppendUint32(f.head, 0)
		f.head = le.AppendUint64(f.head, c.m.Tag)
		f.head = le.AppendUint64(f.head, uint64(c.body))
		f.head = append(f.head, c.m.Head...)
	} else {
		f.head = append(f.head, moreKind, byte(c.m.Class), 0, 0)
		f.head = le.AppendUint32(f.head, c.number)
	}
	c.number++
	f.payload = c.fill(f)
	if c.number == 1 {
		f.payload += len(c.m.Head)
	}
	if c.bare {
		return true
	}
	sum := crc32.Update(0, castagnoli(), f.head[summed:])
	for _, r := range f.refs[:f.n] {
		sum = crc32.Update(sum, castagnoli(), r)
	}
	le.PutUint32(f.head[4:], sum)
	return true
}

// fill takes what fits of the body: small pieces into the head's bytes, as long as no
// large one, which is referred to, has come before them.
func (c *cut) fill(f *frame) int {
	n := 0
	for c.part < len(c.m.Body) && n < frameBytes {
		b := c.m.Body[c.part][c.at:]
		b = b[:min(len(b), frameBytes-n)]
		switch {
		case len(b) >= small && f.n < maxRefs:
			f.refs[f.n] = b
			f.n++
		case len(b) < small && f.n == 0 && len(f.head)+len(b) <= inlineSize:
			f.head = append(f.head, b...)
		default:
			return n
		}
		n += len(b)
		c.at += len(b)
		c.skip()
	}
	return n
}

// skip goes on to the next part that has bytes, once this one has none left.
func (c *cut) skip() {
	for c.part < len(c.m.Body) && c.at == len(c.m.Body[c.part]) {
		c.part, c.at = c.part+1, 0
	}
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) } // made once there

// assembly makes messages of the frames of one stream.
type assembly struct {
	class  distrib.Class
	most   int64 // bytes of a body
	m      *distrib.Msg
	body   []byte // of m
	filled int
	number uint32
	err    error
	piece  pieces
	shelf  *shelf          // nil: messages are new memory
	bare   bool            // frames have no sums
	fixed  [firstSize]byte // the header that is read
}

// take puts a frame's bytes where they belong, the one copy on the way; the message that
// it completes is taken by done.
func (a *assembly) take(data mem.BufferSlice) error {
	a.piece.begin(data)
	return a.put()
}

// put is take for the frame that a.piece reads.
func (a *assembly) put() error {
	h := a.fixed[:moreSize]
	if !a.piece.read(h) {
		return &FrameError{"it ends within its header"}
	}
	le := binary.LittleEndian
	if le.Uint32(h) != magic {
		return &FrameError{"it does not begin as frames do"}
	}
	if h[8] == firstKind {
		h = a.fixed[:firstSize]
		if !a.piece.read(h[moreSize:]) {
			return &FrameError{"it ends within its header"}
		}
	}
	want := le.Uint32(h[4:])
	sum := a.sum(0, h[summed:])
	if distrib.Class(h[9]) != a.class {
		return &FrameError{fmt.Sprintf("it is of class %d on a stream of class %d", h[9], a.class)}
	}
	sum, err := a.rest(h, sum)
	if err == nil && sum != want {
		err = &FrameError{fmt.Sprintf("its sum is %08x and should be %08x", sum, want)}
	}
	return err
}

// rest reads what follows the header h.
func (a *assembly) rest(h []byte, sum uint32) (uint32, error) {
	le := binary.LittleEndian
	switch kind := h[8]; {
	case kind == firstKind && a.m != nil:
		return 0, &FrameError{"a message begins within another"}
	case kind == firstKind:
		head, body := int(le.Uint16(h[10:])), le.Uint64(h[24:])
		if head > distrib.MaxHead || body > uint64(a.most) {
			return 0, &FrameError{fmt.Sprintf("a head of %d and a body of %d bytes, at most %d "+
				"and %d may come", head, body, distrib.MaxHead, a.most)}
		}
		a.begin(head, int(body))
		a.m.Class, a.m.Tag = a.class, le.Uint64(h[16:])
		if !a.piece.read(a.m.Head) {
			return 0, &FrameError{"it ends within its head"}
		}
		sum = a.sum(sum, a.m.Head)
	case kind != moreKind || a.m == nil || le.Uint32(h[12:]) != a.number:
		return 0, &FrameError{"it is not the next one of a message"}
	}
	a.number++
	n := a.piece.left
	if n > len(a.body)-a.filled {
		return 0, &FrameError{"it is longer than its message"}
	}
	if n == 0 && a.filled < len(a.body) && h[8] == moreKind {
		return 0, &FrameError{"it is empty"}
	}
	to := a.body[a.filled : a.filled+n]
	if !a.piece.read(to) {
		return 0, &FrameError{"it ends within its body"}
	}
	a.filled += n
	return a.sum(sum, to), nil
}

// sum goes on with a frame's.
func (a *assembly) sum(sum uint32, b []byte) uint32 {
	if a.bare {
		return 0
	}
	return crc32.Update(sum, castagnoli(), b)
}

// begin makes room for a message.
func (a *assembly) begin(head, body int) {
	a.filled, a.number = 0, 0
	if a.shelf != nil {
		a.m, a.body = a.shelf.message(head, body)
		return
	}
	a.m, a.body = &distrib.Msg{Head: make([]byte, head)}, make([]byte, body)
	if body > 0 {
		a.m.Body = [][]byte{a.body}
	}
}

// done is the message, once it is complete.
func (a *assembly) done() *distrib.Msg {
	if a.m == nil || a.filled < len(a.body) {
		return nil
	}
	m := a.m
	a.m, a.body = nil, nil
	return m
}

// pieces reads a frame from front to back: a slice of buffers, or a connection.
type pieces struct {
	data mem.BufferSlice
	at   int // in the first
	left int
	from io.Reader // nil: data
	cut  bool      // the connection has ended within the frame
}

func (p *pieces) begin(data mem.BufferSlice) { *p = pieces{data: data, left: data.Len()} }

// read fills b, or reports that there is not enough.
func (p *pieces) read(b []byte) bool {
	if len(b) > p.left {
		return false
	}
	p.left -= len(b)
	if p.from != nil {
		_, err := io.ReadFull(p.from, b)
		p.cut = err != nil
		return err == nil
	}
	for len(b) > 0 {
		have := p.data[0].ReadOnlyData()[p.at:]
		n := copy(b, have)
		b, p.at = b[n:], p.at+n
		if n == len(have) {
			p.data, p.at = p.data[1:], 0
		}
	}
	return true
}

// codec hands frames to gRPC as they are, and bytes from it to an assembly.
type codec struct{}

func (codec) Name() string { return "gomem-frames" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("%T is no frame", v)
	}
	return f.buffers(), nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	a, ok := v.(*assembly)
	if !ok {
		return fmt.Errorf("%T takes no frames", v)
	}
	a.err = a.take(data)
	return nil
}
