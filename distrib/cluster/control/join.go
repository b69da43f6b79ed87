package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gomem/gomem/distrib"
)

// stallReport is how often a long wait is logged, and a sixth of the longest at least.
const stallReport = 10 * time.Second

// ErrNotJoined is what needs a member and has none.
var ErrNotJoined = errors.New("this node has not joined")

// Join waits until min to max nodes are there and returns their view. Self's ID is this
// node's in all views, and its own: a rank. All nodes ask for the same min and max. Who
// joins later, or again, is in a view that follows; nodes beyond max are spare, and wait.
// After too long a wait, the error is a [distrib.StallError] that names the ranks that
// have not come. A node that is out may join again, with a channel of views of its own.
func (c *Control) Join(ctx context.Context, self distrib.Node, min, max int) (
	distrib.View, error) {
	if err := checkJoin(self, min, max); err != nil {
		return distrib.View{}, err
	}
	if m, err := c.joined(); err == nil {
		return distrib.View{}, fmt.Errorf("node %d has joined already", m.rec.ID)
	}
	c.forget()
	c.disown()
	m, err := c.enter(ctx, self, min, max)
	if err != nil {
		return distrib.View{}, err
	}
	c.adopt(m)
	if err := m.begin(ctx); err != nil {
		m.close(ErrClosed)
		return distrib.View{}, err
	}
	v, _ := m.now()
	return v.view(m.rec.ID, m.rec.Lease), nil
}

// AtWork reports whether a view has nodes that are there, so that who joins is one that comes
// later. It may be asked before Join.
func (c *Control) AtWork(ctx context.Context) (bool, error) {
	s, err := c.state(ctx)
	if err != nil {
		return false, c.wrap("who is at work", err)
	}
	return slices.ContainsFunc(s.here, func(n nodeRecord) bool {
		return s.cur.has(n.ID, n.Lease)
	}), nil
}

func checkJoin(self distrib.Node, min, max int) error {
	switch {
	case self.ID < 0:
		return fmt.Errorf("join: node %d: ranks begin with 0", self.ID)
	case self.Addr == "":
		return fmt.Errorf("join: node %d has no address for the others", self.ID)
	case min < 1 || max < min:
		return fmt.Errorf("join: %d to %d nodes: at least one, and no more than at most", min, max)
	}
	return nil
}

// forget ends what is left of a member that is out.
func (c *Control) forget() {
	c.mu.Lock()
	m := c.member
	c.mu.Unlock()
	if m != nil {
		m.close(ErrClosed)
	}
}

// disown ends the server of a node that is out: the others remove it from etcd's members, or have.
// The node asks theirs from then on. The only server that is known stays.
func (c *Control) disown() {
	c.mu.Lock()
	own, out := c.server, c.member != nil
	var rest []string
	if out && own != nil && c.cfg.Spread > 1 {
		at := c.cfg.scheme() + "://" + own.at.Client
		rest = slices.DeleteFunc(slices.Clone(c.ends), func(end string) bool { return end == at })
	}
	if len(rest) == 0 {
		c.mu.Unlock()
		return
	}
	c.ends, c.server = rest, nil
	c.mu.Unlock()
	c.sentry.reach(rest)
	own.close()
}

// adopt makes m the member, with a feed that nobody has closed.
func (c *Control) adopt(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.member != nil {
		c.feed = newFeed()
	}
	c.member, m.views = m, c.feed
}

// joined is the member, if it is not out.
func (c *Control) joined() (*member, error) {
	c.mu.Lock()
	m := c.member
	c.mu.Unlock()
	if m == nil {
		return nil, ErrNotJoined
	}
	if m.lease.ctx.Err() != nil {
		return nil, m.fenced()
	}
	return m, nil
}

// Views delivers, in order, every view after the one that Join returned. A node that is
// out gets a last view, whose Self is -1, and the channel is closed: it may neither tick nor
// send any more. That view has the nodes that go on, or none if they are not known, because
// the lease was lost. After another Join, it is another channel.
func (c *Control) Views() <-chan distrib.View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.feed.out
}

// Alive is a context that ends when this node is out; its cause says why.
func (c *Control) Alive() (context.Context, error) {
	m, err := c.joined()
	if err != nil {
		return nil, err
	}
	return m.lease.ctx, nil
}

// begin takes part in elections and waits for a view with this node.
func (m *member) begin(ctx context.Context) error {
	s, err := m.c.state(ctx)
	if err != nil {
		return m.c.wrap("join", err)
	}
	if s.cur.has(m.rec.ID, m.rec.Lease) {
		m.deliver(s.cur)
	}
	m.tasks.Go(func() { m.follow(s) })
	m.tasks.Go(m.rendezvous)
	m.spreads()
	return m.await(ctx, &waiting{
		what:    "the start of job " + m.c.cfg.Job,
		missing: m.absent,
		ready: func() (bool, error) {
			v, _ := m.now()
			return v.Epoch > 0, nil
		},
		watch: func() clientv3.WatchChan { return nil }, // views are followed already
	})
}

// waiting is something that other nodes must do first.
type waiting struct {
	what    string
	missing func(context.Context) []distrib.NodeID // who has not done it
	ready   func() (bool, error)                   // asked after views and what is watched
	watch   func() clientv3.WatchChan              // from what ready has seen last
}

// await waits, and not for ever: after the stall's time, or ctx's, the error names who is
// missing.
func (m *member) await(ctx context.Context, w *waiting) error {
	end := time.NewTimer(m.c.cfg.Stall)
	defer end.Stop()
	report := time.NewTicker(min(stallReport, max(m.c.cfg.Stall/6, time.Millisecond)))
	defer report.Stop()
	var stirred clientv3.WatchChan
	var late []distrib.NodeID // when that was known last
	for first := true; ; first = false {
		_, news := m.now()
		if ok, err := w.ready(); ok || err != nil {
			return m.guard(ctx, w.what, err)
		}
		if first {
			stirred = w.watch()
		}
		select {
		case <-news:
		case r, ok := <-stirred:
			if !ok || r.Err() != nil {
				sleep(m.lease.ctx, tryEvery)
				stirred = w.watch()
			}
		case <-report.C:
			if who := m.who(w); len(who) > 0 {
				late = who
			}
			m.c.noteStall(w.what, late)
		case <-m.lease.ctx.Done():
			if late != nil { // whom the others may have given up before, and etcd with them
				stall := &distrib.StallError{Nodes: late, What: w.what}
				return fmt.Errorf("%w, and %w", stall, m.fenced())
			}
			return fmt.Errorf("%s: %w", w.what, m.fenced())
		case <-end.C:
			return m.stall(w, late)
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", m.stall(w, late), context.Cause(ctx))
		}
	}
}

// stall names who is missing, or was when that could be asked last.
func (m *member) stall(w *waiting, late []distrib.NodeID) error {
	if who := m.who(w); len(who) > 0 {
		late = who
	}
	return &distrib.StallError{Nodes: late, What: w.what}
}

// who asks for the nodes that are missing, without waiting long for it.
func (m *member) who(w *waiting) []distrib.NodeID {
	ctx, cancel := context.WithTimeout(m.lease.ctx, time.Second)
	defer cancel()
	return w.missing(ctx)
}

// absent are the ranks below the least number of nodes that are not there.
func (m *member) absent(ctx context.Context) []distrib.NodeID {
	s, err := m.c.state(ctx)
	if err != nil {
		return nil
	}
	var gone []distrib.NodeID
	for i := range distrib.NodeID(m.rec.Min) {
		if !slices.ContainsFunc(s.here, func(n nodeRecord) bool { return n.ID == i }) {
			gone = append(gone, i)
		}
	}
	return gone
}

// Leave takes this node out: it returns when the others have a view without it. Nodes in
// which etcd is embedded are the last to leave, so theirs waits for all others to leave.
// Close must follow.
func (c *Control) Leave(ctx context.Context) error {
	m, err := c.joined()
	if err != nil {
		return err
	}
	if err := m.announce(ctx); err != nil {
		return m.guard(ctx, "leave", err)
	}
	select {
	case <-m.lease.ctx.Done():
		if err := context.Cause(m.lease.ctx); !errors.Is(err, ErrLeft) {
			return m.fenced()
		}
	case <-ctx.Done():
		return fmt.Errorf("leave: %w", context.Cause(ctx))
	}
	m.linger(ctx)
	m.close(ErrLeft)
	return nil
}

// linger keeps one of several servers up until all of their nodes are out: without two of
// three, the last could not leave.
func (m *member) linger(ctx context.Context) {
	if len(m.c.cfg.Servers) < 2 || !m.rec.Server {
		return
	}
	for {
		s, err := m.c.state(ctx)
		if err != nil || len(s.cur.Nodes) == 0 {
			break
		}
		if m.c.changed(ctx, m.c.key("view", ""), s.revision, time.Second) != nil {
			break
		}
	}
	sleep(ctx, 2*heartbeatMs*time.Millisecond) // the others hear of the last view
}

// announce waits for whom this node's server is needed by, and says that it leaves.
func (m *member) announce(ctx context.Context) error {
	if err := m.last(ctx); err != nil {
		return err
	}
	if err := m.handOver(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	m.left = true
	m.mu.Unlock()
	rec := m.rec
	rec.Leaving, rec.Against = true, m.against(viewRecord{}, -1)
	return m.say(ctx, &rec)
}

// Renew asks for a view after the present one, also of the same nodes: where a connection
// between two of them broke, only another epoch has a new one.
func (c *Control) Renew(ctx context.Context) error {
	return c.want(ctx, "another view", func(m *member, v viewRecord, rec *nodeRecord) {
		rec.Again, rec.Against = v.Epoch, m.against(v, -1)
	})
}

// Expel asks for views without a node of the present one, as long as this one is in them: it sends
// what cannot be used, and would do so in each of them. It may not mean it, so whoever is in its
// place later is another one.
func (c *Control) Expel(ctx context.Context, node distrib.NodeID) error {
	what := fmt.Sprintf("a view without node %d", node)
	return c.want(ctx, what, func(m *member, v viewRecord, rec *nodeRecord) {
		rec.Against = m.against(v, node)
	})
}

// want says something of this node that views are made by.
func (c *Control) want(ctx context.Context, what string,
	change func(*member, viewRecord, *nodeRecord)) error {
	m, err := c.joined()
	if err != nil {
		return err
	}
	ctx, stop := m.lease.within(ctx)
	defer stop()
	v, _ := m.now()
	rec := m.rec
	change(m, v, &rec)
	return m.guard(ctx, what, m.say(ctx, &rec))
}

// against are the leases of all whom this node wants to be out, with one more of a view.
func (m *member) against(v viewRecord, node distrib.NodeID) []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range v.Nodes {
		if n.ID == node && n.ID != m.rec.ID {
			m.expelled = append(m.expelled, n.Lease)
		}
	}
	return slices.Clone(m.expelled)
}

// say changes what the others read of this node.
func (m *member) say(ctx context.Context, rec *nodeRecord) error {
	val, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	key := m.c.nodeKey(rec.ID)
	r, err := m.c.commit(ctx,
		[]clientv3.Cmp{clientv3.Compare(clientv3.LeaseValue(key), "=", m.lease.id)},
		[]clientv3.Op{clientv3.OpPut(key, string(val), clientv3.WithLease(m.lease.id))}, nil)
	if err == nil && !r.Succeeded {
		m.lease.lose()
		return errLease
	}
	return err
}

// last waits until only nodes with a server are there, if this is one.
func (m *member) last(ctx context.Context) error {
	for m.rec.Server {
		s, err := m.c.state(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(s.here, func(n nodeRecord) bool { return !n.Server }) {
			return nil
		}
		if err := m.c.changed(ctx, m.c.key("node", ""), s.revision, time.Minute); err != nil {
			return err
		}
	}
	return nil
}
