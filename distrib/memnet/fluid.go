package memnet

import (
	"cmp"
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
	for _, s := range n.streams {
		if s.flows && !math.IsInf(s.rate, 1) {
			s.left -= float64(s.rate * d)
			s.from.peers[s.to.id].measure(s.rate*d, d, now)
		}
	}
}

// admit lets those streams flow, and only those, that have something to send and may.
func (n *Network) admit() {
	for _, s := range n.streams {
		ready := s.ready()
		if ready == s.flows {
			continue
		}
		if n.stale, s.flows = true, ready; ready && s.left <= 0 {
			s.left = float64(s.size(s.out[0]))
		}
	}
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
	for _, s := range n.streams {
		if s.from == s.to {
			s.rate = math.Inf(1)
		} else if s.flows {
			open = append(open, s)
		}
	}
	for _, s := range open {
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
	done := false
	for _, s := range n.streams {
		if s.flows && (s.left <= rest || math.IsInf(s.rate, 1)) {
			s.leave(now)
			done = true
		}
	}
	return done
}

// arrive hands over what has come to its end, in the order of time.
func (n *Network) arrive(now time.Duration) {
	var due []*stream
	for _, s := range n.streams {
		if len(s.flight) > 0 && s.flight[0].at <= now {
			due = append(due, s)
		}
	}
	slices.SortStableFunc(due, func(a, b *stream) int {
		return cmp.Compare(a.flight[0].at, b.flight[0].at)
	})
	for _, s := range due {
		for len(s.flight) > 0 && s.flight[0].at <= now {
			s.land()
		}
	}
}

// next is when something happens that is known now.
func (n *Network) next(now time.Duration) time.Duration {
	at := never
	for _, s := range n.streams {
		if s.flows && s.rate > 0 {
			at = min(at, after(now, max(0, s.left)/s.rate))
		}
		if len(s.flight) > 0 {
			at = min(at, s.flight[0].at)
		}
	}
	for _, node := range n.nodes {
		if node.resumes > now {
			at = min(at, node.resumes)
		}
	}
	if n.trace < len(n.o.Trace) {
		at = min(at, n.o.Trace[n.trace].At)
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
