package thesis

import (
	"context"
	"time"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
)

// parameters is table 6.1.
func (r *runner) parameters(context.Context) (Table, error) {
	t := Table{Title: "Table 6.1: parameters", Header: []string{"model", "thesis", "gomem"}}
	for _, row := range []struct {
		name, thesis string
		workload
		n int
	}{
		{"Transformer", "61 million", transformer, 1},
		{"Transformer w/ MoE, 32 experts", "> 800 million", moe, 4},
		{"ResNet-152", "60 million", resnet, 1},
		{"ResNet-1916", "697 million", deepResNet(map[string]int{full: 1}), 600},
		{"WGAN-GP", "17 million", wgan, 1},
		{"DeepSpeech", "47 million", deepspeech, 165},
	} {
		m, err := row.build(full, row.n)
		if err != nil {
			return t, err
		}
		t.row(row.name, row.thesis, m.Graph.Parameters())
	}
	return t, nil
}

// statistics is table 6.2, with the time to plan.
func (r *runner) statistics(ctx context.Context) (Table, error) {
	t := Table{
		Title: "Table 6.2: graphs of a training step (of the critic for WGAN-GP), in the fine " +
			"lowering",
		Header: []string{"model", "thesis: depth", "nodes", "a level", "in-degree", "gomem: depth",
			"nodes", "a level", "in-degree", "plan ms"},
	}
	t.note("The thesis counts TensorFlow's nodes, variables, constants and their reads among " +
		"them; gomem those that execute. Planning includes verification.")
	for _, row := range []struct {
		name             string
		depth, nodes     int
		perLevel, degree float64
		workload
		n int
	}{
		{"Transformer", 2731, 7782, 2.8, 2.0, transformer, 352},
		{"Transformer w/ MoE, stacked", 2714, 8392, 3.1, 1.8, stackedMoE(), 4},
		{"the same, a variable an expert", 2714, 8392, 3.1, 1.8, moe, 4},
		{"ResNet-152", 1054, 5783, 5.5, 1.9, resnet, 57},
		{"ResNet-1916", 12814, 68699, 5.4, 1.9, deepResNet(map[string]int{full: 16}), 600},
		{"WGAN-GP (critic)", 4093, 15112, 3.7, 2.0, wgan, 64},
		{"DeepSpeech (unrolled)", 140, 549, 3.9, 1.6, deepspeech, 165},
	} {
		r.progress("planning %s", row.name)
		m, err := row.build(full, row.n)
		if err != nil {
			return t, err
		}
		s := statisticsOf(m)
		began := time.Now()
		if _, err := planner.Compile(ctx, m.Graph, objective(m), placed(20)); err != nil {
			return t, err
		}
		t.row(row.name, row.depth, row.nodes, row.perLevel, row.degree, s.depth, s.nodes,
			float64(s.nodes)/float64(s.depth), float64(s.edges)/float64(s.nodes),
			float64(time.Since(began).Milliseconds()))
	}
	return t, nil
}

// stackedMoE keeps a layer's experts in one variable, as TensorFlow does.
func stackedMoE() workload {
	w := moe
	w.build = func(size string, n int) (*models.Model, error) {
		c, err := models.NewMoEConfig(size)
		c.Pairs, c.Stacked, c.Fine = n, true, true
		return model(c, err, models.MoE)
	}
	return w
}

// shape is a graph in numbers: nodes that execute in a training step, and the
// edges between them.
type shape struct{ depth, nodes, edges int }

func statisticsOf(m *models.Model) (s shape) {
	t := objective(m)
	roots := append([]graph.NodeID{t.Fetches[0].Node.ID}, t.Updates...)
	live := m.Graph.Ancestors(roots)
	depth := make([]int, m.Graph.Len())
	for _, n := range m.Graph.Nodes() {
		if !live[n.ID] || n.Leaf() {
			continue
		}
		for _, v := range n.In {
			depth[n.ID] = max(depth[n.ID], depth[v.Node.ID])
			if n.Executes() {
				s.edges++
			}
		}
		if n.Executes() {
			s.nodes++
			depth[n.ID]++
		}
		s.depth = max(s.depth, depth[n.ID])
	}
	return s
}
