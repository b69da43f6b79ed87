package order

import (
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/planner/program"
)

// Peak is the most bytes that are live on the device at once in the order of a
// program, if nothing is swapped or computed again. No plan that keeps all values has
// a lower peak.
func Peak(p *program.Program) int64 { return NewAccount(p).Peak(p.Order) }

// Peak is the most bytes that are live at once in an order of all live operations.
func (a *Account) Peak(order []graph.NodeID) int64 {
	s := a.begin()
	for _, id := range order {
		s.run(id)
	}
	return s.peak
}

// state is the load of the device in the course of an order.
type state struct {
	*Account
	left       []int32 // by value: readers to come
	live, peak int64   // bytes: present, and the most so far
}

func (a *Account) begin() *state {
	s := &state{Account: a, left: append([]int32(nil), a.Readers...)}
	s.live, s.peak = a.Fixed, a.Fixed
	return s
}

// fed is what the inputs take that a node is the first to read.
func (s *state) fed(id graph.NodeID) int64 {
	var bytes int64
	for _, v := range s.Reads[id] {
		if s.Input[v] && s.left[v] == s.Readers[v] {
			bytes += s.Bytes[v]
		}
	}
	return bytes
}

// need is how many bytes more are live while a node runs, and leaves how many more,
// or fewer, after it.
func (s *state) need(id graph.NodeID) (need, leaves int64) {
	fed := s.fed(id)
	need = s.Makes[id] + s.Scratch[id] + s.Staged[id] + fed
	leaves = s.Keeps[id] + fed
	for _, v := range s.Reads[id] {
		if s.left[v] == 1 {
			leaves -= s.Bytes[v]
		}
	}
	for _, v := range s.Over[id] {
		if s.left[v] == 1 {
			return need - s.Bytes[v], leaves
		}
	}
	return need, leaves
}

// run executes a node.
func (s *state) run(id graph.NodeID) {
	if !s.Runs[id] {
		return
	}
	need, leaves := s.need(id)
	s.peak = max(s.peak, s.live+need)
	s.live += leaves
	for _, v := range s.Reads[id] {
		s.left[v]--
	}
}
