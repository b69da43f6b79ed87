package collective

import (
	"context"
	"sync"

	"github.com/gomem/gomem/distrib"
)

// foreignChunk is the most bytes of a message on a group of another package.
const foreignChunk = 256 << 10

// foreign runs an operation on any group. A goroutine for each rank sends, since such a
// group's Send may wait for the Recv of it.
type foreign struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	g      distrib.Group
	tag    uint64
	out    []*queue[outgoing] // by rank; nil: nothing is sent there
	passes [2]sync.WaitGroup  // what is not sent yet
	ends   sync.WaitGroup
	in     []byte
	parts  [1][]byte
	work   []byte
}

// outgoing is bytes to send.
type outgoing struct {
	b    []byte
	pass int
}

// foreignTag keeps the messages of operations apart from those of others.
const foreignTag = 0xc0_11ec_71fe << 16

func newForeign(ctx context.Context, g distrib.Group, c call) *foreign {
	ctx, cancel := context.WithCancelCause(ctx)
	return &foreign{ctx: ctx, cancel: cancel, g: g, tag: foreignTag | c.sig>>56,
		out: make([]*queue[outgoing], g.Size())}
}

// serve sends to a rank in order. After an error it only counts.
func (f *foreign) serve(to int) {
	for o, ok := f.out[to].pop(); ok; o, ok = f.out[to].pop() {
		if f.ctx.Err() == nil {
			if err := f.send(to, o.b); err != nil {
				f.cancel(err)
			}
		}
		f.passes[o.pass].Done()
	}
}

func (f *foreign) send(to int, b []byte) error {
	for off, first := 0, true; first || off < len(b); first = false {
		n := min(len(b)-off, foreignChunk)
		if err := f.g.Send(f.ctx, to, f.tag, b[off:off+n]); err != nil {
			return err
		}
		off += n
	}
	return nil
}

func (f *foreign) rank() int  { return f.g.Rank() }
func (f *foreign) size() int  { return f.g.Size() }
func (f *foreign) chunk() int { return foreignChunk }

func (f *foreign) post(to int, b []byte, pass int) {
	if f.out[to] == nil {
		q := newQueue[outgoing]()
		f.out[to] = &q
		f.ends.Go(func() { f.serve(to) })
	}
	f.passes[pass].Add(1)
	f.out[to].push(outgoing{b, pass})
}

func (f *foreign) next(from, total, off int) ([][]byte, int, error) {
	n := min(total-off, foreignChunk)
	if len(f.in) < n {
		f.in = make([]byte, n)
	}
	f.parts[0] = f.in[:n]
	return f.parts[:], n, f.g.Recv(f.ctx, from, f.tag, f.parts[0])
}

func (f *foreign) flush(pass int) error {
	f.passes[pass].Wait()
	return context.Cause(f.ctx)
}

func (f *foreign) buffer(n int) []byte {
	if len(f.work) < n {
		f.work = make([]byte, n)
	}
	return f.work[:n]
}

func (f *foreign) end(err error) error {
	if err != nil {
		f.cancel(err)
	}
	for _, q := range f.out {
		if q != nil {
			q.end()
		}
	}
	f.ends.Wait()
	err = context.Cause(f.ctx)
	f.cancel(nil)
	return err
}
