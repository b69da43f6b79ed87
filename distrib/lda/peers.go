package lda

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/gomem/gomem/distrib"
)

// What workers send each other, by tag. What has a number has one of so many tags by it, so that a
// message does not wait until those before it have come.
const (
	tagSlice = 0x1da00 + atOnce*iota
	tagSummary
	tagShare
	tagTopics
	atOnce = 4
)

// A message has its length beside it, by a tag of its own.
const lengths = 1 << 32

// mail is what a worker sends while it goes on: to each of the others, of each tag, one thing after
// the other. They do not wait for each other.
type mail struct {
	group  distrib.Group
	ctx    context.Context
	cancel context.CancelCauseFunc
	ways   map[way]chan []byte
	going  sync.WaitGroup
}

// way is to whom messages of which tag go.
type way struct {
	to  int
	tag uint64
}

// mailing begins to send.
func (m *Model) mailing(ctx context.Context) *mail {
	x := &mail{group: m.group, ways: map[way]chan []byte{}}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	return x
}

// workers is how many there are, 0 if there are no others.
func (x *mail) workers() int {
	if x.group == nil {
		return 0
	}
	return x.group.Size()
}

// post has bytes be sent, which nobody changes any more. It waits while something is still to be
// sent the same way.
func (x *mail) post(to int, tag uint64, b []byte) error {
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(b)))
	if err := x.put(way{to, tag | lengths}, length); err != nil {
		return err
	}
	return x.put(way{to, tag}, b)
}

// put has bytes go their way.
func (x *mail) put(w way, b []byte) error {
	queue := x.ways[w]
	if queue == nil {
		queue = make(chan []byte)
		x.ways[w] = queue
		x.going.Go(func() { x.send(w, queue) })
	}
	select {
	case queue <- b:
		return nil
	case <-x.ctx.Done():
		return context.Cause(x.ctx)
	}
}

// send sends what goes one way, until something fails.
func (x *mail) send(w way, queue <-chan []byte) {
	for b := range queue {
		if x.ctx.Err() != nil {
			return
		}
		if err := x.group.Send(x.ctx, w.to, w.tag, b); err != nil {
			x.cancel(err)
		}
	}
}

// toAll posts the same bytes to all others.
func (x *mail) toAll(tag uint64, b []byte) error {
	for to := range x.workers() {
		if to == x.group.Rank() {
			continue
		}
		if err := x.post(to, tag, b); err != nil {
			return err
		}
	}
	return nil
}

// take waits for the next bytes of a worker.
func (x *mail) take(from int, tag uint64) ([]byte, error) {
	length := make([]byte, 8)
	if err := x.group.Recv(x.ctx, from, tag|lengths, length); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length)
	if n > mostBytes {
		return nil, fmt.Errorf("lda: a message of %d bytes", n)
	}
	b := make([]byte, n)
	return b, x.group.Recv(x.ctx, from, tag, b)
}

// fromAll takes the next bytes of each of the others.
func (x *mail) fromAll(tag uint64, read func(rank int, b []byte) error) error {
	for from := range x.workers() {
		if from == x.group.Rank() {
			continue
		}
		b, err := x.take(from, tag)
		if err == nil {
			err = read(from, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// end waits until all is sent, unless something has failed: what did so first.
func (x *mail) end(err error) error {
	if err != nil {
		x.cancel(err)
	}
	for _, queue := range x.ways {
		close(queue)
	}
	x.going.Wait()
	err = context.Cause(x.ctx)
	x.cancel(nil)
	return err
}

// mostBytes is the most bytes of a message.
const mostBytes = 1 << 34

// alone reports whether there are no other workers.
func (m *Model) alone() bool { return m.group == nil || m.group.Size() == 1 }

// around has each worker send the same bytes to all others, and take theirs.
func (m *Model) around(ctx context.Context, tag uint64, out []byte,
	read func(rank int, b []byte) error) error {
	x := m.mailing(ctx)
	err := x.toAll(tag, out)
	if err == nil {
		err = x.fromAll(tag, read)
	}
	return x.end(err)
}

// share has all workers know the numbers of all parts.
func (m *Model) share(ctx context.Context, parts []float64) error {
	if m.alone() {
		return nil
	}
	var out []byte
	for _, x := range parts[m.own.from:m.own.to] {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
	}
	return m.around(ctx, tagShare, out, func(rank int, b []byte) error {
		of := dealt(m.Parts, rank, m.group.Size())
		if len(b) != 8*(of.to-of.from) {
			return fmt.Errorf("lda: worker %d sends %d bytes of %d parts", rank, len(b),
				of.to-of.from)
		}
		for i := range of.to - of.from {
			parts[of.from+i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
		return nil
	})
}

// borrow is a slice, of whoever has it.
func (m *Model) borrow(ctx context.Context, i int) (*slice, error) {
	if m.alone() {
		return m.slices[i], nil
	}
	var out []byte
	if m.slices[i] != nil {
		out = m.slices[i].append(nil)
	}
	s := m.slices[i]
	err := m.around(ctx, tagSlice, out, func(_ int, b []byte) (err error) {
		if len(b) > 0 {
			s, err = readSlice(b, m.Topics)
		}
		return err
	})
	return s, err
}
