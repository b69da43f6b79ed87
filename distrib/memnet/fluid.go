package memnet

import (
	"container/heap"
	"math"
	"slices"
	"time"
)

const never = time.Duration(math.MaxInt64)

// rest is so few bytes that a message has left: clocks count nanoseconds.
const rest = 1e-3

// flow lets what is under way go on until now.
func (n *Network) flow(now time.Duration) {
	d := (now - n.flowed).Seconds()
	if n.flowed = now; d <= 0 {
		return
	}
	for _, s := range n.flowing {
		if !math.IsInf(s.rate, 1) {
			s.left -= float64(s.rate * d)
			s.from.peers[s.to.id].measure(s.rate*d, d, now)
		}
	}
}

// admit lets those streams flow, and only those, that have something to send and may.
func (n *Network) admit() {
	for _, s := range n.touched {
		s.touched = false
		ready := s.ready()
		if ready == s.flows {
			continue
		}
		if s.flow(ready); ready && s.left <= 0 {
			s.left = float64(s.size(s.out[0]))
		}
	}
	n.touched = n.touched[:0]
}

// flow has a stream flow or not, and rates found again.
func (s *stream) flow(on bool) {
	n := s.from.net
	if s.flows != on {
		n.stale = true
	}
	switch {
	case on && !s.flows:
		s.place, n.flowing = len(n.flowing), append(n.flowing, s)
	case !on && s.flows:
		end := len(n.flowing) - 1
		n.flowing[s.place], n.flowing[end].place = n.flowing[end], s.place
		n.flowing = n.flowing[:end]
	}
	s.flows = on
}

// link is one direction of a node's connection, while rates are found.
type link struct {
	free    float64 // bytes a second that nobody has
	streams int     // that have no rate yet
}

func (l *link) fair() float64 {
	if l.streams == 0 {
		return math.Inf(1)
	}
	return l.free / float64(l.streams)
}

// share gives every active stream its max-min fair rate: the link whose share is least
// settles its streams, then the next one among what is left.
func (n *Network) share() {
	if !n.stale {
		return
	}
	n.stale = false
	ups, downs := make([]link, len(n.nodes)), make([]link, len(n.nodes))
	for i, node := range n.nodes {
		ups[i].free, downs[i].free = limit(node.up), limit(node.down)
	}
	var open []*stream
	for _, s := range n.flowing {
		if s.from == s.to {
			s.rate = math.Inf(1)
			continue
		}
		open = append(open, s)
		ups[s.from.id].streams++
		downs[s.to.id].streams++
	}
	for len(open) > 0 {
		least := math.Inf(1)
		for i := range ups {
			least = min(least, ups[i].fair(), downs[i].fair())
		}
		open = slices.DeleteFunc(open, func(s *stream) bool {
			up, down := &ups[s.from.id], &downs[s.to.id]
			if min(up.fair(), down.fair()) > least*(1+1e-12) {
				return false
			}
			s.rate = least
			up.take(least)
			down.take(least)
			return true
		})
	}
}

func (l *link) take(rate float64) {
	l.streams--
	if !math.IsInf(rate, 1) {
		l.free = max(0, l.free-rate)
	}
}

func limit(bytes float64) float64 {
	if bytes == 0 {
		return math.Inf(1)
	}
	return bytes
}

// complete ends the messages that have left, and reports whether there were any.
func (n *Network) complete(now time.Duration) bool {
	var left []*stream
	for _, s := range n.flowing {
		if s.left <= rest || math.IsInf(s.rate, 1) {
			left = append(left, s)
		}
	}
	for _, s := range left {
		if s.flows { // it may have been refused since
			s.leave(now)
		}
	}
	return len(left) > 0
}

// flights are the streams that have something in flight, those first whose first arrives first.
type flights []*stream

func (f flights) Len() int { return len(f) }

func (f flights) Less(i, j int) bool {
	a, b := f[i], f[j]
	if a.flight[0].at != b.flight[0].at {
		return a.flight[0].at < b.flight[0].at
	}
	return a.number < b.number
}

func (f flights) Swap(i, j int) {
	f[i], f[j] = f[j], f[i]
	f[i].flies, f[j].flies = i, j
}

// Push adds a stream.
func (f *flights) Push(x any) {
	s := x.(*stream)
	s.flies, *f = len(*f), append(*f, s)
}

// Pop removes the last one.
func (f *flights) Pop() any {
	end := len(*f) - 1
	s := (*f)[end]
	*f = (*f)[:end]
	return s
}

// arrive hands over what has come to its end, in the order of time.
func (n *Network) arrive(now time.Duration) {
	for len(n.flying) > 0 && n.flying[0].flight[0].at <= now {
		s := n.flying[0]
		s.land()
		if len(s.flight) > 0 {
			heap.Fix(&n.flying, 0)
		} else {
			heap.Pop(&n.flying)
		}
	}
}

// next is when something happens that is known now.
func (n *Network) next(now time.Duration) time.Duration {
	at := never
	for _, s := range n.flowing {
		if s.rate > 0 {
			at = min(at, after(now, max(0, s.left)/s.rate))
		}
	}
	if len(n.flying) > 0 {
		at = min(at, n.flying[0].flight[0].at)
	}
	if n.trace < len(n.o.Trace) {
		at = min(at, n.o.Trace[n.trace].At)
	}
	if !n.troubled {
		return at
	}
	for _, node := range n.nodes {
		if node.resumes > now {
			at = min(at, node.resumes)
		}
	}
	return min(at, n.expires())
}

// after is the first nanosecond when so many seconds have passed.
func after(now time.Duration, seconds float64) time.Duration {
	d := math.Ceil(seconds * 1e9)
	if d >= float64(never-now) {
		return never
	}
	return now + max(1, time.Duration(d))
}
