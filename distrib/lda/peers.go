package lda

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
)

// What workers send each other, by tag.
const (
	tagSize = 0x1da0 + iota
	tagSlice
	tagSummary
	tagShare
	tagTopics
)

// postbox is what is sent and received, memory that is used again.
type postbox struct{ out, in []byte }

// send sends bytes to a worker while those of another one are received, unless from is none.
func (m *Model) swap(ctx context.Context, to, from int, tag uint64) error {
	size := make([]byte, 8)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sent := make(chan error, 1)
	go func() {
		err := m.group.Send(ctx, to, tagSize, binary.LittleEndian.AppendUint64(nil,
			uint64(len(m.postbox.out))))
		if err == nil {
			err = m.group.Send(ctx, to, tag, m.postbox.out)
		}
		if err != nil {
			cancel(err)
		}
		sent <- err
	}()
	err := m.group.Recv(ctx, from, tagSize, size)
	if err == nil {
		m.postbox.in, err = sized(m.postbox.in, binary.LittleEndian.Uint64(size))
	}
	if err == nil {
		err = m.group.Recv(ctx, from, tag, m.postbox.in)
	}
	if err != nil {
		cancel(err)
	}
	if sending := <-sent; sending != nil {
		return sending
	}
	return err
}

// mostBytes is the most bytes of a message.
const mostBytes = 1 << 34

// sized is memory of a number of bytes that another worker says.
func sized(b []byte, n uint64) ([]byte, error) {
	if n > mostBytes {
		return nil, fmt.Errorf("lda: a message of %d bytes", n)
	}
	if uint64(cap(b)) < n {
		b = make([]byte, n)
	}
	return b[:n], nil
}

// alone reports whether there are no other workers.
func (m *Model) alone() bool { return m.group == nil || m.group.Size() == 1 }

// rotate hands on the slice that the first part here has visited in a step, and takes the one that
// the last one visits next. All others stay, and are visited by the part before.
func (m *Model) rotate(ctx context.Context, step int) error {
	if m.alone() {
		return nil
	}
	n, rank := m.group.Size(), m.group.Rank()
	leaves, comes := m.visited(m.own.from, step), m.visited(m.own.to, step)
	m.postbox.out = m.slices[leaves].append(m.postbox.out[:0])
	m.slices[leaves] = nil
	if err := m.swap(ctx, (rank+n-1)%n, (rank+1)%n, tagSlice); err != nil {
		return err
	}
	s, err := readSlice(m.postbox.in, m.Topics)
	m.slices[comes] = s
	return err
}

// around has each worker send the same bytes to all others, and take theirs.
func (m *Model) around(ctx context.Context, tag uint64, out []byte,
	take func(rank int, b []byte) error) error {
	n, rank := m.group.Size(), m.group.Rank()
	for by := 1; by < n; by++ {
		m.postbox.out = append(m.postbox.out[:0], out...)
		from := (rank + n - by) % n
		if err := m.swap(ctx, (rank+by)%n, from, tag); err != nil {
			return err
		}
		if err := take(from, m.postbox.in); err != nil {
			return err
		}
	}
	return nil
}

// addUp adds what other workers have added to the topic summary since it was as before.
func (m *Model) addUp(ctx context.Context, before []int32) error {
	if m.alone() {
		return nil
	}
	var out []byte
	for k, n := range m.all {
		out = binary.AppendVarint(out, int64(n-before[k]))
	}
	return m.around(ctx, tagSummary, out, func(rank int, b []byte) error {
		for k := range m.all {
			n, size := binary.Varint(b)
			if size <= 0 {
				return fmt.Errorf("lda: worker %d sends a summary of %d topics", rank, k)
			}
			m.all[k], b = m.all[k]+int32(n), b[size:]
		}
		return nil
	})
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

// borrow is a slice, of whoever has it. Between sweeps, part i has slice i.
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
