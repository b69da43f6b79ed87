package wire

import (
	"math/bits"
	"sync"

	"github.com/gomem/gomem/distrib"
)

// shelf keeps the memory of messages that their receiver has let go of, by calling Done, for
// the next ones: memory that is new has to be cleared, and its pages to be found, which takes
// longer than to fill it.
type shelf struct {
	most int64 // bytes that are kept

	mu   sync.Mutex
	kept int64
	free [shelves][]*parcel // of bodies of up to 64 bytes, 128, ..., maxFrame
}

const (
	leastShelf = 6 // log2 of the bytes of the smallest bodies
	shelves    = 20 - leastShelf + 1
)

// parcel is a message, its memory and how that comes back.
type parcel struct {
	msg   distrib.Msg
	head  []byte
	bytes []byte
	body  [1][]byte
	done  func(error)
}

// message is one with room for a head and a body, from the shelf if that has any.
func (s *shelf) message(head, body int) (m *distrib.Msg, room []byte) {
	i := max(bits.Len(uint(max(body, 1)-1)), leastShelf) - leastShelf
	if i >= shelves {
		return &distrib.Msg{Head: make([]byte, head)}, make([]byte, body)
	}
	p := s.take(i)
	if p == nil {
		p = &parcel{bytes: make([]byte, 1<<(i+leastShelf))}
		p.done = func(error) { s.put(p, i) }
	}
	if cap(p.head) < head {
		p.head = make([]byte, head)
	}
	p.msg = distrib.Msg{Head: p.head[:head], Done: p.done}
	p.body[0] = p.bytes[:body]
	if body > 0 {
		p.msg.Body = p.body[:]
	}
	return &p.msg, p.body[0]
}

func (s *shelf) take(i int) *parcel {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free[i])
	if n == 0 {
		return nil
	}
	p := s.free[i][n-1]
	s.free[i] = s.free[i][:n-1]
	s.kept -= int64(len(p.bytes))
	return p
}

func (s *shelf) put(p *parcel, i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept+int64(len(p.bytes)) > s.most {
		return
	}
	s.kept += int64(len(p.bytes))
	s.free[i] = append(s.free[i], p)
}
