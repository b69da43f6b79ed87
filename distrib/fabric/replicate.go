package fabric

import "math"

// Bound is how far apart a server and its replica may be. The zero bound is none.
type Bound struct {
	Updates  int     // that the replica lacks, at most; 0: any
	Norm     float64 // of the difference of their models, at most; 0: any
	Momentum float64 // of the server's rule, γ; for a bound by norms
}

// Holds reports whether a replica may lack updates with these norms, when the server's last step
// before them had a norm of h.
func (b Bound) Holds(h float64, norms []float64) bool {
	return (b.Updates == 0 || len(norms) <= b.Updates) &&
		(b.Norm == 0 || b.Distance(h, norms) <= b.Norm)
}

// Distance is what the models of a server and of a replica that lacks updates can differ by
// (equation 11 with its constants), when the server's last step before them had a norm of h.
func (b Bound) Distance(h float64, norms []float64) float64 {
	m := len(norms)
	power := func(k int) float64 { return math.Pow(b.Momentum, float64(k)) }
	d := h * b.Momentum * (1 - power(m)) / (1 - b.Momentum)
	for j, norm := range norms {
		d += norm * (1 - power(m-j)) / (1 - b.Momentum)
	}
	return d
}

// step is the norm of the server's step at most, after one of norm h and an update.
func (b Bound) step(h, norm float64) float64 { return float64(b.Momentum*h) + norm }

// Replication is what a batch sends to the replicas.
type Replication struct {
	Updates   []ID // that they have got by the end of the batch, in order
	Groups    []Group
	Transfers []Transfer
	Punted    int     // updates that they lack still
	Distance  float64 // bound of the difference of the models then; by norms
	Delay     float64 // seconds that the servers' last transfer waits for it
}

// lagging are updates that a replica lacks.
type lagging struct {
	updates []Update
	step    float64 // norm of the server's last step before them, at most
}

// norms are those of the updates from one on.
func (l *lagging) norms(from int) []float64 {
	var all []float64
	for _, u := range l.updates[from:] {
		all = append(all, u.Norm)
	}
	return all
}

// took is what is lacking after the first ones have arrived.
func (l *lagging) took(count int, b Bound) {
	for _, u := range l.updates[:count] {
		l.step = b.step(l.step, u.Norm)
	}
	l.updates = append([]Update(nil), l.updates[count:]...)
}

// replication is section 5.3 for one batch.
type replication struct {
	g     *grouping // of what the replicas lack, to them
	cut   cutting
	bound Bound
	lack  *lagging
}

// replicated sends a part of what the replicas lack to them on what the servers' transfers have
// left of the network; all of it that arrives until the batch's end, and more if the bound asks for
// it: then it reports from when on the servers' last transfer may be under way.
func (r *replication) replicated(n *Network, end float64, demand bool) (groups int, wait float64) {
	s := &Schedule{}
	m := n.mark()
	r.g.lay(n, r.cut, r.cut.direct+len(r.cut.groups), &teller{s})
	n.back(m)
	at, arrived := 0, 0.0 // updates of the groups, and when all of those have arrived
	for _, x := range s.Groups {
		fits := max(arrived, x.Arrives) <= end
		near := !demand || r.bound.Holds(r.stepAt(at), r.lack.norms(at))
		if math.IsInf(x.Arrives, 1) || !fits && near {
			break
		}
		arrived = max(arrived, x.Arrives)
		at += len(x.Updates)
		groups++
	}
	if arrived > end {
		wait = arrived
	}
	return groups, wait
}

// stepAt is the norm of the server's last step at an update, at most.
func (r *replication) stepAt(at int) float64 {
	h := r.lack.step
	for _, u := range r.lack.updates[:at] {
		h = r.bound.step(h, u.Norm)
	}
	return h
}
