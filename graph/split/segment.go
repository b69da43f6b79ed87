package split

import "github.com/gomem/gomem/graph"

// segments are the nodes of a region, cut where what follows needs, by way of others,
// something whole that comes before. The parts of a segment can be computed one
// after the other.
func (s *Survey) segments(number int32) [][]graph.NodeID {
	r := s.regions[number]
	if r.segments != nil {
		return r.segments
	}
	x := segment{Survey: s, number: number}
	for _, id := range r.nodes {
		if len(r.segments) == 0 || x.ends(id) {
			r.segments = append(r.segments, nil)
			x.first, x.readers, x.scanned = id, x.readers[:0], id
		}
		last := len(r.segments) - 1
		r.segments[last] = append(r.segments[last], id)
		for _, reader := range s.readers[id] {
			if s.regionOf[reader] != number {
				x.readers = append(x.readers, reader)
			}
		}
	}
	return r.segments
}

// segment is nodes of a region of which others need nothing whole, so far.
type segment struct {
	*Survey
	number  int32
	first   graph.NodeID
	readers []graph.NodeID // of them, that are not of the region
	scanned graph.NodeID   // up to which after is known
}

// ends reports whether a node of the region needs something whole of the segment.
func (x *segment) ends(id graph.NodeID) bool {
	if x.needsWhole(x.number, id, x.first) {
		return true
	}
	next := id // that may need something whole
	for _, reader := range x.readers {
		if x.leadsTo(reader, id) {
			return true
		}
		next = min(next, reader)
	}
	for other := max(next, x.scanned); other < id; other++ {
		if x.live[other] && x.regionOf[other] != x.number &&
			x.needsWhole(x.number, other, x.first) {
			x.after[other] = x.first + 1
		}
	}
	x.scanned = id
	return x.needsWhole(x.number, id, x.first)
}

// leadsTo reports whether it is known without a search that a node needs another's results:
// that it was found from there in [Survey.findReach].
func (s *Survey) leadsTo(from, to graph.NodeID) bool {
	return s.reach[from].enter <= s.reach[to].enter && s.reach[to].enter < s.reach[from].leave
}

// reach is when a depth-first search entered a node, and left it.
type reach struct{ enter, leave int32 }

// findReach searches depth-first from every node, in order of creation, along readers. What it
// enters before it leaves a node can be reached from there, and in models, which are chains of
// layers, little else can.
func (s *Survey) findReach() {
	clock := int32(0)
	var path []graph.NodeID
	next := make([]int32, s.g.Len()) // the reader to go to
	for id := range s.reach {
		if s.reach[id].enter != 0 {
			continue
		}
		for path = append(path, graph.NodeID(id)); len(path) > 0; {
			at := path[len(path)-1]
			if s.reach[at].enter == 0 {
				clock++
				s.reach[at].enter = clock
			}
			k := next[at]
			if int(k) == len(s.readers[at]) {
				s.reach[at].leave = clock + 1
				path = path[:len(path)-1]
				continue
			}
			next[at]++
			if to := s.readers[at][k]; s.reach[to].enter == 0 {
				path = append(path, to)
			}
		}
	}
}

// needsWhole reports whether a node needs something whole of the region's segment
// that begins at first, or something that does: of which after is first plus one.
func (s *Survey) needsWhole(number int32, id, first graph.NodeID) bool {
	n := s.g.Node(id)
	c, member := s.regions[number].cuts[id]
	for i, v := range n.In {
		v = s.source(v)
		if s.after[v.Node.ID] == first+1 {
			return true
		}
		if s.regionOf[v.Node.ID] == number && v.Node.ID >= first &&
			(!member || c.In[i] == 0 || s.regions[number].cuts[v.Node.ID].Sums()) {
			return true
		}
	}
	return false
}
