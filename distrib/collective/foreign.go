package collective

import (
	"context"

	"github.com/gomem/gomem/distrib"
)

// foreignChunk is the most bytes of a message on a group of another package.
const foreignChunk = 256 << 10

// foreign runs an operation on any group. A goroutine sends, since such a group's Send may
// wait for the Recv of it.
type foreign struct {
	ctx    context.Context
	cancel context.CancelFunc
	g      distrib.Group
	tag    uint64
	out    chan outgoing
	done   [2]chan error // of flushes
	ended  chan struct{}
	in     []byte
	parts  [1][]byte
	work   []byte
}

// outgoing is bytes to send, or a flush if to is negative.
type outgoing struct {
	to   int
	b    []byte
	pass int
}

// foreignTag keeps the messages of operations apart from those of others.
const foreignTag = 0xc0_11ec_71fe << 16

func newForeign(ctx context.Context, g distrib.Group, c call) *foreign {
	ctx, cancel := context.WithCancel(ctx)
	f := &foreign{ctx: ctx, cancel: cancel, g: g, tag: foreignTag | c.sig>>56,
		out: make(chan outgoing, 64), ended: make(chan struct{})}
	for i := range f.done {
		f.done[i] = make(chan error, 1)
	}
	go f.run()
	return f
}

// run sends in order. After an error it only drains.
func (f *foreign) run() {
	defer close(f.ended)
	var err error
	for o := range f.out {
		switch {
		case o.to < 0:
			f.done[o.pass] <- err
		case err == nil:
			err = f.send(o)
			if err != nil {
				f.cancel()
			}
		}
	}
}

func (f *foreign) send(o outgoing) error {
	for off, first := 0, true; first || off < len(o.b); first = false {
		n := min(len(o.b)-off, foreignChunk)
		if err := f.g.Send(f.ctx, o.to, f.tag, o.b[off:off+n]); err != nil {
			return err
		}
		off += n
	}
	return nil
}

func (f *foreign) rank() int  { return f.g.Rank() }
func (f *foreign) size() int  { return f.g.Size() }
func (f *foreign) chunk() int { return foreignChunk }

func (f *foreign) post(to int, b []byte, pass int) { f.out <- outgoing{to, b, pass} }

func (f *foreign) next(from, total, off int) ([][]byte, int, error) {
	n := min(total-off, foreignChunk)
	if len(f.in) < n {
		f.in = make([]byte, n)
	}
	f.parts[0] = f.in[:n]
	return f.parts[:], n, f.g.Recv(f.ctx, from, f.tag, f.parts[0])
}

func (f *foreign) flush(pass int) error {
	f.out <- outgoing{to: -1, pass: pass}
	return <-f.done[pass]
}

func (f *foreign) buffer(n int) []byte {
	if len(f.work) < n {
		f.work = make([]byte, n)
	}
	return f.work[:n]
}

func (f *foreign) end(err error) error {
	if err != nil {
		f.cancel()
	}
	sent := f.flush(0)
	close(f.out)
	<-f.ended
	f.cancel()
	if err != nil {
		return err
	}
	return sent
}
