package thesis

import (
	"context"
	"time"

	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
)

// parameters is table 6.1.
func (r *runner) parameters(context.Context) (Table, error) {
	t := Table{Title: "Table 6.1: parameters", Header: []string{"model", "thesis", "gomem"}}
	for _, row := range []struct {
		name, thesis string
		build        func() (*models.Model, error)
	}{
		{"Transformer", "61 million", func() (*models.Model, error) {
			return transformer.build(full,
				1)
		}},
		{"Transformer w/ MoE, 32 experts", "> 800 million", func() (*models.Model, error) { return moe.build(full, 4) }},
		{"ResNet-152", "60 million", func() (*models.Model, error) {
			return resnet.build(full,
				1)
		}},
		{"ResNet-1916", "697 million", func() (*models.Model, error) { return deepResNet(map[string]int{full: 1}).build(full, 600) }},
		{"WGAN-GP", "17 million", func() (*models.Model, error) { return wgan.build(full, 1) }},
		{"DeepSpeech", "47 million", func() (*models.Model, error) {
			return deepspeech.build(full,
				165)
		}},
	} {
		m, err := row.build()
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
		model            func() (*models.Model, error)
	}{
		{"Transformer", 2731, 7782, 2.8, 2.0, func() (*models.Model, error) { return transformer.build(full, 352) }},
		{"Transformer w/ MoE, stacked", 2714, 8392, 3.1, 1.8, stackedMoE},
		{"the same, a variable an expert", 2714, 8392, 3.1, 1.8, func() (*models.Model, error) { return moe.build(full, 4) }},
		{"ResNet-152", 1054, 5783, 5.5, 1.9, func() (*models.Model, error) { return resnet.build(full, 57) }},
		{"ResNet-1916", 12814, 68699, 5.4, 1.9, func() (*models.Model, error) { return deepResNet(map[string]int{full: 16}).build(full, 600) }},
		{"WGAN-GP (critic)", 4093, 15112, 3.7, 2.0, func() (*models.Model, error) { return wgan.build(full, 64) }},
		{"DeepSpeech (unrolled)", 140, 549, 3.9, 1.6, func() (*models.Model, error) { return deepspeech.build(full, 165) }},
	} {
		r.progress("planning %s", row.name)
		m, err := row.model()
		if err != nil {
			return t, err
		}
		s := statisticsOf(m)
		began := time.Now()
		if _, err := compile.Compile(ctx, m.Graph, objective(m), placed(20)); err != nil {
			return t, err
		}
		t.row(row.name, row.depth, row.nodes, row.perLevel, row.degree, s.depth, s.nodes,
			float64(s.nodes)/float64(s.depth), float64(s.edges)/float64(s.nodes), float64(time.Since(began).Milliseconds()))
	}
	return t, nil
}

// stackedMoE keeps a layer's experts in one variable, as TensorFlow does.
func stackedMoE() (*models.Model, error) {
	c, err := models.NewMoEConfig(full)
	c.Pairs, c.Stacked, c.Fine = 4, true, true
	return model(c, err, models.MoE)
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
