package models

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/kernel/pool"
	"github.com/gomem/gomem/internal/quant"
	"github.com/gomem/gomem/internal/reference"
)

// config is the configuration of a size.
func config(t testing.TB, size string) MoEConfig {
	t.Helper()
	c, err := NewMoEConfig(size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// build is the model of a config that must be good.
func build(t testing.TB, c MoEConfig) *Model {
	t.Helper()
	m, err := MoE(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// machine runs a model step by step.
type machine struct {
	*reference.Machine
	model *Model
}

// newMachine evaluates values of a model, and with updates trains it.
func newMachine(t testing.TB, m *Model, updates bool, values ...graph.Value) machine {
	t.Helper()
	threads := pool.New(1)
	t.Cleanup(threads.Close)
	roots := []graph.NodeID{m.Seed.Node.ID, m.LearningRate.Node.ID, m.Step.Node.ID}
	for _, v := range m.Data {
		roots = append(roots, v.Node.ID)
	}
	for _, v := range values {
		roots = append(roots, v.Node.ID)
	}
	if updates {
		for _, o := range m.Objectives {
			for _, n := range o.Updates {
				roots = append(roots, n.ID)
			}
		}
	}
	for _, n := range m.Graph.Variables() {
		if !n.State {
			roots = append(roots, n.ID)
		}
	}
	r, err := reference.New(m.Graph, m.Graph.Ancestors(roots), threads)
	if err != nil {
		t.Fatal(err)
	}
	x := machine{r, m}
	formats := ops.Packings(m.Graph)
	for _, n := range m.Graph.Variables() {
		switch format := formats[n]; {
		case n.State:
		case format != "":
			x.pack(t, n, format)
		default:
			x.fill(n)
		}
	}
	return x
}

// fill draws a variable's values. An expert has the same ones whether its
// weights are a variable or a part of one.
func (x machine) fill(n *graph.Node) {
	data := x.Value(n.Value(0)).F32()
	if !strings.Contains(n.Name, "/experts/") {
		draw(data, n.Init, seeded(n.Name))
		return
	}
	experts := n.Out[0].Size(0)
	for i := range experts {
		size := len(data) / experts
		name := strings.Replace(n.Name, "/experts/", fmt.Sprintf("/expert%d/", i), 1)
		draw(data[i*size:(i+1)*size], n.Init, seeded(name))
	}
}

// pack draws the values of a matrix whose rows are packed.
func (x machine) pack(t testing.TB, n *graph.Node, format string) {
	t.Helper()
	f, err := quant.Parse(format)
	if err != nil {
		t.Fatal(err)
	}
	block, err := f.RowBytes(f.Block())
	if err != nil {
		t.Fatal(err)
	}
	data, rows := x.Value(n.Value(0)).Data, n.Out[0].Size(0)
	size, header := len(data)/rows, f.Header()
	row := make([]float32, (size-header)/(int(block)-header)*f.Block())
	rng := seeded(n.Name)
	for i := range rows {
		draw(row, graph.Init{Dist: graph.Normal, Scale: 0.02}, rng)
		f.Pack(data[i*size:(i+1)*size], row)
	}
}

// seeded makes a variable's values depend on its name alone.
func seeded(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(1, h.Sum64()))
}

func draw(x []float32, init graph.Init, rng *rand.Rand) {
	for i, part := range init.Each {
		n := len(x) / len(init.Each)
		draw(x[i*n:(i+1)*n], part, rng)
	}
	for i := range x {
		switch {
		case init.Each != nil:
			return
		case init.Dist == graph.Normal || init.Dist == graph.Truncated:
			x[i] = float32(init.Scale * rng.NormFloat64())
		case init.Dist == graph.Positive:
			x[i] = float32(init.Scale * rng.Float64())
		case init.Dist == graph.Uniform:
			x[i] = float32(init.Scale * (2*rng.Float64() - 1))
		default:
			x[i] = float32(init.Scale)
		}
	}
}

// step feeds a batch that depends on the step and runs.
func (x machine) step(t testing.TB, step int) {
	t.Helper()
	m := x.model
	copyTask(x.Value(m.Data[0]), x.Value(m.Data[1]), m.Classes, uint64(step))
	copy(x.Value(m.Seed).I32(), []int32{7, int32(step)})
	x.Value(m.LearningRate).F32()[0] = m.Schedule.At(step)
	x.Value(m.Step).F32()[0] = float32(step + 1)
	if err := x.Step(); err != nil {
		t.Fatal(err)
	}
}

func (x machine) scalar(v graph.Value) float64 { return float64(x.Value(v).F32()[0]) }

// copyTask is texts of a few frequent words of random length, to be repeated.
func copyTask(source, target tensor.View, vocab int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	src, dst := source.I32(), target.I32()
	clear(src)
	clear(dst)
	n := source.Type.Size(1)
	for row := 0; row < len(src); row += n {
		for i := range n/2 + rng.IntN(n/2) {
			src[row+i] = int32(1 + rng.IntN(min(vocab-1, 12)))
			dst[row+i] = src[row+i]
		}
	}
}
