package distrib

// param is a parameter on this node.
type param struct {
	id         ParamID
	name       string
	rows, cols int
	kind       Kind // nil: dense numbers
	lane       *lane

	replica  store     // what workers of this node read; nil if there are none
	versions []Version // of its rows
	reads    []read    // of its rows: whether their owner sends them
	lacking  int       // rows that no owner sends yet
	ages     []Clock   // of its rows, where they are asked for each time
	mine     replay    // own updates that rows of an owner may lack

	owner  []NodeID  // of its rows
	slot   []int32   // of its rows in master; -1: another's
	master store     // the rows that this node owns, one after the other; nil where it adds sums up
	folded []Version // how many updates are in them

	kept map[NodeID]*standby // replicas of other nodes' rows

	ledger Ledger
}

// read is the state of a row of an owner at who reads it.
type read uint8

const (
	unasked read = iota
	asked
	live
)

// run is rows of one owner, one after the other.
type run struct {
	owner  NodeID
	row, n int32
}

// runs cuts rows of a parameter by owner.
func (p *param) runs(r Ref) []run {
	var out []run
	for i := r.Row; i < r.Row+r.N; i++ {
		if k := len(out) - 1; k >= 0 && out[k].owner == p.owner[i] {
			out[k].n++
			continue
		}
		out = append(out, run{p.owner[i], i, 1})
	}
	return out
}

// rowsOf is the elements of rows of the replica.
func (p *param) rowsOf(r Ref) []float32 {
	return p.replica.numbers(int(r.Row), int(r.N))
}

// owned is the elements of rows that lie together in the master copy.
func (p *param) owned(row, n int32) []float32 {
	return p.master.numbers(int(p.slot[row]), int(n))
}

// whole is the reference to all rows.
func (p *param) whole() Ref { return Ref{p.id, 0, int32(p.rows)} }

// newStore is so many rows of zeros.
func (p *param) newStore(rows int) store {
	if p.kind == nil {
		return floats{p.cols, make([]float32, rows*p.cols)}
	}
	c := &cells{kind: p.kind, cols: p.cols, rows: make([]Update, rows), own: newBitset(rows),
		zero: p.kind.Zero(p.cols)}
	for i := range c.rows {
		c.rows[i] = c.zero
	}
	c.held = int64(rows * Bytes(c.zero))
	c.peak = c.held
	return c
}

// cost is how many bytes of the outbox an update takes that is pending. A filter makes two
// of one, and of any form.
func (p *param) cost(u Update) int64 {
	if p.lane.plan.Up == nil {
		return int64(Bytes(u))
	}
	most := 4 * int64(Elements(u))
	if p.kind != nil {
		most = p.rowMost()
	}
	return 2 * max(int64(Bytes(u)), most)
}

// fit is how many rows one frame of so many bytes has, one at least.
func (p *param) fit(bytes int) int {
	if p.kind != nil {
		return 1
	}
	return max(1, bytes/(4*p.cols))
}

// framed is about how many bytes a frame of this node's rows is.
func (p *param) framed(row int32, n int) int {
	if p.kind != nil {
		return p.master.get(int(p.slot[row]), 1).WireSize() + headerSize
	}
	return n*p.cols*4 + headerSize
}

// saved copies rows of this node.
func (p *param) saved(row, n int32) SavedRows {
	src, at := p.replica, int(row)
	if p.master != nil {
		src, at = p.master, int(p.slot[row])
	}
	r := SavedRows{Param: p.name, Cols: p.cols, Row: row, N: n}
	src.save(&r, at, int(n))
	if rule, ok := p.lane.plan.Rule.(Stateful); ok {
		for i := row; i < row+n; i++ {
			r.State = append(r.State, rule.Save(nil, p.id, i, p.cols))
		}
	}
	return r
}
