package workers

import (
	"context"
	"fmt"
	"sync"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/graph"
)

// network carries the exchanges of a session's steps: a [gomem.Network].
type network struct {
	member *Member
	via    collective.Via // of exchanges that name none

	mu     sync.Mutex
	flying map[string]flight
	rows   map[string][]int32 // by exchange: the ranks that have to do with its rows, or counts
}

func (m *Member) network() network {
	return network{member: m, via: m.scheme.Via, flying: map[string]flight{},
		rows: map[string][]int32{}}
}

// Network carries the exchanges of steps; nil if the scheme has none.
func (m *Member) Network() gomem.Network {
	switch {
	case m.scheme.Plan != nil:
		return nil
	case m.Gathers():
		return &gathering{m.network()}
	case m.options.Peers != nil:
		return &peerNetwork{m.network(), m.options.Peers}
	}
	n := m.network()
	return &n
}

// flight is an exchange that was sent and not awaited.
type flight struct {
	*line
	after func() // finishes what has come; nil: it is finished
}

// Send hands over an exchange.
func (n *network) Send(ctx context.Context, x gomem.Exchange) error {
	l, err := n.member.at().along(x.How.Along)
	if err != nil {
		return fmt.Errorf("exchange %s: %w", x.Name, err)
	}
	y := collective.Exchange{Name: x.Name, Type: x.Type.String(), Data: x.Data}
	if err := n.kind(&y, x, l); err != nil {
		return err
	}
	if err := l.exchanger.Send(y); err != nil {
		return n.why(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flying[x.Name] = flight{l, l.after(x)}
	return ctx.Err()
}

// kind says how values are exchanged among the workers of a line.
func (n *network) kind(y *collective.Exchange, x gomem.Exchange, l *line) (err error) {
	switch {
	case x.How.Fold == graph.Gather || x.How.Fold == graph.GatherSome:
		err = l.place(x)
	case x.Parts > 0 && x.Parts != l.size:
		err = fmt.Errorf("exchange %s: it is among %d workers, of whom there are %d", x.Name,
			x.Parts, l.size)
	}
	if err != nil {
		return err
	}
	if y.Via, err = viaOf(x.How, n.via); err != nil {
		return fmt.Errorf("exchange %s: %w", x.Name, err)
	}
	switch {
	case !x.How.Fold.Adds():
		y.Elem, y.Root, y.To = collective.U8, x.Root, x.To
	case x.Type.DType == graph.F64:
		y.Elem = collective.F64
	case x.Type.DType != graph.F32:
		return fmt.Errorf("exchange %s: workers add up f32 and f64, not %s", x.Name, x.Type)
	}
	if x.How.Fold == graph.Mean {
		y.Op = collective.Mean
	}
	if x.How.Fold.Some() {
		if len(x.Ranks) != x.Rows*x.Each {
			return fmt.Errorf("exchange %s: %d ranks are not %d for each of %d rows", x.Name,
				len(x.Ranks), x.Each, x.Rows)
		}
		y.Rows = collective.Rows{Ranks: n.kept(x.Name, x.Ranks, nil), Each: x.Each}
	}
	if x.How.Fold == graph.SwapSome {
		counts, going := n.kept(x.Name, x.Going, x.Coming), len(x.Going)
		y.Counts = collective.Counts{To: counts[:going], From: counts[going:]}
		if x.Type.Rank() > 0 {
			y.Counts.Most = x.Type.Size(0) / l.size
		}
	}
	return nil
}

// kept are a copy of what an exchange of some rows says of them, which stays as it is until
// the next exchange of that name.
func (n *network) kept(name string, a, b []int32) []int32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	own := n.rows[name]
	if many := len(a) + len(b); len(own) != many {
		n.member.rows.Add(4 * int64(many-len(own)))
		own = make([]int32, many)
		n.rows[name] = own
	}
	copy(own[copy(own, a):], b)
	return own
}

// viaOf is the way of a fold; that of sums which name none is given.
func viaOf(h graph.How, via collective.Via) (collective.Via, error) {
	switch {
	case h.Fold == graph.Gather:
		return collective.Gathered, nil
	case h.Fold == graph.Scatter:
		return collective.Scattered, nil
	case h.Fold == graph.Swap:
		return collective.Swapped, nil
	case h.Fold == graph.Copy:
		return collective.Copied, nil
	case h.Fold == graph.Permute:
		return collective.Permuted, nil
	case h.Fold == graph.GatherSome:
		return collective.GatheredSome, nil
	case h.Fold == graph.ScatterSome:
		return collective.ScatteredSome, nil
	case h.Fold == graph.SwapSome:
		return collective.SwappedSome, nil
	case h.Via != "":
		return collective.ParseVia(h.Via)
	}
	return via, nil
}

// after is what makes of an exchange that is done what the step awaits: the block of a sum
// at the beginning, and zeros but for the root's sum.
func (l *line) after(x gomem.Exchange) func() {
	switch {
	case x.How.Fold == graph.Scatter || x.How.Fold == graph.ScatterSome:
		block := len(x.Data) / l.size
		return func() { copy(x.Data[:block], x.Data[l.rank*block:]) }
	case x.How.Fold == graph.Reduce && x.Root != l.rank:
		return func() { clear(x.Data) }
	}
	return nil
}

// place puts this worker's part of what is gathered where its rank has it.
func (l *line) place(x gomem.Exchange) error {
	workers := l.size
	if x.Parts != workers || len(x.Data)%workers != 0 {
		return fmt.Errorf("exchange %s: %d bytes are %d parts, of %d workers", x.Name, len(x.Data),
			x.Parts, workers)
	}
	part := len(x.Data) / workers
	copy(x.Data[l.rank*part:], x.Data[:part])
	return nil
}

// Await waits for what an exchange has made.
func (n *network) Await(ctx context.Context, name string) error {
	ctx, release := n.member.at().desk.Within(ctx)
	defer release()
	n.mu.Lock()
	f, ok := n.flying[name]
	n.mu.Unlock()
	if !ok {
		return fmt.Errorf("exchange %s is awaited and was not sent", name)
	}
	if err := f.exchanger.Await(ctx, name); err != nil {
		return n.why(err)
	}
	n.mu.Lock()
	delete(n.flying, name)
	n.mu.Unlock()
	if f.after != nil {
		f.after()
	}
	return nil
}

// why is the reason of a worker that has left, if there is one, for what came of it.
func (n *network) why(err error) error {
	if err == nil {
		return nil
	}
	at := n.member.at()
	at.nonsense(err)
	if left := at.desk.Blame(); left != nil {
		return left
	}
	return asBroken(err, n.member.options.Elastic != nil)
}

// Abandon gives up what was sent and not awaited.
func (n *network) Abandon() {
	at := n.member.at()
	for _, axis := range at.axes() {
		at.lines[axis].exchanger.Abandon()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.flying)
}

// gathering is the network of a job that goes on without a worker that is lost in a step: a
// [gomem.Gatherer].
type gathering struct{ network }

// Gather waits for what all that was sent has made.
func (n *gathering) Gather(ctx context.Context) error {
	at := n.member.at()
	ctx, release := at.desk.Within(ctx)
	defer release()
	return n.why(at.exchanger.Gather(ctx))
}
