package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/graph"
)

// Peers is where workers of one process meet whose devices reach each other's memory, to exchange
// from device to device. It is for one run: once an exchange has failed, all others do.
type Peers struct {
	mu       sync.Mutex
	meetings map[string]*rendezvous
	broken   chan struct{} // closed when one has failed
}

// NewPeers is one where nobody is.
func NewPeers() *Peers {
	return &Peers{meetings: map[string]*rendezvous{}, broken: make(chan struct{})}
}

// errApart is the end of an exchange that another worker has given up.
var errApart = errors.New("another worker has given up an exchange between devices")

// rendezvous is an exchange of those along a line.
type rendezvous struct {
	places     []gomem.Place // by rank: what they have
	come, left int
	all, done  chan struct{} // closed when all have come, and when all have had theirs
	reading    sync.RWMutex  // what is at places
}

// come enters what a worker has, and is the meeting.
func (p *Peers) come(key string, rank, size int, from gomem.Place) *rendezvous {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.meetings[key]
	if m == nil {
		m = &rendezvous{places: make([]gomem.Place, size), all: make(chan struct{}),
			done: make(chan struct{})}
		p.meetings[key] = m
	}
	m.places[rank] = from
	if m.come++; m.come == size {
		delete(p.meetings, key) // the next one of its name is another
		close(m.all)
	}
	return m
}

// leave is when a worker has had what it needs.
func (p *Peers) leave(m *rendezvous) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.left++; m.left == len(m.places) {
		close(m.done)
	}
}

// giveUp ends all meetings, and returns when nobody reads what is at one any more.
func (p *Peers) giveUp(m *rendezvous) {
	p.mu.Lock()
	if p.whole() {
		close(p.broken)
	}
	p.mu.Unlock()
	m.reading.Lock() // who begins to read later sees that it is broken
	defer m.reading.Unlock()
}

// whole reports whether no exchange has failed.
func (p *Peers) whole() bool {
	select {
	case <-p.broken:
		return false
	default:
		return true
	}
}

// wait returns when a step of a meeting is over.
func (p *Peers) wait(ctx context.Context, over <-chan struct{}) error {
	select {
	case <-over:
		return nil
	case <-p.broken:
		return errApart
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// copies is a copy from the place of a rank to one's own.
type copies struct {
	rank          int
	at, to, bytes int64
}

// pull makes copies at a meeting; where nothing comes there are zeros.
func (p *Peers) pull(m *rendezvous, to gomem.Place, list []copies) error {
	if len(list) == 0 {
		return pulled(to.Clear())
	}
	for _, c := range list {
		m.reading.RLock()
		err := errApart
		if p.whole() {
			err = pulled(to.Pull(c.to, m.places[c.rank], c.at, c.bytes))
		}
		m.reading.RUnlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// needs are the copies by which a rank among some has what an exchange makes: none if nothing is
// sent to it.
func needs(x gomem.Exchange, rank, size int) (list []copies, err error) {
	bytes := x.Type.Bytes()
	part := bytes / int64(size)
	switch x.How.Fold {
	case graph.Gather:
		for i := range size {
			list = append(list, copies{i, 0, int64(i) * part, part})
		}
	case graph.Swap:
		for i := range size {
			list = append(list, copies{i, int64(rank) * part, int64(i) * part, part})
		}
	case graph.Copy:
		list = append(list, copies{x.Root, 0, 0, bytes})
	case graph.Permute:
		from := slices.Index(x.To, rank)
		if from < 0 {
			return nil, nil
		}
		list = append(list, copies{from, 0, 0, bytes})
	default:
		return nil, fmt.Errorf("devices exchange by no %s", x.How)
	}
	return list, nil
}

// pullError is a copy that a device failed to make.
type pullError struct{ error }

// pulled is the end of a copy.
func pulled(err error) error {
	if err != nil {
		return &pullError{err}
	}
	return nil
}

// Unwrap is the device's error.
func (e *pullError) Unwrap() error { return e.error }

// exchange has a worker meet the others of a line by a key, and copies what it needs from them. It
// returns when nobody reads what is at from any more.
func (p *Peers) exchange(ctx context.Context, key string, l *line, list []copies, from,
	to gomem.Place) error {
	m := p.come(key, l.rank, l.size, from)
	err := p.wait(ctx, m.all)
	if err == nil {
		err = p.pull(m, to, list)
	}
	if err == nil {
		p.leave(m)
		err = p.wait(ctx, m.done)
	}
	if err != nil {
		p.giveUp(m)
	}
	return err
}

// peerNetwork is the network of a worker whose device reaches those of all others: a
// [gomem.Peer].
type peerNetwork struct {
	network
	peers *Peers
}

// Exchange has values of all along a line from their devices.
func (n *peerNetwork) Exchange(ctx context.Context, x gomem.Exchange, from,
	to gomem.Place) error {
	at := n.member.at()
	l, err := at.along(x.How.Along)
	if err != nil {
		return fmt.Errorf("exchange %s: %w", x.Name, err)
	}
	list, err := needs(x, l.rank, l.size)
	if err == nil && x.Parts != l.size {
		err = fmt.Errorf("it is among %d workers, of whom there are %d", x.Parts, l.size)
	}
	if err != nil {
		return fmt.Errorf("exchange %s: %w", x.Name, err)
	}
	ctx, release := at.desk.Within(ctx)
	defer release()
	first := lineOf(n.member.options.Mesh, x.How.Along, n.member.Rank())
	err = n.peers.exchange(ctx, fmt.Sprintf("%d %s", first, x.Name), l, list, from, to)
	if _, device := errors.AsType[*pullError](err); device {
		return err
	}
	return n.why(err)
}

// lineOf is the first worker of those along an axis of a mesh that one is among.
func lineOf(m collective.Mesh, axis string, rank int) int {
	if axis == "" {
		return 0
	}
	return m.Along(slices.Index(m.Names, axis), rank)[0]
}
