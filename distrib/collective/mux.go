package collective

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/gomem/gomem/distrib"
)

// Options of a [Mux]. Chunk and Window must be the same on all nodes.
type Options struct {
	// Epoch of the view, which errors name.
	Epoch int64
	// Chunk is the most bytes of one message, a multiple of 64 and at most [MaxChunk]; 0:
	// 256 KiB.
	Chunk int
	// Window is how many bytes of a node may wait at another one until they are taken, per
	// group; at least two chunks; 0: eight.
	Window int
	// Stall is how long nothing may come before Log is told who is missing, and again after
	// twice, four times that and so on; 0: 10 s.
	Stall time.Duration
	// Timeout is how long nothing may come before an operation fails with a
	// *[distrib.StallError]; 0: 60 s.
	Timeout time.Duration
	// Log takes reports of stalls, one line each; nil: nobody.
	Log func(string)
}

// MaxChunk is the most that [Options].Chunk may be.
const MaxChunk = 1 << 20

func (o Options) filled() (Options, error) {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	if o.Chunk == 0 {
		o.Chunk = 256 << 10
	}
	if o.Window == 0 {
		o.Window = 8 * o.Chunk
	}
	set(&o.Stall, 10*time.Second)
	set(&o.Timeout, time.Minute)
	o.Stall = min(o.Stall, o.Timeout)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	switch {
	case o.Chunk < 64 || o.Chunk > MaxChunk || o.Chunk%64 != 0:
		return o, fmt.Errorf("collective: Chunk is %d: it must be a multiple of 64, at most %d",
			o.Chunk, MaxChunk)
	case o.Window < 2*o.Chunk:
		return o, fmt.Errorf("collective: Window is %d: it must be two chunks of %d at least",
			o.Window, o.Chunk)
	case o.Stall < 0 || o.Timeout < 0:
		return o, errors.New("collective: Stall and Timeout must be positive")
	}
	return o, nil
}

// Mux owns the messages of class [distrib.Collective] of a transport and hands them to
// groups. The other classes are for whoever asks for [Mux.Transport].
type Mux struct {
	t distrib.Transport
	o Options

	mu     sync.Mutex
	room   sync.Cond // of early, or closed
	groups map[uint64]*Group
	made   map[uint64]uint64 // how many groups there were of the same members
	gone   map[uint64]bool   // groups that were closed
	down   map[distrib.NodeID]error
	early  []arrival // for groups that are not there yet
	held   int       // bytes of early
	closed bool
	users  int // of the transport
	rest   *rest
	asks   sync.WaitGroup // answers under way
	logged time.Time
}

// arrival is a message that has come.
type arrival struct {
	from distrib.NodeID
	head head
	msg  *distrib.Msg
}

// NewMux takes over a transport: it calls Serve, so nobody else may.
func NewMux(t distrib.Transport, o Options) (*Mux, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	m := &Mux{t: t, o: o, groups: map[uint64]*Group{}, made: map[uint64]uint64{},
		gone: map[uint64]bool{}, down: map[distrib.NodeID]error{}, users: 1}
	m.room.L = &m.mu
	m.rest = newRest(m)
	t.Serve(m)
	return m, nil
}

// Group makes a group of some nodes, whose ranks are their places in members. This node
// must be one of them, and all of them must make their common groups in the same order.
func (m *Mux) Group(members ...distrib.NodeID) (*Group, error) {
	return m.group(members, m.o.Chunk, m.o.Window)
}

func (m *Mux) group(members []distrib.NodeID, chunk, window int) (*Group, error) {
	rank := slices.Index(members, m.t.Self())
	if rank < 0 {
		return nil, fmt.Errorf("collective: node %d is no member of a group of %v",
			m.t.Self(), members)
	}
	sorted := slices.Sorted(slices.Values(members))
	if len(slices.Compact(sorted)) < len(members) {
		return nil, fmt.Errorf("collective: a group of %v has a node twice", members)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed
	}
	g := newGroup(m, members, rank, chunk, window)
	g.id = m.name(members)
	if m.groups[g.id] != nil {
		return nil, fmt.Errorf("collective: two groups have the number %x", g.id)
	}
	m.groups[g.id] = g
	m.catchUp(g)
	return g, nil
}

var errClosed = errors.New("collective: closed")

// name numbers a group by its members and how many of the same there were before.
func (m *Mux) name(members []distrib.NodeID) uint64 {
	h := fnv.New64a()
	for _, n := range members {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(n)))
	}
	key := h.Sum64()
	m.made[key]++
	h.Write(binary.LittleEndian.AppendUint64(nil, m.made[key]))
	return h.Sum64()
}

// catchUp gives a new group what has come for it. The mux is locked.
func (m *Mux) catchUp(g *Group) {
	kept := m.early[:0]
	for _, a := range m.early {
		if a.head.group != g.id {
			kept = append(kept, a)
			continue
		}
		m.held -= size(a.msg)
		g.receive(a)
	}
	clear(m.early[len(kept):])
	m.early = kept
	m.room.Broadcast()
	for _, n := range g.members {
		if err := m.down[n]; err != nil {
			g.down(n, err)
		}
	}
}

// Receive takes a message of the transport.
func (m *Mux) Receive(from distrib.NodeID, msg *distrib.Msg) {
	if msg.Class != distrib.Collective {
		m.rest.receive(from, msg)
		return
	}
	h, err := parseHead(msg.Head)
	if err != nil {
		m.broken(from, err)
		return
	}
	if g := m.find(arrival{from, h, msg}); g != nil {
		g.mu.Lock()
		g.receive(arrival{from, h, msg})
		alone := g.backlog > 0 && len(g.waiters) == 0
		g.mu.Unlock()
		if alone { // what notify left, and nobody waits who would send it
			g.pump()
		}
	}
	if h.kind == probe {
		m.answer(from, h.group)
	}
}

// find looks up the group of a message. One that is not there yet gets it later: what
// waits for such groups is bounded, and beyond that the stream of the sender blocks.
func (m *Mux) find(a arrival) *Group {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		g := m.groups[a.head.group]
		if g != nil || m.closed || m.gone[a.head.group] || a.head.kind == probe {
			return g
		}
		if m.held == 0 || m.held+size(a.msg) <= 4*m.o.Window {
			m.early = append(m.early, a)
			m.held += size(a.msg)
			return nil
		}
		m.room.Wait()
	}
}

// answer tells a node how far this one is in a group. It may not hold up what else the
// node sends, so it is nothing that Receive waits for.
func (m *Mux) answer(to distrib.NodeID, group uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	h := head{kind: progress, group: group}
	var seq uint64
	if g := m.groups[group]; g != nil {
		g.mu.Lock()
		seq, h.took = g.seq, g.peers[g.rankOf(to)].took
		g.mu.Unlock()
	}
	m.asks.Go(func() {
		m.t.Send(to, &distrib.Msg{Class: distrib.Collective, Tag: seq, Head: h.append(nil)})
	})
}

// log reports a stall, unless there was another report just before: a node that is missing
// is missing in many places.
func (m *Mux) log(line string) {
	m.mu.Lock()
	quiet := !m.logged.IsZero() && time.Since(m.logged) < m.o.Stall/2
	if !quiet {
		m.logged = time.Now()
	}
	m.mu.Unlock()
	if !quiet {
		m.o.Log(line)
	}
}

// broken is a node that does not speak the protocol: as good as lost.
func (m *Mux) broken(from distrib.NodeID, err error) {
	why := &distrib.NonsenseError{Node: from, Err: err}
	m.lose(from, why)
	distrib.Drop(m.t, from, why)
}

// Down notes that a node is lost.
func (m *Mux) Down(from distrib.NodeID, err error) {
	if err == nil {
		err = errors.New("it is gone")
	}
	m.lose(from, err)
	m.rest.down(from, err)
}

func (m *Mux) lose(from distrib.NodeID, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down[from] == nil {
		m.down[from] = err
	}
	for _, g := range m.groups {
		g.down(from, err)
	}
	m.room.Broadcast()
}

// Close closes all groups, as [Group.Close] does, and then the transport, unless somebody
// else has it through [Mux.Transport], who closes it then.
func (m *Mux) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	m.early, m.held = nil, 0
	groups := make([]*Group, 0, len(m.groups))
	for _, g := range m.groups {
		groups = append(groups, g)
	}
	m.room.Broadcast()
	m.mu.Unlock()
	for _, g := range groups {
		g.Close()
	}
	m.asks.Wait()
	return m.leave()
}

// leave is one user of the transport less; the last one closes it.
func (m *Mux) leave() error {
	m.mu.Lock()
	m.users--
	last := m.users == 0
	m.mu.Unlock()
	if last {
		m.rest.stop()
		return m.t.Close()
	}
	return nil
}
