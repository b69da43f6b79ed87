package wrap

import (
	"slices"
	"time"

	"github.com/gomem/gomem/distrib"
)

// Limit lets bps bits a second leave a node, and a burst of bytes at once after a time
// without traffic. Control messages go before others, and others as they were sent; those
// to the node itself go at once.
func Limit(bps float64, burst int) distrib.Wrap {
	return func(t distrib.Transport) distrib.Transport {
		return &limited{held: held{Transport: t}, rate: bps / 8, burst: float64(burst)}
	}
}

type limited struct {
	held
	rate, burst float64 // bytes a second, bytes
	line        line
	free        time.Time // when the link has sent what it was given
}

// Send holds a message until the rate allows it.
func (l *limited) Send(to distrib.NodeID, m *distrib.Msg) {
	if to == l.Self() {
		l.Transport.Send(to, m)
		return
	}
	l.enter(&l.line, item{to: to, m: m}, l.next)
}

func (l *limited) next() (item, bool) {
	if len(l.line.items) == 0 {
		return item{}, false
	}
	i := max(0, slices.IndexFunc(l.line.items, func(it item) bool {
		return it.m.Class == distrib.Control
	}))
	it := l.line.items[i]
	l.line.items = slices.Delete(l.line.items, i, i+1)
	now := time.Now()
	if most := now.Add(-seconds(l.burst / l.rate)); l.free.Before(most) {
		l.free = most
	}
	l.free = l.free.Add(seconds(float64(size(it.m)) / l.rate))
	it.at = l.free
	return it, true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
