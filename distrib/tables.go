package distrib

import (
	"fmt"
	"slices"
)

// tables are the parameters of a node, and the plans that they are by.
type tables struct {
	params []*param
	lanes  []*lane
}

// value is the rows of the replica, nil if there is none.
func (t *tables) value(r Ref) []float32 {
	if p := t.params[r.Param]; p.replica != nil {
		return p.rowsOf(r)
	}
	return nil
}

// kindOfParam is the kind of a parameter's rows, nil if they are dense numbers.
func (t *tables) kindOfParam(id ParamID) Kind { return t.params[id].kind }

// kinds are those of all parameters.
func (t *tables) kinds() []Kind {
	var all []Kind
	for _, p := range t.params {
		if p.kind != nil && !slices.ContainsFunc(all, func(k Kind) bool {
			return k.Name() == p.kind.Name()
		}) {
			all = append(all, p.kind)
		}
	}
	return all
}

// resolve finds the rows that a reference names.
func (t *tables) resolve(r Ref) (*param, Ref, error) {
	if r.Param < 0 || int(r.Param) >= len(t.params) {
		return nil, r, fmt.Errorf("distrib: there is no parameter %d", r.Param)
	}
	p := t.params[r.Param]
	if r.N == 0 && r.Row == 0 {
		r.N = int32(p.rows)
	}
	if r.Row < 0 || r.N <= 0 || int(r.Row) > p.rows || int(r.N) > p.rows-int(r.Row) {
		return nil, r, fmt.Errorf("distrib: rows [%d, +%d) of %s, which has %d",
			r.Row, r.N, p.name, p.rows)
	}
	return p, r, nil
}

// weighed is an update times a number.
func (t *tables) weighed(f Frame, by float32) Update {
	p := t.params[f.Ref.Param]
	n := int(f.Ref.N)
	if n == 0 {
		n = p.rows
	}
	d := make(Dense, n*p.cols)
	f.U.AddTo(d, p.cols, by)
	return d
}

// shapes gives the shapes of the parameters, which do not change once they are attached.
func (t *tables) shapes(id ParamID) (rows, cols int, ok bool) {
	if id < 0 || int(id) >= len(t.params) {
		return 0, 0, false
	}
	p := t.params[id]
	return p.rows, p.cols, true
}

// declared is the parameters as policies know them.
func (t *tables) declared() []*Param {
	var ps []*Param
	for _, p := range t.params {
		ps = append(ps, &Param{Name: p.name, Rows: p.rows, Cols: p.cols, Kind: p.kind})
	}
	return ps
}
