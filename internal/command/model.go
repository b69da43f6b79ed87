package command

import (
	"fmt"
	"io"
	"strconv"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// usualSize is the size of models that have sizes.
const usualSize = "s64"

// modelFlags choose a model.
type modelFlags struct {
	Model        string `group:"model" default:"moe" placeholder:"NAME"`
	Size         string `group:"model" default:"${size}" placeholder:"SIZE"`
	Batch        count  `group:"model" placeholder:"N"`
	Fine         bool   `group:"model"`
	Length       count  `group:"model" placeholder:"TOKENS"`
	Experts      count  `group:"model" placeholder:"E"`
	ExpertHidden count  `group:"model" placeholder:"H"`

	MoE     string `name:"moe" group:"model" enum:",dense,sparse" default:"" placeholder:"FORM"`
	Stacked bool   `group:"model"`
	Depth   count  `group:"model" placeholder:"LAYERS"`
	Blocks  string `group:"model" placeholder:"KIND"`
	Network string `group:"model" placeholder:"FILE"`
	Store   string `group:"model" enum:"${stores}" default:"" placeholder:"FORMAT"`
	Version string `group:"model" enum:",v1.5,v2" default:"" placeholder:"V"`
	Pixels  count  `group:"model" placeholder:"N"`
	Nets    string `group:"model" enum:",resnet,good" default:"" placeholder:"NETS"`
	RNN     string `name:"rnn" group:"model" enum:"${rnns}" default:"" placeholder:"FORM"`

	Vocabulary count     `group:"model" placeholder:"N"`
	Topics     count     `group:"model" placeholder:"N"`
	Classes    count     `group:"model" placeholder:"N"`
	Dropout    *fraction `group:"training" placeholder:"P"`

	Axis   axes   `group:"model" placeholder:"NAME=N"`
	Output string `group:"model" placeholder:"NAME"`
	Loss   string `group:"training" placeholder:"LOSS"`
	Target string `group:"data" placeholder:"NAME"`

	Optimizer  string   `group:"training" enum:"${optimizers}" default:"" placeholder:"NAME"`
	Clip       positive `group:"training" placeholder:"NORM"`
	Accumulate count    `group:"training" placeholder:"N"`
	Freeze     scopes   `group:"training" placeholder:"SCOPE,..."`
	LoRA       lora     `name:"lora" group:"training" placeholder:"rank=N,..."`

	network string // what a checkpoint keeps of one that was given by a file
	symbols count  // that the data are written with; 0: those of English
	packed  bool   // rows of the data have several documents
	sum     string // SHA-256 that the network's file has to have; "": any

	exchanging int          // workers that exchange gradients; 0: there is one
	factoring  nn.Factoring // which of these by factors
	pushed     nn.Factoring // which variables change by factors between steps
}

// particular are the flags of some models.
func (f modelFlags) particular() []option {
	return []option{
		{"length", f.Length > 0},
		{"experts", f.Experts > 0},
		{"expert-hidden", f.ExpertHidden > 0},
		{"moe", f.MoE != ""},
		{"stacked", f.Stacked},
		{"depth", f.Depth > 0},
		{"blocks", f.Blocks != ""},
		{"network", f.Network != ""},
		{"store", f.Store != ""},
		{"version", f.Version != ""},
		{"pixels", f.Pixels > 0},
		{"nets", f.Nets != ""},
		{"rnn", f.RNN != ""},
		{"vocabulary", f.Vocabulary > 0},
		{"topics", f.Topics > 0},
		{"classes", f.Classes > 0},
		{"dropout", f.Dropout != nil},
		{"accumulate", f.Accumulate > 0},
		{"lora", f.LoRA != ""},
		{"axis", f.Axis != ""},
		{"output", f.Output != ""},
		{"loss", f.Loss != ""},
		{"target", f.Target != ""},
	}
}

// built is a model with what a run of it computes.
type built struct {
	kind    kind
	model   *models.Model
	targets []planner.Target
	numbers map[string]string // what the model was built with, for checkpoints
	beside  account           // what its process has beside its plans
}

// build makes the model's graph. It takes none of the model's memory. If that takes
// long, it says so.
func (f modelFlags) build(w io.Writer) (*built, error) {
	k, err := kindOf(f.Model)
	if err != nil {
		return nil, err
	}
	if err := k.takes(f.particular()...); err != nil {
		return nil, err
	}
	if err := asUsageOf(f.training().Validate()); err != nil {
		return nil, err
	}
	defer notice(w, fmt.Sprintf("gomem: building the graph of %s %s", k.name, f.Size))()
	m, numbers, err := k.build(f)
	if err != nil {
		return nil, err
	}
	numbers["model"], numbers["size"], numbers["fine"] = m.Name, m.Size, fmt.Sprint(f.Fine)
	f.enter(numbers)
	b := &built{kind: k, model: m, numbers: numbers}
	if b.targets = train.Targets(&m.Model); !b.trains() {
		b.targets = []planner.Target{gomem.Evaluation(m.EvalOutputs...)}
	}
	return b.expects(), nil
}

// trains reports whether there is a training step, rather than outputs alone.
func (b *built) trains() bool { return len(b.model.Objectives) > 0 }

// enter adds to what checkpoints keep of a model what is not its size's. Nothing is said
// of the others, since there were checkpoints before these could be given.
func (f modelFlags) enter(numbers map[string]string) {
	if f.Vocabulary > 0 {
		numbers["vocabulary"] = strconv.Itoa(int(f.Vocabulary))
	}
	if f.Classes > 0 {
		numbers["classes"] = strconv.Itoa(int(f.Classes))
	}
	if f.Dropout != nil {
		numbers["dropout"] = fmt.Sprint(float32(*f.Dropout))
	}
	if f.Optimizer != "" {
		numbers["optimizer"] = f.Optimizer
	}
	if f.Clip > 0 {
		numbers["clip"] = fmt.Sprint(float32(f.Clip))
	}
	if f.Freeze != "" {
		numbers["freeze"] = string(f.Freeze)
	}
	if f.Store != "" {
		numbers["store"] = f.Store
	}
	if f.LoRA != "" {
		numbers["lora"] = string(f.LoRA)
	}
	if f.Accumulate > 0 {
		numbers["accumulate"] = strconv.Itoa(int(f.Accumulate))
	}
}

// optimizer is the one that was asked for, nil for the model's own.
func (f modelFlags) optimizer() nn.Optimizer {
	switch f.Optimizer {
	case "sgd":
		return nn.SGD{}
	case "momentum":
		return nn.Momentum{Mu: 0.9}
	case "adam":
		return nn.Adam{}
	case "adam-bf16":
		return nn.Adam{Moments: graph.BF16}
	case "adam-8bit":
		return nn.Adam{Moments: graph.U8}
	case "adamw":
		return nn.AdamW{Exempt: nn.Vectors}
	case "adamw-bf16":
		return nn.AdamW{Exempt: nn.Vectors, Moments: graph.BF16}
	case "adamw-8bit":
		return nn.AdamW{Exempt: nn.Vectors, Moments: graph.U8}
	case "lion":
		return nn.Lion{Exempt: nn.Vectors}
	case "muon":
		return nn.Muon{Rest: nn.AdamW{Exempt: nn.Vectors}}
	case "adafactor":
		return nn.Adafactor{}
	}
	return nil
}

// training is what flags say of a model's updates.
func (f modelFlags) training() models.Training {
	return models.Training{Optimizer: f.optimizer(), Clip: float32(f.Clip),
		Accumulate: int(f.Accumulate), Workers: f.exchanging,
		Frozen: f.Freeze.list(), Adapters: f.LoRA.adapters(),
		Factoring: f.factoring, Given: f.pushed}
}

// sizes overwrites what the data or flags say of a model: how many ids or labels it tells
// apart, and its dropout.
func (f modelFlags) sizes(classes *int, given count, dropout *float32) {
	setCounts(countField{given, classes})
	if f.Dropout != nil {
		*dropout = float32(*f.Dropout)
	}
}

// begin makes the model's graph, and the options of its plans for a device.
func (f modelFlags) begin(w io.Writer, plan planFlags, device string) (*built, gomem.Options,
	error) {
	b, err := f.build(w)
	if err != nil {
		return nil, gomem.Options{}, err
	}
	o, err := plan.options(b.model.DeviceBytes+plan.beside(device), b.model.HostBytes)
	if o.ReserveBytes = plan.reserved; err == nil {
		o, err = b.priced(o, device)
	}
	return b, b.within(o, plan), misnamed(err)
}

// setCounts overwrites fields with the counts that were given.
func setCounts(pairs ...countField) {
	for _, p := range pairs {
		if p.given > 0 {
			*p.field = int(p.given)
		}
	}
}

type countField struct {
	given count
	field *int
}
