package main

import (
	"context"
	"fmt"
	"io"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/precision"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/planner/machine"
)

// sheetMachines are those of the columns, each of which is a machine in a precision.
var sheetMachines = []struct {
	name string
	in   precision.Precision
}{
	{machine.TitanX, precision.F32},
	{machine.A100, precision.F32}, {machine.A100, precision.TF32}, {machine.A100, precision.BF16},
	{machine.H100, precision.F32}, {machine.H100, precision.TF32}, {machine.H100, precision.BF16},
}

// sheetModels are the thesis' models, and a language model, with what its tables 6.5 and 6.6 say
// that vanilla TensorFlow took for a step of the same batch on a Titan X, in milliseconds: the
// batch over the throughput; 0 is nothing. A step of theirs for WGAN-GP has five of the critic and
// one of the generator in it, so it is not set beside one of the critic.
func sheetModels() []sheetModel {
	batch := map[string]float64{"resnet": 57. / 50, "transformer": 11264. / 8731, "moe": 4 / 4.6}
	var all []sheetModel
	for _, m := range thesisModels {
		all = append(all, sheetModel{m.name, m.build, batch[m.name] * 1000})
	}
	return append(all, sheetModel{"gpt", func() (*models.Model, error) {
		c, err := models.NewGPTConfig("base", "gpt2")
		return built(c, err, models.GPT)
	}, 0})
}

// sheetModel is a row.
type sheetModel struct {
	name   string
	build  func() (*models.Model, error)
	thesis float64 // published ms of a step on a Titan X
}

// sheets prints how long a step takes by what GPUs' data sheets say.
func sheets(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, "The first objective's step, without a budget, planned by `auto` by prices: "+
		"simulated\nmilliseconds. Nothing ran on such a machine.")
	fmt.Fprint(w, "\n| model | operations | TFLOP |")
	line := "|---|---:|---:|"
	for _, m := range sheetMachines {
		fmt.Fprintf(w, " %s %s |", m.name, m.in)
		line += "---:|"
	}
	fmt.Fprintf(w, " thesis, Titan X | published, a100 or h100 |\n%s---:|---:|\n", line)
	for _, m := range sheetModels() {
		if err := m.row(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// row prints a model.
func (m sheetModel) row(ctx context.Context, w io.Writer) error {
	for i, on := range sheetMachines {
		model, err := m.build()
		if err != nil {
			return err
		}
		o := gomem.Options{Policy: planner.Auto, Device: gomem.Sim + on.name, Precision: on.in,
			Model: m.name, Effort: 100}
		of := model.Objectives[0]
		p, err := gomem.Plan(ctx, model.Graph, o, gomem.Updating("train", of.Updates, of.Loss))
		if err != nil {
			return err
		}
		if i == 0 {
			fmt.Fprintf(w, "| %s | %d | %.2f |", m.name, p.Results[0].Plan.Launches(),
				executed(p.Results[0].Plan, p.Graph)/1e12)
		}
		fmt.Fprintf(w, " %s |", ms(p.Results[0].Step))
	}
	published := "–"
	if m.thesis > 0 {
		published = fmt.Sprintf("%.0f", m.thesis)
	}
	_, err := fmt.Fprintf(w, " %s | – |\n", published)
	return err
}

// executed is the floating-point operations of what a plan launches.
func executed(p *plan.Plan, g *graph.Graph) (total float64) {
	for _, s := range p.Steps {
		if _, ok := s.Do.(plan.Launch); ok {
			total += float64(g.Node(s.Node).Cost().FLOPs)
		}
	}
	return total
}
