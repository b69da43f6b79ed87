package onnx

import (
	"fmt"
	"slices"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/control"
	"github.com/gomem/gomem/internal/onnx"
)

// exportedScan is a Scan. What is the same in each iteration its body reads by the names that it
// has outside.
func exportedScan(x exported) []string {
	if field(x.Op, "Counted").Bool() {
		return x.none("with a count")
	}
	body := field(x.Op, "Body").Interface().(*control.Body)
	size := func(name string) int { return int(field(x.Op, name).Int()) }
	same, states, xs := size("Same"), size("States"), size("Xs")
	changing := x.in[same : same+states+xs]
	inner := x.within(body, func(i int) bool { return i < same || i >= same+len(changing) })
	written, err := inner.body(body)
	if err != nil {
		return x.none(err.Error())
	}
	a := attributes{"body": written, "num_scan_inputs": xs}
	if field(x.Op, "Reverse").Bool() {
		a["scan_input_directions"] = slices.Repeat([]int{1}, xs)
		a["scan_output_directions"] = slices.Repeat([]int{1}, len(written.Outputs)-states)
	}
	var out []string
	for range written.Outputs {
		out = append(out, x.name(x.Node.Name))
	}
	x.put("Scan", a, changing, out...)
	return out
}

// within is an exporter of a body: of its operands, those that are outer have the names that they
// have outside, and the others are its inputs. No name is there twice, within or outside.
func (x exported) within(b *control.Body, outer func(i int) bool) *exporter {
	operands := b.Operands()
	e := &exporter{g: operands[0].Graph(), names: map[graph.Value]string{}, taken: x.taken,
		unknown: x.unknown, file: onnx.Graph{Name: x.name("body")}}
	for i, v := range operands {
		if outer(i) {
			e.names[v] = x.in[i]
			continue
		}
		e.names[v] = e.name(fmt.Sprintf("%s_operand%d", x.Node.Name, i))
		e.file.Inputs = append(e.file.Inputs, described(e.names[v], v.Type()))
	}
	return e
}

// body writes a body's graph.
func (e *exporter) body(b *control.Body) (*onnx.Graph, error) {
	var roots []graph.NodeID
	for _, v := range b.Results() {
		roots = append(roots, v.Node.ID)
	}
	live := e.g.Ancestors(roots)
	if err := e.constants(live); err != nil {
		return nil, err
	}
	for _, n := range e.g.Nodes() {
		if live[n.ID] && !n.Leaf() {
			e.node(n)
		}
	}
	for _, v := range b.Results() {
		name := e.made("Identity", nil, e.names[v])
		e.file.Outputs = append(e.file.Outputs, described(name, v.Type()))
	}
	return &e.file, nil
}
