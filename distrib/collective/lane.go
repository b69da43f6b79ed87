package collective

import "math/bits"

// Lanes: an exchange that is small does not wait for a large one before it, nor for the
// latency of other small ones. Each lane is a group of its own, on which exchanges go one
// after the other; which lane an exchange takes depends on its size, its way and the
// exchanges before it, so it is the same on all nodes.
const (
	ringLane    = 0 // what is large and comes from the rank before
	serversLane = 1 // what is large, or of some rows, and comes from all others
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
	case s.Via == Swapped || s.Via == SwappedSome || s.Via.some():
		return serversLane
	case s.Size < Small:
		return smallLanes + small%(lanes-smallLanes)
	case s.Via == Permuted || resolve(s.Via, n, owners) == Servers:
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
	var loads [smallLanes + 1]load // the small ones' order may be another: they are alike
	small := 0
	for _, x := range xs {
		l := min(laneOf(x, n, owners, 0), smallLanes)
		if l == smallLanes {
			small++
		}
		loads[l].add(l, x, n, owners)
	}
	sum := noticeSize * min(len(xs), notices)
	for l := range loads {
		_, window := room(l, m.Chunk, m.Window)
		bytes := loads[l].bytes(window)
		if l == smallLanes {
			bytes *= min(small, lanes-smallLanes)
		}
		sum += bytes
	}
	return int64(sum), nil
}

// room is the chunk and the window of a lane, where others have these.
func room(lane, chunk, window int) (int, int) {
	switch {
	case lane == ringLane:
		return chunk, window
	case lane == serversLane:
		return serversChunk, serversWindow
	}
	return smallChunk, smallWindow
}

// load is what of a lane's exchanges says how much memory they take.
type load struct {
	from    int  // of how many ranks one hears, at most
	block   int  // bytes of the largest block of an owner
	others  bool // there are ways that are not through owners
	buffers int  // bytes to work with
}

// add counts an exchange on a lane.
func (l *load) add(lane int, x Spec, n, owners int) {
	via := resolve(x.Via, n, owners)
	if via == Servers {
		block, buffer := serving(x.Size, n, owners)
		l.block, l.buffers = max(l.block, block), max(l.buffers, buffer)
	} else {
		l.others = true
	}
	switch {
	case lane == ringLane: // from the rank before
		l.from = 1
	case lane == serversLane && via != Servers:
		l.from, l.buffers = n-1, serversChunk
	default:
		l.from = max(l.from, senders(via, n))
	}
}

// serving is how much of a value an owner has at most, and what it works with.
func serving(size, n, owners int) (block, buffer int) {
	if size < tiny {
		return size, n * size
	}
	const widest = 8 // an element, which is in one block or another
	block = min(size, size/owners+widest)
	return block, min(block, serversChunk)
}

// bytes is what waits, and what is worked with. Of exchanges through owners, a node has sent
// its part of a block and the sum of another, at most: it does not get past an exchange
// that this one has not begun.
func (l *load) bytes(window int) int {
	if !l.others {
		window = min(window, 2*l.block)
	}
	return l.from*window + l.buffers
}

// senders is how many other ranks one hears from, at most, in an exchange that goes round no
// ring.
func senders(v Via, n int) int {
	switch v {
	case Servers, Copied, Permuted: // down trees of any root, and from any rank
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
