package distrib

// What follows are capabilities that a policy of a plan may have beside what the plan
// asks of it. A node calls the methods of one policy one at a time. A policy that is used
// by pointer keeps state, and belongs to one node.

// Binder is a policy that must know the nodes and the parameters. A node calls Bind when
// the parameters are attached, before it uses the policy, and again for every new view.
type Binder interface {
	Bind(v View, ps []*Param) error
}

// Snapshots is a [Rule] that remembers what its state was when rows were sent out. Every
// call of Snapshot is undone by one of Release, when the client that has the rows has told
// that it has newer ones, or is gone.
type Snapshots interface {
	Rule
	Release(r Ref, v Version)
	// Full reports that no more should be sent out that need not be.
	Full() bool
}

// Weighing is a [Rule] that adds an update times a number, which follows from when it comes
// alone. So updates may be multiplied by it and added up before they come: see [Pool].
type Weighing interface {
	Rule
	// Weight is that number, of an update that is the at-th, counted from 0, and was computed
	// without delay of those before it.
	Weight(at, delay Version) float32
}

// Keeping is a [Filter] that keeps more than what it holds back of updates, which are the
// outbox's.
type Keeping interface {
	Filter
	// Kept is how many bytes it keeps, and the most that it may come to with the parameters
	// that it was bound to.
	Kept() (now, most int64)
}

// Stateful is a [Rule] that keeps more than the rows themselves, which moves and is saved
// with them. Snapshots are not part of it: what was sent out before counts as just sent.
type Stateful interface {
	Rule
	// StateBytes is the most that the state of all these parameters takes.
	StateBytes(ps []*Param) int64
	// Save appends the state of one row of cols elements, nothing if it has none yet.
	Save(dst []float32, p ParamID, row int32, cols int) []float32
	// Load sets it to what Save appended. The error is a *[ShapeError].
	Load(p ParamID, row int32, cols int, state []float32) error
	// Drop forgets it, when the row belongs to another node.
	Drop(p ParamID, row int32)
}

// Bind tells every policy of the plan that asks for it the nodes and the parameters.
func (p *Plan) Bind(v View, ps []*Param) error {
	for _, policy := range []any{p.Topology, p.Consistency, p.Up, p.DownF, p.Pacer, p.Rule} {
		if b, ok := policy.(Binder); ok {
			if err := b.Bind(v, ps); err != nil {
				return err
			}
		}
	}
	return nil
}

// Followed is a [Pacer] that is told what becomes of entries and messages.
type Followed interface {
	Pacer
	// Released is called with each entry that goes before it is due.
	Released(e *Entry)
	// Acked is called for each call of Sent, when the message has arrived.
	Acked(dest NodeID)
}

// Scored is a [Pacer] whose Better compares numbers, so that a sort need find each but
// once. They change when a message is sent.
type Scored interface {
	Pacer
	// Score is the larger the sooner the entry goes.
	Score(e *Entry, value func(Ref) []float32) float64
}
