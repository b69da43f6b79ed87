package distrib

import "slices"

// vectorClock knows how far each of some members is: all updates of member q that are
// stamped less than of(q) have been seen. It only ever goes forward.
type vectorClock struct {
	ids []NodeID // ascending
	at  []Clock
}

func newVectorClock(ids []NodeID, start Clock) *vectorClock {
	v := &vectorClock{ids: slices.Clone(ids), at: make([]Clock, len(ids))}
	slices.Sort(v.ids)
	for i := range v.at {
		v.at[i] = start
	}
	return v
}

// of is the clock of a member; who is none has seen everything.
func (v *vectorClock) of(id NodeID) Clock {
	if i, ok := slices.BinarySearch(v.ids, id); ok {
		return v.at[i]
	}
	return endOfTime
}

// endOfTime is a clock that nobody comes to.
const endOfTime = Clock(1) << 62

// advance moves a member forward and reports whether the least clock moved with it, by
// however much. An older clock than what is known changes nothing.
func (v *vectorClock) advance(id NodeID, c Clock) bool {
	i, ok := slices.BinarySearch(v.ids, id)
	if !ok || c <= v.at[i] {
		return false
	}
	before := v.min()
	v.at[i] = c
	return v.min() > before
}

// min is the least clock, [endOfTime] if there are no members.
func (v *vectorClock) min() Clock {
	least := endOfTime
	for _, c := range v.at {
		least = min(least, c)
	}
	return least
}

// behind appends the members that have not reached a clock.
func (v *vectorClock) behind(dst []NodeID, c Clock) []NodeID {
	for i, at := range v.at {
		if at < c {
			dst = append(dst, v.ids[i])
		}
	}
	return dst
}
