package distrib

import "sync"

// parcel is a message before it is sent.
type parcel struct {
	head  header
	items []*item  // that are its frames
	marks []mark   // before them
	body  [][]byte // instead of both
	bytes int64    // of the items
	free  int64    // bytes of queues that its landing frees
	paced bool     // its plan's pacer has been told of it
}

// link is what a node knows of its way to another.
type link struct {
	control, updates, values []*parcel
	onWay                    [Classes]int // messages that have not landed
	next, last               [Classes]uint64
	owes                     bool // an acknowledgement
	begged                   bool // for one, since the outbox is full of what has none
	sent                     []*parcel
	unacked                  int64 // bytes of sent
	dropped                  int64 // messages that it could not be sent any more
}

func newLink() *link { return &link{} }

// landing is a message that the transport has done with.
type landing struct {
	to    NodeID
	epoch int64
	class Class
	p     *parcel
	err   error
}

// landings are noted by the transport's goroutines, at any time, and taken by the one
// that sends.
type landings struct {
	mu   sync.Mutex
	list []landing
}

func (l *landings) add(d landing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, d)
}

func (l *landings) take() []landing {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list
	l.list = nil
	return list
}
