package bound

import "slices"

// cut is the moment at which an operation starts for the first time, and what the
// engines copy if nothing else is on the device then and nothing runs again.
type cut struct {
	needs         int64 // bytes of the operation, and what is fixed
	before, after int64 // nanoseconds of the operations before it, and of it and the others

	// What running operations again spares of copies in and out, for its time.
	again, againOut knapsack

	in, inBefore, inAfter copies
	out, outBefore        copies
}

// copies is what an engine copies in a time.
type copies struct {
	all  int64    // nanoseconds
	keep knapsack // of these, for bytes that are kept on the device
}

// rest is what is left to copy if so many bytes are kept.
func (c *copies) rest(bytes int64) int64 { return c.all - c.keep.most(bytes) }

// fits reports whether the copies have room in a step of t nanoseconds, with so many
// of them spent on running operations again and so many bytes to keep things in.
func (c *cut) fits(t, again, bytes int64) bool {
	in, out := c.again.most(again), c.againOut.most(again)
	return c.in.rest(bytes)-in <= t &&
		c.inBefore.rest(bytes) <= t-c.after &&
		c.inAfter.rest(bytes)-in <= t-c.before &&
		c.out.rest(bytes)-out <= t &&
		c.outBefore.rest(bytes)-out <= t-c.after
}

// tally collects what a cut consists of.
type tally struct {
	all  int64
	keep []item
}

// add notes a copy that is needed, unless so many bytes are kept.
func (t *tally) add(bytes, time int64) {
	t.all += time
	t.keep = append(t.keep, item{bytes, time})
}

func (t *tally) copies() copies { return copies{t.all, newKnapsack(t.keep)} }

// around reports whether a position lies before a use, behind one, or on one.
func around(uses []int32, at int32) (behind, before, on bool) {
	i, on := slices.BinarySearch(uses, at)
	behind, before = i > 0, i < len(uses)
	if on {
		before = i+1 < len(uses)
	}
	return behind, before, on
}

// cut looks at a position.
func (b *facts) cut(at int32) cut {
	c := cut{needs: b.needs[at], before: b.before[at],
		after: b.before[len(b.seq)] - b.before[at]}
	var in, inBefore, inAfter, out, outBefore tally
	out.all = b.fetches
	var again, againOut []item
	last := int32(-1) // the operation that made the value before
	for i := range b.values {
		v := &b.values[i]
		behind, before, on := around(v.uses, at)
		if v.made < 0 {
			in.all += v.in
			switch {
			case behind || on:
				inBefore.all += v.in
				if before && !on {
					in.add(v.bytes, v.in)
					inAfter.add(v.bytes, v.in)
				}
			case before:
				inAfter.add(v.bytes, v.in)
			}
			continue
		}
		if !behind || !before || on {
			continue
		}
		in.add(v.bytes, v.in)
		inAfter.add(v.bytes, v.in)
		outBefore.add(v.bytes, v.out)
		if !v.fetched {
			out.add(v.bytes, v.out)
		}
		if v.made != last {
			time := b.before[v.made+1] - b.before[v.made]
			again, againOut = append(again, item{time, 0}), append(againOut, item{time, 0})
			last = v.made
		}
		again[len(again)-1].gain += v.in
		againOut[len(againOut)-1].gain += v.out
	}
	b.weights(at, &in, &inBefore, &inAfter, &out)
	c.again, c.againOut = newKnapsack(again), newKnapsack(againOut)
	c.in, c.inBefore, c.inAfter = in.copies(), inBefore.copies(), inAfter.copies()
	c.out, c.outBefore = out.copies(), outBefore.copies()
	return c
}

// weights notes the copies of variables. What the operation itself reads is left out:
// its bytes are among those that it needs.
func (b *facts) weights(at int32, in, inBefore, inAfter, out *tally) {
	// by group: what keeping its parts across the position spares, and keeping all
	part, whole := make([]item, len(b.groups)), make([]item, len(b.groups))
	early := make([]int64, len(b.groups))
	for i := range b.groups {
		whole[i].weight = b.groups[i].bytes
	}
	for i := range b.units {
		u := &b.units[i]
		behind, before, on := around(u.uses, at)
		if on {
			whole[u.group].weight = max(whole[u.group].weight-(u.end-u.begin), 0)
			continue
		}
		if behind {
			whole[u.group].gain += u.in
			early[u.group] += u.in
		}
		if before {
			whole[u.group].gain += u.in
			inAfter.add(u.bytes, u.in)
		}
		if behind && before {
			part[u.group].weight += u.bytes
			part[u.group].gain += u.in
		}
	}
	for i, g := range b.groups {
		in.all += whole[i].gain
		in.keep = append(in.keep, hull(part[i], whole[i])...)
		inBefore.add(whole[i].weight, early[i])
		out.add(whole[i].weight, g.out)
	}
}

// hull is the items that gain, divided, at least what either of two gains.
func hull(part, whole item) []item {
	rest := item{max(whole.weight-part.weight, 0), whole.gain - part.gain}
	if part.gain == 0 || rest.compare(part) > 0 {
		return []item{whole}
	}
	return []item{part, rest}
}
