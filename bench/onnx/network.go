package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data/arrays"
	"github.com/gomem/gomem/front/onnx"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	format "github.com/gomem/gomem/internal/onnx"
	"github.com/gomem/gomem/nn"
)

// network is an exported network with what PyTorch computes of it.
type network struct {
	path   string
	file   int // nodes in the file
	arrays *arrays.Set
	net    *onnx.Net

	model   *nn.Model
	nodes   int // of the graph, without gradients
	feeds   gomem.Feeds
	outputs []graph.Value
	wrt     []graph.Value // parameters that there is a gradient to compare of
	grads   []graph.Value
}

// title is a file's name without its directory and suffix.
func title(path string) string { return strings.TrimSuffix(filepath.Base(path), ".onnx") }

// open reads a file and builds its graph.
func open(path string) (*network, error) {
	n := &network{path: path}
	var err error
	n.arrays, err = arrays.Open("npz:" + strings.TrimSuffix(path, ".onnx") + ".npz")
	if err != nil {
		return nil, err
	}
	sizes, err := n.sizes()
	if err != nil {
		return nil, err
	}
	if n.net, err = onnx.Open(path, onnx.Options{Sizes: sizes}); err != nil {
		return nil, err
	}
	return n, n.build()
}

// get is an array that has to be there.
func (n *network) get(name string) (tensor.View, error) {
	v, ok := n.arrays.Get(name)
	if !ok {
		return v, fmt.Errorf("%s has no array %q: %s", n.arrays.Spec, name, n.arrays)
	}
	return v, nil
}

// sizes are those of the axes that the file leaves open.
func (n *network) sizes() (map[string]int, error) {
	f, err := format.Open(n.path)
	if err != nil {
		return nil, err
	}
	n.file = len(f.Graph.Nodes)
	sizes := map[string]int{}
	for _, in := range f.Graph.Inputs {
		x, err := n.get("in." + in.Name)
		if err != nil {
			return nil, err
		}
		for i, d := range in.Shape {
			if d.Size < 0 {
				sizes[fmt.Sprintf("%s.%d", in.Name, i)] = x.Type.Size(i)
			}
		}
	}
	return sizes, nil
}

// build makes the graph: the network, and the gradients of the weighted sum of its outputs.
func (n *network) build() error {
	n.model, n.feeds = nn.NewModel(), gomem.Feeds{}
	in := n.net.Inputs(n.model)
	before := n.model.Graph.Len()
	n.outputs = n.net.Apply(n.model.Evaluation(), in...)
	n.nodes = n.model.Graph.Len() - before
	if err := n.model.Graph.Err(); err != nil {
		return err
	}
	for _, v := range in {
		x, err := n.get("in." + v.Node.Name)
		if err != nil {
			return err
		}
		n.feeds[v] = x
	}
	return n.differentiate()
}

func (n *network) differentiate() error {
	g := n.model.Graph
	var sum graph.Value
	for i, y := range n.outputs {
		weight, err := n.get(fmt.Sprintf("weight.%d", i))
		if err != nil {
			return err
		}
		part := ops.Sum(ops.Mul(y, g.Constant("weight", weight)))
		if i > 0 {
			part = ops.Add(sum, part)
		}
		sum = part
	}
	byName := map[string]graph.Value{}
	for _, p := range n.model.Parameters() {
		byName[p.Node.Name] = p
	}
	for _, a := range n.arrays.Arrays {
		name, ok := strings.CutPrefix(a.Name, "grad.")
		if !ok {
			continue
		}
		p := byName[name]
		if !p.Valid() {
			return fmt.Errorf("the network has no parameter %q", name)
		}
		n.wrt = append(n.wrt, p)
	}
	n.grads = autodiff.Grad(sum, n.wrt...)
	for i, d := range n.grads {
		if !d.Valid() && g.Err() == nil {
			return fmt.Errorf("parameter %q has no gradient", n.wrt[i].Node.Name)
		}
	}
	return g.Err()
}

// elements are those of the parameters that gradients are compared of.
func (n *network) elements() (sum int) {
	for _, p := range n.wrt {
		sum += p.Type().Elems()
	}
	return sum
}
