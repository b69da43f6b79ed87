package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/planner"
)

// record is what an execution read and made.
type record struct {
	metadata map[string]string // kind and configuration of the model
	// of the tensors, in order: parameter/…, input/…, noise/…, gradient/…
	names   []string
	tensors map[string]tensor.View
	loss    float32

	gradients int // parameters that the loss is differentiated by
	elements  int // of them in all
}

func (r *record) add(name string, v tensor.View) {
	r.names = append(r.names, name)
	r.tensors[name] = v
}

func (r *record) write(w io.Writer) error {
	var entries []safetensors.Entry
	for _, name := range r.names {
		entries = append(entries, safetensors.Entry{Name: name, Type: r.tensors[name].Type})
	}
	return safetensors.Write(w, entries, r.metadata,
		safetensors.Whole(func(e safetensors.Entry) ([]byte, error) {
			return r.tensors[e.Name].Data, nil
		}))
}

// execute computes the objective and its gradients once, under the thesis policy.
func execute(ctx context.Context, s subject) (r record, err error) {
	return executeIn(ctx, s, precision.F32)
}

// executeIn is execute in a precision, which the record has for the peer.
func executeIn(ctx context.Context, s subject, in precision.Precision) (r record, err error) {
	parameters := s.parameters()
	fetches := append(autodiff.Grad(s.objective.Loss, parameters...), s.objective.Loss)
	noise := s.noise()
	fetches = append(fetches, noise...)
	if err := s.model.Graph.Err(); err != nil {
		return r, err
	}
	o := gomem.Options{Policy: planner.Thesis, Seed: 1, Precision: in}
	session, err := gomem.Compile(ctx, s.model.Graph, o,
		gomem.Target{Name: s.kind, Fetches: fetches})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	if r, err = s.start(session); err != nil {
		return r, err
	}
	r.metadata["precision"] = string(in)
	feeds := s.batch(newRand(2))
	out, err := session.Step(ctx, s.kind, feeds)
	if err != nil {
		return r, err
	}
	for _, v := range s.model.Data {
		r.add("input/"+v.Node.Name, feeds[v])
	}
	for i, p := range parameters {
		r.add("gradient/"+p.Node.Name, out[i])
		r.elements += p.Type().Elems()
	}
	r.gradients, r.loss = len(parameters), out[len(parameters)].F32()[0]
	for i, v := range noise {
		r.add("noise/"+v.Node.Op.Name(), out[len(parameters)+1+i])
	}
	return r, nil
}

// noise is what the objective draws.
func (s subject) noise() []graph.Value {
	g := s.model.Graph
	var list []graph.Value
	for id, needed := range g.Ancestors([]graph.NodeID{s.objective.Loss.Node.ID}) {
		if n := g.Node(graph.NodeID(id)); needed && !n.Leaf() &&
			strings.HasPrefix(n.Op.Name(), "random-") {
			list = append(list, n.Value(0))
		}
	}
	return list
}

// start initializes the parameters and records them. Scales and biases, which
// would start as ones and zeros, are moved from there: else a mistake in how they
// are applied would not show.
func (s subject) start(session *gomem.Session) (record, error) {
	config, err := json.Marshal(s.config)
	if err != nil {
		return record{}, err
	}
	r := record{
		metadata: map[string]string{"kind": s.kind, "config": string(config)},
		tensors:  map[string]tensor.View{},
	}
	rng := newRand(1)
	for _, n := range s.model.Graph.Variables() {
		if n.State {
			continue
		}
		x, err := session.Get(n.Value(0))
		if err != nil {
			return r, err
		}
		if n.Init.Dist == graph.Constant && n.Init.Each == nil {
			for i := range x.F32() {
				x.F32()[i] += float32(0.1 * rng.NormFloat64())
			}
		}
		if err := session.Set(n.Value(0), x); err != nil {
			return r, err
		}
		r.add("parameter/"+n.Name, x)
	}
	return r, nil
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }
