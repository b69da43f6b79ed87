package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"google.golang.org/grpc/mem"
	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib"
)

// frames is a message as it is sent.
func frames(m *distrib.Msg) [][]byte {
	var out [][]byte
	var c cut
	c.begin(m)
	for f := newFrame(); c.next(f); f = newFrame() {
		out = append(out, bytes.Join(append([][]byte{f.head}, f.refs[:f.n]...), nil))
	}
	return out
}

// scattered is bytes in buffers of some sizes, as they come from a connection.
func scattered(b []byte, size int) mem.BufferSlice {
	var s mem.BufferSlice
	for ; len(b) > size; b = b[size:] {
		s = append(s, mem.SliceBuffer(b[:size]))
	}
	return append(s, mem.SliceBuffer(b))
}

func drawMessage(t *rapid.T) *distrib.Msg {
	m := &distrib.Msg{Class: distrib.Class(rapid.IntRange(0, distrib.Classes-1).Draw(t, "class")),
		Tag: rapid.Uint64().Draw(t, "tag"), Head: make([]byte, rapid.SampledFrom(
			[]int{0, 1, 100, distrib.MaxHead}).Draw(t, "head"))}
	for i := range rapid.IntRange(0, 40).Draw(t, "parts") {
		n := rapid.SampledFrom([]int{0, 1, 5, small - 1, small, 5000, 70_000,
			frameBytes}).Draw(t, "n")
		m.Body = append(m.Body, bytes.Repeat([]byte{byte(i + 1)}, n))
		if n == frameBytes {
			break
		}
	}
	return m
}

// TestFrames: a message's frames make the same message, however they come in pieces, and
// no frame is longer than it may be.
func TestFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t)
		a := assembly{class: m.Class, most: 1 << 30}
		var got *distrib.Msg
		for _, f := range frames(m) {
			if got != nil {
				t.Fatal("a frame after the last")
			}
			if len(f) > maxFrame {
				t.Fatalf("a frame of %d bytes", len(f))
			}
			piece := rapid.IntRange(999, 20_000).Draw(t, "piece")
			if err := a.take(scattered(f, piece)); err != nil {
				t.Fatal(err)
			}
			got = a.done()
		}
		if got == nil || got.Tag != m.Tag || got.Class != m.Class ||
			!same(got, m) {
			t.Fatal("another message")
		}
	})
}

// TestCorruptFrames: a byte that is changed, cut off or added is noticed.
func TestCorruptFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &distrib.Msg{Class: distrib.Updates, Tag: 7, Head: []byte("head"),
			Body: [][]byte{make([]byte, rapid.IntRange(0, 100).Draw(t, "body"))}}
		f := frames(m)[0]
		at := rapid.IntRange(0, len(f)-1).Draw(t, "at")
		bad := bytes.Clone(f)
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			bad[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		case 1:
			bad = bad[:at]
		case 2:
			bad = append(bad, bad[at])
		}
		a := assembly{class: distrib.Updates, most: 1 << 20}
		err := a.take(scattered(bad, 10))
		var frame *FrameError
		if !errors.As(err, &frame) {
			t.Fatalf("%v", err)
		}
		a = assembly{class: distrib.Updates, most: 1 << 20, shelf: &shelf{}}
		n := binary.LittleEndian.AppendUint32(nil, uint32(len(bad)))
		err = a.read(bytes.NewReader(append(n, bad...)))
		if len(bad) > 0 && !errors.As(err, &frame) {
			t.Fatalf("from a connection: %v", err)
		}
	})
}

// TestFramesOutOfPlace: frames that are whole and do not belong here are refused.
func TestFramesOutOfPlace(t *testing.T) {
	big := frames(&distrib.Msg{Class: distrib.Updates, Body: [][]byte{make([]byte, 3*frameBytes)}})
	one := frames(&distrib.Msg{Class: distrib.Updates})
	for name, sequence := range map[string][][]byte{
		"the middle of nothing": {big[1]},
		"twice the same":        {big[0], big[1], big[1]},
		"one is missing":        {big[0], big[2]},
		"another begins":        {big[0], one[0]},
		"another class":         frames(&distrib.Msg{Class: distrib.Control}),
		"too much":              frames(&distrib.Msg{Body: [][]byte{make([]byte, 9*frameBytes)}}),
	} {
		a := assembly{class: distrib.Updates, most: 8 * frameBytes}
		var err error
		for _, f := range sequence {
			if err = a.take(scattered(f, 16<<10)); err != nil {
				break
			}
			_ = a.done()
		}
		var frame *FrameError
		if !errors.As(err, &frame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzFrame: no bytes make it fail in another way than by an error, or take more memory
// than a message may have.
func FuzzFrame(f *testing.F) {
	for _, b := range frames(&distrib.Msg{Class: distrib.Updates, Tag: 1, Head: []byte("h"),
		Body: [][]byte{[]byte("body")}}) {
		f.Add(b, 3)
	}
	f.Add([]byte{}, 1)
	f.Add([]byte("gmt1"), 1)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		a := assembly{class: distrib.Updates, most: 1 << 16}
		if err := a.take(scattered(b, size&0xffff+1)); err == nil {
			if m := a.done(); m == nil && a.m == nil {
				t.Error("neither a message nor a part of one")
			}
		}
		if len(a.body) > 1<<16 {
			t.Errorf("%d bytes", len(a.body))
		}
	})
}

func same(a, b *distrib.Msg) bool {
	return bytes.Equal(a.Head, b.Head) &&
		bytes.Equal(bytes.Join(a.Body, nil), bytes.Join(b.Body, nil))
}
