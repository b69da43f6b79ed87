package collective

import "math/bits"

// Lanes: an exchange that is small does not wait for a large one before it, nor for the
// latency of other small ones. Each lane is a group of its own, on which exchanges go one
// after the other; which lane an exchange takes depends on its size, its way and the
// exchanges before it, so it is the same on all nodes.
const (
	ringLane    = 0 // what comes from the rank before
	serversLane = 1 // what comes from all others
	smallLanes  = 2 // the first of them
	lanes       = smallLanes + 4
)

// What may wait on the lanes that are not for rings: of a small exchange, a node may be
// one ahead of another.
const (
	serversChunk, serversWindow = 64 << 10, 256 << 10
	smallChunk, smallWindow     = Small, 2 * Small
)

// lane is a group and the exchanges that go over it.
type lane struct {
	group *Group
	queue[*job]
}

// Spec is what must be known of an exchange to say what memory it takes.
type Spec struct {
	Size int // bytes of Data
	Via  Via
}

// laneOf is where an exchange goes, the small-th of the small ones, among n nodes.
func laneOf(s Spec, n, owners, small int) int {
	switch {
	case resolve(s.Via, n, owners) == Servers || s.Via == Swapped || s.Via == SwappedSome ||
		s.Via.some():
		return serversLane
	case s.Size < Small:
		return smallLanes + small%(lanes-smallLanes)
	case s.Via == Permuted:
		return serversLane
	}
	return ringLane
}

// resolve is the way that Hybrid means for a dense value.
func resolve(v Via, n, owners int) Via {
	if v == Hybrid {
		return Choose(1, 1<<20, 0, n, owners)
	}
	return v
}

// Bytes is the most memory that exchanges take on a node of n, besides their own: what an
// [Exchanger] with these options allocates, and what other nodes may send before this one
// is ready for it, which is held in the transport's buffers.
func Bytes(xs []Spec, n int, m Options, o ExchangerOptions) (int64, error) {
	m, err := m.filled()
	if err != nil {
		return 0, err
	}
	owners, err := o.owners(n)
	if err != nil || n == 1 {
		return 0, err
	}
	var used [lanes]bool
	var from [lanes]int // of how many ranks it hears, at most
	small := 0
	for _, x := range xs {
		l := laneOf(x, n, owners, small)
		if l >= smallLanes {
			small++
		}
		used[l], from[l] = true, max(from[l], senders(x.Via, n))
	}
	sum := noticeSize * min(len(xs), notices)
	for l, yes := range used {
		switch {
		case !yes:
		case l == ringLane:
			sum += m.Window // from the rank before
		case l == serversLane:
			sum += (n-1)*serversWindow + serversChunk
		default:
			sum += from[l] * smallWindow
		}
	}
	return int64(sum), nil
}

// senders is how many other ranks one hears from, at most, on a lane for what is small.
func senders(v Via, n int) int {
	switch v {
	case Copied, Permuted: // down trees of any root, and from any rank
		return n - 1
	case Gathered, Scattered: // and by doubling
		return min(n-1, partners(n)+1)
	}
	return partners(n)
}

// partners is how many other ranks one hears from, at most, in recursive doubling.
func partners(n int) int {
	d := bits.Len(uint(n)) - 1
	if n > 1<<d && n > 1 {
		d++
	}
	return d
}
