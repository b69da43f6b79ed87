package distrib

// AdaRevision is McMahan and Streeter's rule (NIPS 2014) on versioned rows, as Bösen has
// it: AdaGrad that takes back, of each coordinate, what its steps would have been smaller
// by had it known the gradients that were under way. An update is a gradient, or the sum
// of some that were computed from values of the same version, its Tag.
//
// For every version of a row that some client has, the owner remembers the sum of
// gradients at that time. There are at most Snapshots of them: at the cap [Full] asks that
// nothing voluntary be sent, and what must be sent makes room by forgetting the oldest;
// updates with its tag are then taken for newer than they are, towards AdaGrad, which is
// counted in Forgotten.
type AdaRevision struct {
	Alpha     float32 // the step size: 0.08 for matrix factorisation, 1 for regression
	Snapshots int     // at most, in rows; 0: four for every row that has had an update
	Forgotten int64   // how many were

	versions
	rows  rows[revision]
	live  int
	order []snapshotOf // oldest first; some may be released
}

// revision is a row: sums of gradients, and z and z' of the paper, for each element.
type revision struct {
	sum, z, top []float32
	base        []float32 // the sum that a row came with, nil: 0
	born        Version   // of the parameter when the row had its first update
	changed     Version   // and its last
	snaps       []*snapshot
}

// snapshot is a row's sum of gradients since version at, for so many holders.
type snapshot struct {
	at   Version
	refs int
	sum  []float32
}

type snapshotOf struct {
	rowOf
	at Version
}

// Apply takes a step along a gradient computed from the version that is its tag. Elements
// whose gradient is 0 stay.
func (a *AdaRevision) Apply(w []float32, cols int, e *Entry) Version {
	v := a.next(e.Ref.Param) + 1
	for i, g := range a.rows.split(w, cols, e) {
		s := a.rows.at(e.Ref.Param, e.Ref.Row+int32(i))
		if s.sum == nil {
			s.start(cols, v)
		}
		a.revise(s, w[i*cols:(i+1)*cols], g, s.seen(e.Tag))
		s.changed = v
	}
	return v
}

func (s *revision) start(cols int, v Version) {
	all := make([]float32, 3*cols)
	s.sum, s.z, s.top = all[:cols:cols], all[cols:2*cols:2*cols], all[2*cols:]
	for i := range cols {
		s.z[i], s.top[i] = 1, 1
	}
	s.born = v
}

// seen is the sum of gradients that a value of a version had in it; nil: 0. A value whose
// version nobody followed is taken for the latest.
func (s *revision) seen(tag Version) []float32 {
	if tag == 0 {
		return s.sum
	}
	if tag < s.born {
		return s.base
	}
	if i := s.index(tag); i >= 0 {
		return s.snaps[i].sum
	}
	if len(s.snaps) > 0 {
		return s.snaps[0].sum
	}
	return s.sum
}

// index is where the snapshot is that was valid at a version; -1 if it is not there.
func (s *revision) index(v Version) int {
	i := len(s.snaps) - 1
	for i >= 0 && s.snaps[i].at > v {
		i--
	}
	return i
}

// revise folds a gradient into a row's elements.
func (a *AdaRevision) revise(s *revision, w, g, seen []float32) {
	for i, g := range g {
		if g == 0 {
			continue
		}
		missed := s.sum[i]
		if seen != nil {
			missed -= seen[i]
		}
		before := a.Alpha / sqrt(s.top[i])
		s.z[i] += float32(g*g) + float32(float32(2*g)*missed)
		s.top[i] = max(s.top[i], s.z[i])
		rate := a.Alpha / sqrt(s.top[i])
		w[i] += float32((before-rate)*missed) - float32(rate*g)
		s.sum[i] += g
	}
}

// Snapshot remembers the sums of gradients of rows that are sent out, once for all who get
// the same, and returns the parameter's version: one more than the updates it has had,
// since tag 0 means that nobody follows.
func (a *AdaRevision) Snapshot(r Ref) Version {
	v := a.versions.Snapshot(r) + 1
	a.each(r, func(at rowOf, s *revision) {
		n := len(s.snaps)
		if n > 0 && s.snaps[n-1].at >= s.changed {
			s.snaps[n-1].refs++
			return
		}
		if a.Full() {
			a.forget()
		}
		s.snaps = append(s.snaps, &snapshot{v, 1, append([]float32(nil), s.sum...)})
		a.order = append(a.order, snapshotOf{at, v})
		a.live++
	})
	return v
}

// each calls f for the rows that have had an update.
func (a *AdaRevision) each(r Ref, f func(rowOf, *revision)) {
	from, to := r.Row, r.Row+r.N
	if r.N == 0 {
		from, to = 0, a.beyond(r.Param)
	}
	for row := from; row < to; row++ {
		if s, ok := a.rows.have(r.Param, row); ok {
			f(rowOf{r.Param, row}, s)
		}
	}
}

// beyond is more than the last row of a parameter that has had an update.
func (a *AdaRevision) beyond(p ParamID) int32 {
	var n int32
	for at := range a.rows.of {
		if at.param == p {
			n = max(n, at.row+1)
		}
	}
	return n
}

// Release is called when one who got rows of a version does not compute from them any
// more.
func (a *AdaRevision) Release(r Ref, v Version) {
	a.each(r, func(_ rowOf, s *revision) {
		i := s.index(v)
		if v < s.born || i < 0 {
			return
		}
		if s.snaps[i].refs--; s.snaps[i].refs == 0 {
			a.remove(s, i)
		}
	})
	if len(a.order) > 2*a.live+16 {
		a.tidy()
	}
}

func (a *AdaRevision) remove(s *revision, i int) {
	s.snaps = append(s.snaps[:i], s.snaps[i+1:]...)
	a.live--
}

// find is where the snapshot is in its row; -1 if it was released.
func (a *AdaRevision) find(o snapshotOf) (*revision, int) {
	s, ok := a.rows.have(o.param, o.row)
	if !ok {
		return nil, -1
	}
	if i := s.index(o.at); i >= 0 && s.snaps[i].at == o.at {
		return s, i
	}
	return nil, -1
}

// tidy forgets in which order the released ones were made.
func (a *AdaRevision) tidy() {
	keep := a.order[:0]
	for _, o := range a.order {
		if _, i := a.find(o); i >= 0 {
			keep = append(keep, o)
		}
	}
	a.order = keep
}

// forget drops the oldest snapshot.
func (a *AdaRevision) forget() {
	for len(a.order) > 0 {
		s, i := a.find(a.order[0])
		a.order = a.order[1:]
		if i >= 0 {
			a.remove(s, i)
			a.Forgotten++
			return
		}
	}
}

func (a *AdaRevision) limit() int {
	if a.Snapshots > 0 {
		return a.Snapshots
	}
	return 4 * len(a.rows.of)
}

// Full reports whether there are as many snapshots as there may be.
func (a *AdaRevision) Full() bool { return a.live > 0 && a.live >= a.limit() }

// Live is how many snapshots there are.
func (a *AdaRevision) Live() int { return a.live }

// StateBytes is four numbers an element, and the snapshots: four rows for each, or so
// many of the longest.
func (a *AdaRevision) StateBytes(ps []*Param) int64 {
	if a.Snapshots == 0 {
		return stateBytes(ps, 4+4, 0)
	}
	widest := 0
	for _, p := range ps {
		widest = max(widest, p.Cols)
	}
	return stateBytes(ps, 4, 0) + 4*int64(a.Snapshots)*int64(widest)
}

// Save appends the row's sum of gradients, z and z'.
func (a *AdaRevision) Save(dst []float32, p ParamID, row int32, cols int) []float32 {
	if s, ok := a.rows.have(p, row); ok {
		dst = append(append(append(dst, s.sum...), s.z...), s.top...)
	}
	return dst
}

// Load sets them.
func (a *AdaRevision) Load(p ParamID, row int32, cols int, state []float32) error {
	if len(state) == 0 {
		a.Drop(p, row)
		return nil
	}
	if err := stateFits("AdaRevision", len(state), 3*cols, cols); err != nil {
		return err
	}
	a.Drop(p, row)
	s := a.rows.at(p, row)
	v := a.next(p) + 1
	s.start(cols, v)
	copy(s.sum, state)
	s.base = append([]float32(nil), s.sum...)
	copy(s.z, state[cols:])
	copy(s.top, state[2*cols:])
	s.changed = v
	return nil
}

// Drop forgets a row, and its snapshots.
func (a *AdaRevision) Drop(p ParamID, row int32) {
	if s, ok := a.rows.have(p, row); ok {
		a.live -= len(s.snaps)
		a.rows.Drop(p, row)
	}
}
