package distrib

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// kind is what a message of the engine is.
type kind uint8

const (
	kindHello   kind = iota + 1 // what parameters a node has
	kindBye                     // a node's workers have ended
	kindUpdates                 // updates for an owner or a replica, and a clock
	kindGet                     // rows that a reader lacks
	kindWho                     // a reader has waited for long: who is behind?
	kindBehind                  // who is, as its marks
	kindRows                    // rows as they are, of their owner
	kindSums                    // what an owner has folded in, for everybody
	kindGiven                   // versions of rows that the sender does not compute from any more
	kindAck                     // up to where updates have been folded in
	kindDrained                 // no update of this epoch comes after it, by one more way
	kindEnded                   // nor rows
	kindMoved                   // rows for a new owner, or a newcomer
	kinds
)

// class is the stream of a message: acknowledgements go with rows, since both say what
// the rows behind them hold.
func (k kind) class() Class {
	switch k {
	case kindUpdates, kindGiven, kindDrained:
		return Updates
	case kindRows, kindSums, kindAck, kindEnded:
		return ValuesOf
	}
	return Control
}

// Flags of a message.
const (
	endsClock    byte = 1 << iota // it is the last one of a clock
	wantsAck                      // the sender is short of memory
	asksStanding                  // rows are wanted now and whenever they change
	endsRows                      // it is the last one that moves rows to this node
)

// header is the head of every message: little endian, in the order of its fields.
type header struct {
	kind  kind
	flags byte
	lane  uint16 // which plan
	root  NodeID // who sent it first
	epoch int64
	clock Clock  // that ended, or that is asked for
	seq   uint64 // number among those of its class to its receiver, from 1
	ack   uint64 // the last of the receiver's updates that is folded in
	paths uint32 // of the replicas that are behind the receiver
	marks uint32 // bytes of clocks before the frames
	// version is how many messages of updates the owner of rows had folded in: when it read
	// those that it sends, or those that updates for it were computed from.
	version Version
}

// headLen is how many bytes a header takes, with a CRC-32C of it and of all that follows
// and has none of its own.
const headLen = 2 + 2 + 4 + 4*8 + 2*4 + 8 + 4

// bare is the part of a body that has no checksum of its own, as frames and shards do.
func (h header) bare(body []byte) []byte {
	if h.kind == kindGet || h.kind == kindGiven {
		return body
	}
	return body[:min(int64(h.marks), int64(len(body)))]
}

func sumOf(head, bare []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(head, table), table, bare)
}

// seal appends a header that fits a body.
func (h header) seal(body []byte) []byte {
	b := h.append(nil)
	return binary.LittleEndian.AppendUint32(b, sumOf(b, h.bare(body)))
}

func (h header) append(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, byte(h.kind), h.flags)
	b = le.AppendUint16(b, h.lane)
	b = le.AppendUint32(b, uint32(h.root))
	for _, v := range []uint64{uint64(h.epoch), uint64(h.clock), h.seq, h.ack} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, h.paths)
	b = le.AppendUint32(b, h.marks)
	return le.AppendUint64(b, uint64(h.version))
}

func readHeader(b, body []byte) (header, error) {
	if len(b) != headLen || b[0] == 0 || kind(b[0]) >= kinds {
		return header{}, badFrame("%d bytes are no head of a message", len(b))
	}
	le := binary.LittleEndian
	h := header{
		kind: kind(b[0]), flags: b[1], lane: le.Uint16(b[2:]), root: NodeID(le.Uint32(b[4:])),
		epoch: int64(le.Uint64(b[8:])), clock: Clock(le.Uint64(b[16:])),
		seq: le.Uint64(b[24:]), ack: le.Uint64(b[32:]),
		paths: le.Uint32(b[40:]), marks: le.Uint32(b[44:]), version: Version(le.Uint64(b[48:])),
	}
	if sumOf(b[:headLen-4], h.bare(body)) != le.Uint32(b[headLen-4:]) {
		return header{}, badFrame("the head of a message is damaged")
	}
	return h, nil
}

// mark is how far the updates of a node are in what has been sent.
type mark struct {
	of NodeID
	at Clock
}

const markLen = 12

func appendMarks(b []byte, marks []mark) []byte {
	for _, m := range marks {
		b = binary.LittleEndian.AppendUint32(b, uint32(m.of))
		b = binary.LittleEndian.AppendUint64(b, uint64(m.at))
	}
	return b
}

// cutMarks reads n bytes of marks and returns what is behind them.
func cutMarks(b []byte, n uint32) (marks []mark, rest []byte, err error) {
	if int64(n) > int64(len(b)) || n%markLen != 0 {
		return nil, nil, badFrame("%d bytes of clocks in a message of %d", n, len(b))
	}
	le := binary.LittleEndian
	for ; n > 0; n -= markLen {
		marks = append(marks, mark{NodeID(le.Uint32(b)), Clock(le.Uint64(b[4:]))})
		b = b[markLen:]
	}
	return marks, b, nil
}

// appendRefs and readRefs carry what rows are asked for.
func appendRefs(b []byte, refs []Ref) []byte {
	for _, r := range refs {
		b = binary.AppendUvarint(b, uint64(r.Param))
		b = binary.AppendUvarint(b, uint64(r.Row))
		b = binary.AppendUvarint(b, uint64(r.N))
	}
	return b
}

func readRefs(b []byte, shapes Shapes) ([]Ref, error) {
	var refs []Ref
	r := reader{b: b}
	for len(r.b) > 0 {
		ref, ok := r.ref(shapes)
		if !ok {
			return nil, badFrame("rows %+v are asked for", ref)
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// ref reads rows, and reports whether there are such.
func (r *reader) ref(shapes Shapes) (Ref, bool) {
	p, row, n := r.uvarint(), r.uvarint(), r.uvarint()
	rows, _, ok := shapes(ParamID(min(p, 1<<31-1)))
	ok = ok && !r.short && n > 0 && row <= uint64(rows) && n <= uint64(rows)-row
	return Ref{ParamID(p), int32(row), int32(n)}, ok
}

// appendGiven and readGiven carry versions of rows.
func appendGiven(b []byte, given []Frame) []byte {
	for _, f := range given {
		b = appendRefs(b, []Ref{f.Ref})
		b = binary.AppendUvarint(b, uint64(f.Tag))
	}
	return b
}

func readGiven(b []byte, shapes Shapes) ([]Frame, error) {
	var out []Frame
	r := reader{b: b}
	for len(r.b) > 0 {
		ref, ok := r.ref(shapes)
		f := Frame{Ref: ref, Tag: Version(r.uvarint())}
		if !ok || r.short || f.Tag < 0 {
			return nil, badFrame("versions of rows %+v are given back", ref)
		}
		out = append(out, f)
	}
	return out, nil
}

// joined is a message's body in one piece.
func joined(m *Msg) []byte {
	if len(m.Body) == 1 {
		return m.Body[0]
	}
	var b []byte
	for _, p := range m.Body {
		b = append(b, p...)
	}
	return b
}

// encode appends the frames of some updates, whose memory does not change any more. Runs
// of ascending rows of a parameter share a frame.
func encode(b []byte, frames []Frame) ([]byte, error) {
	for len(frames) > 0 {
		n := 1
		for n < len(frames) && together(frames[n-1], frames[n]) {
			n++
		}
		var err error
		if n == 1 {
			b, err = AppendFrame(b, frames[0])
		} else {
			b, err = AppendBatch(b, frames[:n])
		}
		if err != nil {
			return b, fmt.Errorf("parameter %d: %w", frames[0].Ref.Param, err)
		}
		frames = frames[n:]
	}
	return b, nil
}

func together(a, b Frame) bool {
	return a.Ref.Param == b.Ref.Param && dtypeOf(a.U) == dtypeOf(b.U) &&
		b.Ref.Row >= a.Ref.Row+a.Ref.N
}
