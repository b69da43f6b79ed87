package collective

import (
	"context"
	"fmt"

	"github.com/gomem/gomem/distrib"
)

// link is how the algorithms move bytes while an operation runs. Bytes that are posted
// are not copied: they must stay as they are until flush.
type link interface {
	rank() int
	size() int
	chunk() int
	// post starts to send b; all of it is one transfer. pass is 0 or 1, for flush.
	post(to int, b []byte, pass int)
	// next waits for the next piece of a transfer of total bytes, of which the caller has
	// had off. The bytes are the caller's until the next call of next.
	next(from, total, off int) (msg [][]byte, n int, err error)
	// flush waits until what was posted in a pass may be changed.
	flush(pass int) error
	// buffer is n bytes to work with.
	buffer(n int) []byte
	// end ends the operation, which has failed if err is not nil.
	end(err error) error
}

// call names an operation.
type call struct {
	sig   uint64
	label string // "gradient enc/0/w f32[512,512] by ring"; or empty
	named bool   // the label travels along, so that others can name it
	check uint64 // hash of the label
}

func (c *call) what() string {
	if c.label != "" {
		return c.label
	}
	return describe(c.sig)
}

// begin starts an operation on a group.
func begin(ctx context.Context, g distrib.Group, c call) (link, error) {
	own, ok := g.(*Group)
	if !ok {
		return newForeign(ctx, g, c), nil
	}
	own.mu.Lock()
	err := own.start(ctx, c)
	own.mu.Unlock()
	if err != nil {
		own.tell()
		return nil, err
	}
	return &own.op, nil
}

// start is begin for a group that is locked.
func (g *Group) start(ctx context.Context, c call) error {
	switch {
	case g.err != nil:
		return &PoisonedError{g.err}
	case g.running != "":
		return &BusyError{g.running}
	case ctx.Err() != nil:
		g.fail(context.Cause(ctx))
		return g.err
	}
	g.seq++
	g.running = c.what()
	h := head{kind: opData, sig: c.sig, check: c.check}
	if c.named {
		h.label = c.label
	}
	g.op = op{ctx: ctx, g: g, h: h, call: c}
	return nil
}

// op is an operation on a group of this package.
type op struct {
	ctx     context.Context
	g       *Group
	h       head
	call    call
	batches [2]batch
	want    want
	taken   *distrib.Msg // that the caller has
	from    int
}

func (o *op) rank() int  { return o.g.rank }
func (o *op) size() int  { return len(o.g.members) }
func (o *op) chunk() int { return o.g.chunk }

func (o *op) buffer(n int) []byte {
	if len(o.g.scratch) < n {
		o.g.scratch = make([]byte, n)
		o.g.mu.Lock()
		o.g.stats.Scratch = int64(n)
		o.g.mu.Unlock()
	}
	return o.g.scratch[:n]
}

func (o *op) post(to int, b []byte, pass int) {
	h := o.h
	h.total = uint64(len(b))
	o.g.mu.Lock()
	o.g.post(to, piece{b, o.g.seq, h, &o.batches[pass]})
	o.g.mu.Unlock()
	o.g.pump()
}

// drop gives up the message that the caller has had. The group is locked.
func (o *op) drop() {
	if m := o.taken; m != nil {
		o.taken = nil
		o.g.take(o.from, size(m))
		release(m)
	}
}

func (o *op) next(from, total, off int) ([][]byte, int, error) {
	g := o.g
	g.mu.Lock()
	defer g.mu.Unlock()
	o.drop()
	o.want = want{from: from, seq: g.seq, what: o.g.running}
	if err := g.wait(o.ctx, &o.want); err != nil {
		return nil, 0, err
	}
	p := &g.peers[from]
	a := p.ops.at(0)
	n := size(a.msg)
	if err := o.mismatch(p, a, total); err != nil {
		return nil, 0, err
	}
	if n > total-off || n == 0 && total > 0 {
		return nil, 0, &distrib.NonsenseError{Node: p.node, Err: fmt.Errorf("%w: %d bytes, of %d "+
			"at most", errHead, n, total-off)}
	}
	o.taken, o.from = p.ops.remove(0).msg, from
	return o.taken.Body, n, nil
}

// mismatch reports a message of another operation than this one.
func (o *op) mismatch(p *peer, a *arrival, total int) error {
	h := &a.head
	if a.msg.Tag == o.g.seq && h.sig == o.h.sig && h.check == o.h.check &&
		h.total == uint64(total) {
		return nil
	}
	e := &MismatchError{Node: p.node, Seq: o.g.seq, Mine: o.call.what(), Theirs: h.label}
	if e.Theirs == "" {
		e.Theirs = describe(h.sig)
	}
	if a.msg.Tag != o.g.seq {
		e.Theirs += ordinal(a.msg.Tag)
	} else if h.sig == o.h.sig && h.total != uint64(total) {
		e.Mine, e.Theirs = e.Mine+part(uint64(total)), e.Theirs+part(h.total)
	}
	return e
}

func (o *op) flush(pass int) error {
	b := &o.batches[pass]
	o.g.mu.Lock()
	defer o.g.mu.Unlock()
	o.want = want{batch: b, seq: o.g.seq, what: o.g.running}
	return o.g.wait(o.ctx, &o.want)
}

// end waits until nobody uses the caller's bytes any more, and poisons the group if the
// operation has failed: messages of it may still come.
func (o *op) end(err error) error {
	g := o.g
	for pass := 0; pass < len(o.batches) && err == nil; pass++ {
		err = o.flush(pass)
	}
	g.mu.Lock()
	o.drop()
	if err != nil {
		g.fail(err)
		err = g.err
		g.retract(&o.batches[0], err)
		g.retract(&o.batches[1], err)
	}
	g.running = ""
	g.mu.Unlock()
	if err != nil {
		g.tell()
	}
	return err
}

func ordinal(seq uint64) string { return fmt.Sprintf(" (its operation %d)", seq) }
func part(total uint64) string  { return fmt.Sprintf(" (%d bytes from one to the other)", total) }
