package daemon

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/gomem/gomem/distrib"
)

// tag marks the messages that are the fabric's own.
const tag = 0xfab_21c0 << 32

// kind is what a message of the fabric is, the first byte of its head.
type kind uint8

const (
	aClaim   kind = iota + 1 // a node schedules: to all
	aReady                   // an update waits: to the scheduler
	aSlot                    // what becomes of it: from the scheduler
	aGroup                   // what is to be added up: from the scheduler, to an aggregator
	aPart                    // an update to be added up: of class Updates, as is
	aSum                     // what was added up, to its owner
	anAnswer                 // whether its parts were taken: to those who have pushed them
	aFold                    // how many updates an owner has folded in: to the scheduler
	aFate                    // whether an owner has folded in what came by itself: to its pusher
	aCopy                    // an update for a replica of its owner's rows: of class Updates
	aKept                    // the last replica has it: to its owner, its pusher, the scheduler
	anUrge                   // an owner waits for its replicas: to pushers of what they lack
	kinds
)

// String is what it is called.
func (k kind) String() string {
	names := [...]string{"", "claim", "announcement", "slot", "group", "part", "sum", "answer",
		"report",
		"fate", "copy", "acknowledgement", "demand"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// class is the stream that a kind goes in.
func (k kind) class() distrib.Class {
	if k == aPart || k == aSum || k == aCopy {
		return distrib.Updates
	}
	return distrib.Control
}

// id is an update's: who has pushed it, for whom, and its number among those.
type id struct {
	From, To distrib.NodeID
	Plan     uint16 // by which it is sent
	Epoch    int64
	Seq      uint64
}

// idLen is the bytes of an id.
const idLen = 4 + 4 + 2 + 8 + 8

// pieceLen is the bytes of a piece.
const pieceLen = idLen + 8 + 8

// idOf is the id of a push.
func idOf(from, to distrib.NodeID, p distrib.Push) id {
	return id{from, to, p.Plan, p.Epoch, p.Seq}
}

// String is for messages.
func (x id) String() string {
	return fmt.Sprintf("update %d of node %d for node %d", x.Seq, x.From, x.To)
}

// The messages, little endian, field after field. Times are nanoseconds from when a message is
// read: clocks of nodes are not compared.
type (
	claim struct{ Term uint64 }
	ready struct {
		ID             id
		Bytes          int64
		Norm           float64 // 0 where no bound is of norms
		Version, Delay distrib.Version
		Adds           bool
		Rates          uint16 // that follow
	}
	rate struct {
		To  distrib.NodeID
		Bps float64 // bits a second
	}
	slot struct {
		ID         id
		Verdict    verdict
		Via        distrib.NodeID
		Group      uint64
		Wait, Ends int64
	}
	group struct {
		Group   uint64
		To      distrib.NodeID
		Dest    distrib.NodeID  // where the sum goes: to To, or to a replica of its rows
		At      distrib.Version // messages of updates that its owner has folded in before
		Ends    int64
		Members uint16 // ids that follow, in the order in which they are added up
	}
	piece struct {
		ID    id
		Floor uint64  // what its node has pushed before it, to the same owner, is with its replicas
		Norm  float64 // as of ready
	}
	part struct {
		piece
		Group uint64
		Dest  distrib.NodeID
		Head  uint16 // bytes of the message's head, which follow
	}
	sum struct {
		Parts uint16 // that follow, each a piece, the length of a head, and the head
		Bytes uint32 // of them
	}
	answer struct {
		ID    id
		Taken bool
	}
	fold struct {
		ID      id
		Version distrib.Version
		Bytes   int64
		Norm    float64
	}
	fate struct {
		ID     id
		Folded bool
	}
	copied struct {
		piece
		Head uint16 // bytes of the message's head, which follow
	}
	kept struct{ ID id }
)

// verdict is what becomes of an update.
type verdict uint8

const (
	direct verdict = iota
	summed
	dropped
	held // until later: the scheduler has heard of it
	copyDirect
	copySummed
	verdicts
)

// summed is the same way, by an aggregator.
func (v verdict) summed() verdict {
	if v == copyDirect {
		return copySummed
	}
	return summed
}

// ScheduleError is a message of the fabric that cannot be used: it is damaged, or from somebody
// who has no say in it. Nothing follows from such a one.
type ScheduleError struct {
	From distrib.NodeID
	What string
}

// Error is one line.
func (e *ScheduleError) Error() string {
	return fmt.Sprintf("fabric: node %d sent what cannot be used: %s", e.From, e.What)
}

// message is one of the fabric's: fixed parts one after the other, and then bytes that have a
// checksum of their own.
func message(k kind, bare []byte, fixed ...any) *distrib.Msg {
	var b []byte
	for _, x := range fixed {
		b, _ = binary.Append(b, binary.LittleEndian, x) // which has a size
	}
	head := binary.LittleEndian.AppendUint32([]byte{byte(k)}, uint32(len(b)))
	head = binary.LittleEndian.AppendUint32(head, crc(head, b))
	m := &distrib.Msg{Class: k.class(), Tag: tag, Head: head, Body: [][]byte{b}}
	if len(bare) > 0 {
		m.Body = append(m.Body, bare)
	}
	return m
}

const headLen = 9

func crc(head, b []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(head[:headLen-4], table), table, b)
}

// opened is a message that is being read.
type opened struct {
	kind  kind
	fixed *bytes.Reader
	bare  []byte
	whole *distrib.Msg
}

// open checks a message of the fabric.
func open(m *distrib.Msg) (*opened, error) {
	if len(m.Head) != headLen || m.Head[0] == 0 || kind(m.Head[0]) >= kinds {
		return nil, fmt.Errorf("%d bytes are no head of the fabric's", len(m.Head))
	}
	k, body := kind(m.Head[0]), slices.Concat(m.Body...)
	n := binary.LittleEndian.Uint32(m.Head[1:])
	if m.Class != k.class() || int64(n) > int64(len(body)) {
		return nil, fmt.Errorf("a %v of %d bytes in a message of %d", k, n, len(body))
	}
	if crc(m.Head, body[:n]) != binary.LittleEndian.Uint32(m.Head[headLen-4:]) {
		return nil, fmt.Errorf("a %v is damaged", k)
	}
	return &opened{k, bytes.NewReader(body[:n]), body[n:], m}, nil
}

// again is the message once more, to be handed on.
func (o *opened) again() *distrib.Msg {
	return &distrib.Msg{Class: o.whole.Class, Tag: tag, Head: bytes.Clone(o.whole.Head),
		Body: [][]byte{bytes.Join(o.whole.Body, nil)}}
}

// next reads the next fixed part.
func (o *opened) next(x any) error {
	if err := binary.Read(o.fixed, binary.LittleEndian, x); err != nil {
		return fmt.Errorf("a %v ends early", o.kind)
	}
	return nil
}

// bytes reads so many of them.
func (o *opened) bytes(n int) ([]byte, error) {
	if n > o.fixed.Len() {
		return nil, fmt.Errorf("a %v ends early", o.kind)
	}
	b := make([]byte, n)
	_, err := o.fixed.Read(b)
	return b, err
}

// list reads so many fixed parts.
func list[T any](o *opened, n uint16) ([]T, error) {
	all := make([]T, n)
	return all, o.next(all)
}

// size is the bytes of a message.
func size(m *distrib.Msg) int64 {
	n := len(m.Head)
	for _, b := range m.Body {
		n += len(b)
	}
	return int64(n)
}
