package collective

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/gomem/gomem/distrib"
)

// kind is what a message is for.
type kind uint8

const (
	opData   kind = iota + 1 // of an operation; Tag is its number
	userData                 // of Send; Tag is the caller's
	credit                   // only says what has been taken
	abort                    // the sender has given up; the body says why
	bye                      // the sender has closed the group in peace
	probe                    // asks how far one is
	progress                 // answers; Tag is the number of the last operation begun
	kinds
)

// headSize is how long the fixed part of a head is. A label may follow.
const headSize = 48

// maxLabel is how long a label may be: what is longer is cut.
const maxLabel = 1 << 10

// head is what travels with every message.
type head struct {
	kind  kind
	group uint64
	took  uint64 // bytes that the sender of this has taken of what it was sent
	sig   uint64 // what operation this is
	check uint64 // hash of its label, 0 without
	total uint64 // bytes of the transfer that this message is part of
	label string
}

// native is 1 in a node's own byte order, so that nodes of two orders refuse each other.
var native = binary.NativeEndian.AppendUint16(nil, 1)

func (h *head) append(b []byte) []byte {
	b = append(b, byte(h.kind), 0, native[0], native[1], 0, 0, 0, 0)
	for _, v := range [...]uint64{h.group, h.took, h.sig, h.check, h.total} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return append(b, h.label[:min(len(h.label), maxLabel)]...)
}

var errHead = errors.New("a message that is none of a collective")

func parseHead(b []byte) (h head, err error) {
	if len(b) < headSize || len(b) > headSize+maxLabel || b[0] == 0 || b[0] >= byte(kinds) {
		return h, errHead
	}
	if b[2] != native[0] || b[3] != native[1] {
		return h, errors.New("its byte order is another one")
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	h = head{kind(b[0]), u(1), u(2), u(3), u(4), u(5), ""}
	if len(b) > headSize {
		h.label = string(b[headSize:])
	}
	return h, nil
}

// size is how many bytes a message brings.
func size(m *distrib.Msg) (n int) {
	for _, b := range m.Body {
		n += len(b)
	}
	return n
}

// release gives a message that has come back to the transport, if that uses its memory again.
func release(m *distrib.Msg) {
	if m.Done != nil {
		m.Done(nil)
	}
}

// cost is what a message takes of the window: its bytes, and something if it has none,
// since it waits all the same.
func cost(n int) uint64 { return uint64(max(n, 64)) }

// frame is a message that is being sent. Frames are used again, so that a chunk costs no
// allocation.
type frame struct {
	msg   distrib.Msg
	head  [headSize]byte
	body  [1][]byte
	group *Group
	batch *batch // nil for messages that bring no data
	to    int
	done  func(error)
}

// frame takes a frame from those that are free. The group is locked.
func (g *Group) frame(to int) *frame {
	if n := len(g.frames); n > 0 {
		f := g.frames[n-1]
		g.frames = g.frames[:n-1]
		f.to = to
		return f
	}
	f := &frame{group: g, to: to}
	f.done = f.finish
	return f
}

// fill makes the message of a frame.
func (f *frame) fill(h *head, tag uint64, body []byte) {
	f.body[0] = body
	f.msg = distrib.Msg{Class: distrib.Collective, Tag: tag, Body: f.body[:], Done: f.done}
	f.msg.Head = h.append(f.head[:0])
}

// finish is called by the transport when the bytes may be changed.
func (f *frame) finish(err error) {
	g := f.group
	g.mu.Lock()
	defer g.mu.Unlock()
	b := f.batch
	if b != nil {
		b.flying--
		g.peers[f.to].flying--
	}
	if err != nil && b != nil && !g.closed && !b.lenient {
		g.fail(g.lost(err, f.to))
	}
	f.batch, f.body[0], f.msg.Head = nil, nil, nil
	g.frames = append(g.frames, f)
	g.wake()
}

// The operations.
const (
	allReduce uint64 = iota + 1
	pushPull
	reduceScatter
	allGather
	broadcast
	allToAll
	barrier
	permute
	gatherSome
	scatterSome
	swapSome
)

var opNames = [...]string{"", "all-reduce", "push-pull", "reduce-scatter", "all-gather",
	"broadcast", "all-to-all", "barrier", "permute", "gather-some", "scatter-some",
	"swap-some"}

// signature packs what must be the same on all ranks of an operation: what it is, the
// element type, an argument and how many bytes.
func signature(op, elem, arg uint64, bytes int) uint64 {
	return op<<60 | elem<<56 | arg&0xffff<<40 | uint64(bytes)&(1<<40-1)
}

// describe reads a signature.
func describe(sig uint64) string {
	name := "something else"
	if op := sig >> 60; op > 0 && op < uint64(len(opNames)) {
		name = opNames[op]
	}
	switch bytes := sig & (1<<40 - 1); {
	case sig>>60 == barrier || sig>>60 == allToAll:
		return name
	case bytes == 1:
		return name + " of 1 byte"
	default:
		return fmt.Sprintf("%s of %d bytes", name, bytes)
	}
}
