package distrib

import "sync"

// parcel is a message before it is sent.
type parcel struct {
	head  header
	items []*item  // that are its frames
	marks []mark   // before them
	body  [][]byte // instead of both
	bytes int64    // of the items
	of    *shared  // the memory of body, if others have it, too; nil: it is counted elsewhere
	paced Pacer    // of its plan, if that has been told of it
}

// shared is bytes that wait to be sent to several nodes. They are there once.
type shared struct {
	bytes int64
	left  int   // parcels that have not landed
	sum   *sums // of this node's own that they are part of
}

// done notes that a parcel has landed, or will not leave any more.
func (p *parcel) done(a *Audit) {
	if p.of == nil {
		return
	}
	if p.of.left--; p.of.left > 0 {
		return
	}
	a.Queued -= p.of.bytes
	if p.of.sum != nil {
		p.of.sum.flying -= p.of.bytes
	}
}

// message encodes a parcel.
func (p *parcel) message() (*Msg, error) {
	m := &Msg{Class: p.head.kind.class(), Body: p.body}
	p.head.marks = uint32(markLen * len(p.marks))
	if p.body != nil && len(p.marks) > 0 {
		m.Body = append([][]byte{appendMarks(nil, p.marks)}, p.body...)
	} else if len(p.items)+len(p.marks) > 0 {
		var frames []Frame
		size := 0
		for _, it := range p.items {
			f := Frame{it.Ref, it.Made, it.Tag, p.head.epoch, it.U}
			frames, size = append(frames, f), size+FrameSize(f)
		}
		b := make([]byte, 0, size+markLen*len(p.marks))
		b = appendMarks(b, p.marks)
		b, err := encode(b, frames)
		if err != nil {
			return nil, err
		}
		m.Body = [][]byte{b}
	}
	var first []byte
	if len(m.Body) > 0 {
		first = m.Body[0] // what has no checksum of its own is in it
	}
	m.Head = p.head.seal(first)
	return m, nil
}

// link is what a node knows of its way to another.
type link struct {
	control, updates, values []*parcel
	onWay                    [Classes]int // messages that have not landed
	next, last               [Classes]uint64
	owes                     bool   // an acknowledgement
	begged                   bool   // for one, since the outbox is full of what has none
	acked                    uint64 // the last message of updates that is folded in there
	sent                     []*parcel
	unacked                  int64 // bytes of sent
	dropped                  int64 // messages of updates that it could not be sent any more
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
