package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/distrib/memnet"
	"github.com/gomem/gomem/distrib/wrap"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
)

// wayNodes is how many workers exchange in the table of ways.
const wayNodes = 4

// trained is a model whose gradients are exchanged.
type trained struct {
	name    string
	batches []int // of a worker
	build   func(size string, batch int, tr models.Training) (*models.Model, error)
}

// modelled makes a model of a configuration for a batch.
func modelled[C any](config func(string) (C, error), build func(C) (*models.Model, error),
	set func(c *C, batch int, tr models.Training)) func(string, int, models.Training) (
	*models.Model, error) {
	return func(size string, batch int, tr models.Training) (*models.Model, error) {
		c, err := config(size)
		if err != nil {
			return nil, err
		}
		set(&c, batch, tr)
		return build(c)
	}
}

// trainings are the five models, at a worker's share of their batch and at one example.
func trainings() []trained {
	return []trained{
		{"transformer", []int{16, 1}, modelled(models.NewTransformerConfig, models.Transformer,
			func(c *models.TransformerConfig, batch int, tr models.Training) {
				c.Pairs, c.Training = batch, tr
			})},
		{"moe", []int{1}, modelled(models.NewMoEConfig, models.MoE,
			func(c *models.MoEConfig, batch int, tr models.Training) {
				c.Pairs, c.Training = batch, tr
			})},
		{"resnet", []int{14, 1}, modelled(models.NewResNetConfig, models.ResNet,
			func(c *models.ResNetConfig, batch int, tr models.Training) {
				c.Images, c.Training = batch, tr
			})},
		{"wgan", []int{16, 1}, modelled(models.NewWGANConfig, models.WGAN,
			func(c *models.WGANConfig, batch int, tr models.Training) {
				c.Images, c.Training = batch, tr
			})},
		{"deepspeech", []int{32, 1}, modelled(models.NewDeepSpeechConfig, models.DeepSpeech,
			func(c *models.DeepSpeechConfig, batch int, tr models.Training) {
				c.Utterances, c.Training = batch, tr
			})},
	}
}

// asked notes what factoring is asked, and answers as another one.
type asked struct {
	nn.Factoring
	weights *[]weight
}

// weight is one whose gradient has factors.
type weight struct {
	gradient, factors int64 // bytes
	gathered          bool
}

// Factors notes and answers.
func (a asked) Factors(gradient, factors int64) bool {
	yes := a.Factoring.Factors(gradient, factors)
	*a.weights = append(*a.weights, weight{gradient, factors, yes})
	return yes
}

// everywhere exchanges all factors that there are.
type everywhere struct{}

// Factors does not ask.
func (everywhere) Factors(_, _ int64) bool { return true }

// ways prints what workers exchange of the five models by each way, and by the fewest
// bytes: models as a whole, and their dense layers.
func ways(_ *testing.T, w io.Writer, quick bool) error {
	size, list := "base", trainings()
	if quick {
		size, list = "s512", list[:1]
	}
	fmt.Fprintf(w, "%d workers, models of size %s: MB that a worker sends and receives for the "+
		"gradients of a step,\nmeasured in the transport.\n\n", wayNodes, size)
	heading(w, "model", "batch a worker", "ring", "ps", "factors", "hybrid", "weights by factors",
		"measured over formula")
	m := &wayMeter{known: map[spec]int64{}}
	var layers []string
	for _, tr := range list {
		for _, batch := range tr.batches {
			some, err := m.model(w, tr, size, batch)
			if err != nil {
				return fmt.Errorf("%s: %w", tr.name, err)
			}
			layers = append(layers, some...)
		}
	}
	fmt.Fprintf(w, "\nTheir dense layers, those of most bytes first; MB of one, measured and by "+
		"the formula.\n\n")
	heading(w, "model", "batch a worker", "weights", "MB of gradient", "of factors", "ring",
		"factors", "is less")
	fmt.Fprint(w, strings.Join(layers, ""))
	return nil
}

// spec is an exchange: so many bytes of a worker, by a way.
type spec struct {
	bytes int64
	via   collective.Via
}

// wayMeter measures exchanges, each once.
type wayMeter struct{ known map[spec]int64 }

// model prints a model's row, and returns those of its layers.
func (m *wayMeter) model(w io.Writer, tr trained, size string, batch int) (rows []string,
	err error) {
	cells := []string{tr.name, fmt.Sprint(batch)}
	var weights []weight
	var measured, formula int64
	for _, by := range []struct {
		via       collective.Via
		factoring nn.Factoring
	}{{collective.Ring, nil}, {collective.Servers, nil}, {collective.Ring, everywhere{}},
		{collective.Ring, asked{collective.Fewest{Workers: wayNodes}, &weights}}} {
		model, err := tr.build(size, batch, models.Training{Workers: wayNodes,
			Factoring: by.factoring})
		if err != nil {
			return nil, err
		}
		if measured, formula, err = m.all(model.Graph, by.via); err != nil {
			return nil, err
		}
		cells = append(cells, megabytes(measured))
	}
	chosen := 0
	for _, x := range weights {
		if x.gathered {
			chosen++
		}
	}
	row(w, append(cells, fmt.Sprintf("%d of %d", chosen, len(weights)),
		fmt.Sprintf("%.4f", float64(measured)/float64(formula)))...)
	return m.layers(tr.name, batch, weights)
}

// layers are the rows of a model's weights of most bytes.
func (m *wayMeter) layers(name string, batch int, weights []weight) (rows []string, err error) {
	count := map[weight]int{}
	for _, x := range weights {
		count[x]++
	}
	slices.SortFunc(weights, func(a, b weight) int {
		return -slices.Compare([]int64{a.gradient, a.factors}, []int64{b.gradient, b.factors})
	})
	for _, x := range slices.Compact(weights) {
		if len(rows) == 3 {
			break
		}
		dense, err := m.one(spec{x.gradient, collective.Ring})
		if err != nil {
			return nil, err
		}
		pairs, err := m.one(spec{x.factors, collective.Gathered})
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		row(&b, name, fmt.Sprint(batch), fmt.Sprint(count[x]), megabytes(x.gradient),
			megabytes(x.factors),
			megabytes(dense)+" ("+megabytes(spec{x.gradient, collective.Ring}.formula())+")",
			megabytes(pairs)+" ("+megabytes(spec{x.factors, collective.Gathered}.formula())+")",
			map[bool]string{true: "factors", false: "ring"}[x.gathered])
		rows = append(rows, b.String())
	}
	return rows, nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.2f", float64(n)/1e6) }

// all is what a worker sends and receives for the exchanges of a graph, and what it does
// by the formula.
func (m *wayMeter) all(g *graph.Graph, via collective.Via) (measured, formula int64, err error) {
	for _, n := range g.Nodes() {
		x, sends := n.Sends()
		if !sends {
			continue
		}
		s := spec{n.In[0].Type().Bytes(), via}
		if x.Parts > 0 {
			s.via = collective.Gathered
		}
		got, err := m.one(s)
		if err != nil {
			return 0, 0, err
		}
		measured, formula = measured+got, formula+s.formula()
	}
	return measured, formula, nil
}

// formula is what a worker sends and receives: of small values by recursive doubling.
func (s spec) formula() int64 {
	t := collective.TrafficOf(int(s.bytes/4), 1, 0, wayNodes, wayNodes)
	switch {
	case s.via == collective.Gathered:
		return collective.TrafficOf(int(s.bytes/4), 0, 1, wayNodes, wayNodes).Factors
	case s.via == collective.Servers:
		return t.Servers
	case s.bytes < collective.Small:
		return 2 * 2 * s.bytes // two rounds among four, there and back
	}
	return t.Ring
}

// one is what a worker sends and receives for an exchange, on average.
func (m *wayMeter) one(s spec) (int64, error) {
	if n, known := m.known[s]; known {
		return n, nil
	}
	meter := &wrap.Meter{}
	net := memnet.NewNetwork(wayNodes, memnet.Options{})
	errs := make([]error, wayNodes)
	var all sync.WaitGroup
	for rank := range wayNodes {
		all.Go(func() {
			errs[rank] = s.exchange(meter.Wrap(net.Node(distrib.NodeID(rank))))
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	n := meter.Sent(distrib.Collective).Bytes + meter.Received(distrib.Collective).Bytes
	m.known[s] = n / wayNodes
	return m.known[s], nil
}

// exchange is a worker's part.
func (s spec) exchange(t distrib.Transport) error {
	mux, err := collective.NewMux(t, collective.Options{Epoch: 1})
	if err != nil {
		return err
	}
	defer mux.Close()
	g, err := mux.Group(0, 1, 2, 3)
	if err != nil {
		return err
	}
	defer g.Close()
	e, err := collective.NewExchanger(g, collective.ExchangerOptions{})
	if err != nil {
		return err
	}
	defer e.Close()
	size := s.bytes
	if s.via == collective.Gathered {
		size *= wayNodes
	}
	err = e.Send(collective.Exchange{Name: "x", Type: fmt.Sprintf("f32[%d]", size/4),
		Via: s.via, Data: make([]byte, size)})
	if err != nil {
		return err
	}
	return e.Await(context.Background(), "x")
}
