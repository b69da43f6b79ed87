package search

// setSpare has bytes be left free while operations run, by node, as far as the budget has them
// beside what an operation reads and makes: more would only find no plan.
func (e *evaluator) setSpare(byNode []int64) {
	if byNode == nil {
		return
	}
	e.spare = make([]int64, len(e.ops))
	for i := range e.ops {
		o := &e.ops[i]
		most := e.budget.Device - o.scratch
		for _, v := range o.in {
			most -= e.bytes[v]
		}
		for _, v := range o.out {
			most -= e.bytes[v]
		}
		e.spare[i] = max(0, min(byNode[o.node.ID], most))
	}
}

// spareAt is the bytes that are left free at a position: what an operation has spare belongs to
// the executions again before it, too.
func (e *evaluator) spareAt(p int32) int64 {
	if e.spare == nil {
		return 0
	}
	return e.spare[anchor(e.key[p])]
}

// spares reports whether what leaves so much free, by operation, leaves all that must be.
func (e *evaluator) spares(spare []int64) bool {
	for i, bytes := range e.spare {
		if bytes > 0 && (spare == nil || spare[i] < bytes) {
			return false
		}
	}
	return true
}
