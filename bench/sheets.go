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
var sheetMachines = []sheetMachine{
	{machine.TitanX, precision.F32},
	{machine.A100, precision.F32}, {machine.A100, precision.TF32}, {machine.A100, precision.BF16},
	{machine.H100, precision.F32}, {machine.H100, precision.TF32}, {machine.H100, precision.BF16},
}

// sheetMachine is a machine in a precision.
type sheetMachine struct {
	name string
	in   precision.Precision
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
	fmt.Fprintf(w, " thesis, Titan X |\n%s---:|\n", line)
	for _, m := range sheetModels() {
		if err := m.row(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	fmt.Fprintln(w, "\nSteps of other shapes, of which there are published times: predicted "+
		"likewise, beside\nwhat others measured.")
	fmt.Fprint(w, "\n| model | on | predicted ms | published ms | predicted / published |\n"+
		"|---|---|---:|---:|---:|\n")
	for _, m := range publishedSteps() {
		p, err := m.on.plan(ctx, m.name, m.build)
		if err != nil {
			return fmt.Errorf("%s: %w", m.what, err)
		}
		fmt.Fprintf(w, "| %s | %s %s | %s | %.1f | %.2f |\n", m.what, m.on.name, m.on.in,
			ms(p.Results[0].Step), m.ms, p.Results[0].Step.Seconds()*1000/m.ms)
	}
	return nil
}

// publishedStep is a step that others measured.
type publishedStep struct {
	what, name string
	build      func() (*models.Model, error)
	on         sheetMachine
	ms         float64
}

// publishedSteps are those of NVIDIA's ResNet-50 by its images a second on one A100 of 80 GB
// (github.com/NVIDIA/DeepLearningExamples, PyTorch/Classification/ConvNets/resnet50v1.5/README.md,
// container 21.03; the batch is in configs.yml), and of llm.c's GPT-2 by the minutes that 19,560
// steps of 64 texts for each of 8 GPUs took (github.com/KellerJordan/modded-nanogpt, README.md).
func publishedSteps() []publishedStep {
	resnet := func() (*models.Model, error) {
		c, err := models.NewResNetConfig("base")
		c.Depth, c.Images, c.Classes = 50, 256, 1000
		return built(c, err, models.ResNet)
	}
	gpt := func() (*models.Model, error) {
		c, err := models.NewGPTConfig("base", models.GPT2Blocks)
		c.Texts, c.Dropout = 64, 0
		return built(c, err, models.GPT)
	}
	const steps = 19560
	images, texts := "ResNet-50, 256 images of 224×224", "GPT-2 124M, 64 texts of 1,024 tokens"
	return []publishedStep{
		{images, "resnet", resnet, sheetMachine{machine.A100, precision.TF32}, 256e3 / 938},
		{images, "resnet", resnet, sheetMachine{machine.A100, precision.BF16}, 256e3 / 2470},
		{texts, "gpt", gpt, sheetMachine{machine.A100, precision.BF16}, 90 * 60e3 / steps},
		{texts, "gpt", gpt, sheetMachine{machine.H100, precision.BF16}, 45 * 60e3 / steps},
	}
}

// plan plans the first objective's step.
func (on sheetMachine) plan(ctx context.Context, name string,
	build func() (*models.Model, error)) (*gomem.Planned, error) {
	model, err := build()
	if err != nil {
		return nil, err
	}
	o := gomem.Options{Policy: planner.Auto, Device: gomem.Sim + on.name, Precision: on.in,
		Model: name, Effort: 100}
	of := model.Objectives[0]
	return gomem.Plan(ctx, model.Graph, o, gomem.Updating("train", of.Updates, of.Loss))
}

// row prints a model.
func (m sheetModel) row(ctx context.Context, w io.Writer) error {
	for i, on := range sheetMachines {
		p, err := on.plan(ctx, m.name, m.build)
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
	_, err := fmt.Fprintf(w, " %s |\n", published)
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
