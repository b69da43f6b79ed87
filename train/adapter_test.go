package train

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
)

// adapted is a small public checkpoint, and what PEFT's adapters of it learn: see
// testdata/adapters.py.
type adapted struct {
	Name     string
	Config   json.RawMessage
	Adapters struct {
		R       int
		Alpha   float32  `json:"lora_alpha"`
		Targets []string `json:"target_modules"`
	}
	Losses []float64
}

func readAdapted(t *testing.T) (cases []adapted) {
	t.Helper()
	text, err := os.ReadFile("testdata/adapters.json")
	if err == nil {
		err = json.Unmarshal(text, &cases)
	}
	if err != nil || len(cases) == 0 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	return cases
}

// hashed is element i of the kth tensor, as testdata/adapters.py has it.
func hashed(i, k int) float64 {
	x := uint32(i+65537*k) * 40503
	for _, factor := range []uint32{73244475, 295559667} {
		x = (x ^ x>>16) * factor
	}
	return float64(x>>8)/(1<<24) - 0.5
}

const (
	adaptedTexts  = 2
	adaptedLength = 12
)

// network is the network with its adapters.
func (c adapted) network(t *testing.T) models.GPTConfig {
	t.Helper()
	p, err := models.ParsePublished(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	config := p.GPTConfig
	config.Texts, config.Length, config.Dropout, config.Clip = adaptedTexts, adaptedLength, 0, 0
	config.Training.Optimizer = nn.AdamW{Decay: 0.1}
	a := &nn.Adapters{Rank: c.Adapters.R, Alpha: c.Adapters.Alpha}
	for _, target := range c.Adapters.Targets {
		a.Targets = append(a.Targets, strings.ReplaceAll(target, ".", "/"))
	}
	config.Training.Adapters = a
	return config
}

// initial are the values of the parameters, those of the network without adapters by their order
// of names, and the others by theirs.
func (c adapted) initial(config models.GPTConfig, parameters []graph.Value) map[string]tensor.View {
	all := map[string]tensor.View{}
	for _, adapters := range []bool{false, true} {
		named := map[string]graph.Value{}
		for _, v := range parameters {
			isB := strings.HasSuffix(v.Node.Name, "lora_B/weight")
			if nn.IsAdapter(v.Node.Name) == adapters && !isB {
				named[config.FullName(v.Node.Name)] = v
			}
		}
		for k, name := range slices.Sorted(maps.Keys(named)) {
			x := tensor.New(named[name].Type())
			for i := range x.F32() {
				n := hashed(i, k+1)
				if x.Type.Rank() == 1 {
					n *= 0.5
					if !strings.Contains(name, "bias") {
						n++
					}
				}
				x.F32()[i] = float32(n)
			}
			all[named[name].Node.Name] = x
		}
	}
	for _, v := range parameters {
		if _, has := all[v.Node.Name]; !has {
			all[v.Node.Name] = tensor.New(v.Type())
		}
	}
	return all
}

// adaptedBatch is the tokens of a step's batch, and the targets.
func adaptedBatch(step, vocab int) data.Batch {
	var tokens, targets []int32
	for row := range adaptedTexts {
		for i := range adaptedLength + 1 {
			n := row*(adaptedLength+1) + i
			id := int32((hashed(n, 1000+step%5) + 0.5) * float64(vocab))
			if i < adaptedLength {
				tokens = append(tokens, id)
			}
			if i > 0 {
				targets = append(targets, id)
			}
		}
	}
	return data.Batch{Units: adaptedTexts * adaptedLength, Inputs: []gomem.Tensor{
		tensor.FromI32(tokens, adaptedTexts, adaptedLength),
		tensor.FromI32(targets, adaptedTexts, adaptedLength)}}
}

// adaptedTextsOf are batches of those.
type adaptedTextsOf int

func (v adaptedTextsOf) Train(step int) data.Batch { return adaptedBatch(step, int(v)) }
func (v adaptedTextsOf) HeldOut(i int) data.Batch  { return adaptedBatch(i, int(v)) }
func (v adaptedTextsOf) HeldOutBatches() int       { return 1 }
func (v adaptedTextsOf) StepsPerEpoch() int        { return 5 }

// publish writes the checkpoint that the adapters are of.
func (c adapted) publish(t *testing.T, dir string, config models.GPTConfig,
	parameters []graph.Value) {
	t.Helper()
	values := c.initial(config, parameters)
	own := slices.DeleteFunc(slices.Clone(parameters), func(v graph.Value) bool {
		return nn.IsAdapter(v.Node.Name)
	})
	config.Training = models.Training{}
	if err := WritePublic(dir, config, nil, own, func(v graph.Value) (gomem.Tensor, error) {
		return values[v.Node.Name], nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestAdaptersLearnAsPEFT: fifty steps have the losses of peft's.
func TestAdaptersLearnAsPEFT(t *testing.T) {
	for _, c := range readAdapted(t) {
		config := c.network(t)
		m, err := models.GPT(config)
		if err != nil {
			t.Fatal(c.Name, err)
		}
		m.Schedule = nn.Constant(0.01)
		dir := t.TempDir()
		base, run := filepath.Join(dir, "base"), filepath.Join(dir, "run")
		c.publish(t, base, config, m.Parameters())
		values := c.initial(config, m.Parameters())
		m.Values = func(vars []graph.Value, set func(graph.Value, tensor.View) error) error {
			for _, v := range vars {
				if nn.IsAdapter(v.Node.Name) {
					if err := set(v, values[v.Node.Name]); err != nil {
						return err
					}
				}
			}
			return nil
		}
		var losses []float64
		o := Options{Model: &m.Model, Name: "gpt", Size: m.Size, Steps: len(c.Losses), Save: run,
			Loader: adaptedTextsOf(config.Vocab), Init: base, SaveEvery: 30,
			Observe: func(e Event) {
				if e.Kind == Step {
					losses = append(losses, e.Loss)
				}
			}}
		if _, err := Run(t.Context(), o); err != nil {
			t.Fatal(c.Name, err)
		}
		for i, want := range c.Losses {
			if math.Abs(losses[i]-want) > 1e-4 {
				t.Errorf("%s, step %d: loss %.6f, want %.6f", c.Name, i+1, losses[i], want)
				break
			}
		}
		c.checkRun(t, config, base, run)
	}
}

// checkRun: checkpoints have adapters and their state alone, go on to the same bits, and are
// nothing without their base; what they publish is the run's.
func (c adapted) checkRun(t *testing.T, config models.GPTConfig, base, run string) {
	t.Helper()
	f, err := safetensors.Open(filepath.Join(run, fileName(len(c.Losses))))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range f.Entries() {
		if !strings.Contains(e.Name, "/lora_") {
			t.Errorf("%s: the checkpoint has %s", c.Name, e.Name)
		}
	}
	closeRead(f)
	m, err := models.GPT(config)
	if err != nil {
		t.Fatal(err)
	}
	m.Schedule = nn.Constant(0.01)
	again := filepath.Join(filepath.Dir(run), "again")
	o := Options{Model: &m.Model, Name: "gpt", Size: m.Size, Steps: len(c.Losses), Save: again,
		Loader: adaptedTextsOf(config.Vocab), Resume: filepath.Join(run, fileName(30))}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatalf("%s, resumed: %v", c.Name, err)
	}
	whole, _ := os.ReadFile(filepath.Join(run, fileName(len(c.Losses))))
	parts, _ := os.ReadFile(filepath.Join(again, fileName(len(c.Losses))))
	if len(whole) == 0 || !slices.Equal(whole, parts) {
		t.Errorf("%s: a run that was resumed ends with other bytes", c.Name)
	}
	c.checkWritten(t, config, base, run)
	weights := filepath.Join(base, publicWeights)
	text, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-1] ^= 1
	if err := os.WriteFile(weights, text, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Save = filepath.Join(filepath.Dir(run), "never")
	if _, err := Run(t.Context(), o); err == nil ||
		!strings.Contains(err.Error(), "has others now: put those back") {
		t.Errorf("%s: another base: %v", c.Name, err)
	}
}

// checkWritten: the loss of the run is that of the base with its adapters, and of the merged
// checkpoint.
func (c adapted) checkWritten(t *testing.T, config models.GPTConfig, base, run string) {
	t.Helper()
	merged, alone := filepath.Join(filepath.Dir(run), "merged"), filepath.Join(filepath.Dir(run),
		"alone")
	if err := WriteAdapter(alone, run, config); err != nil {
		t.Fatal(err)
	}
	if err := Export(merged, run, config); err != nil {
		t.Fatal(err)
	}
	if err := Export(base, run, config); err == nil ||
		!strings.Contains(err.Error(), "write to another directory") {
		t.Errorf("%s: over its base: %v", c.Name, err)
	}
	loss := func(p *Public, err error) float64 {
		if err != nil {
			t.Fatal(err)
		}
		config := p.Config
		config.Texts, config.Length = adaptedTexts, adaptedLength
		m, err := models.GPT(config)
		if err != nil {
			t.Fatal(err)
		}
		e, err := m.Evaluation()
		if err != nil {
			t.Fatal(err)
		}
		r, err := Evaluate(t.Context(), EvalOptions{Model: &e.Model, Executions: 1, Public: p,
			Loader: adaptedTextsOf(config.Vocab)})
		if err != nil {
			t.Fatal(err)
		}
		return r.Loss
	}
	one, err := OpenPublic(base)
	before := loss(one, err)
	if err := one.Adapt(alone); err != nil {
		t.Fatal(err)
	}
	with := loss(one, nil)
	two, err := OpenPublic(merged)
	if all := loss(two, err); math.Abs(with-all) > 1e-5 || math.Abs(before-with) < 0.1 {
		t.Errorf("%s: loss %.6f with adapters, %.6f merged, %.6f without", c.Name, with, all,
			before)
	}
}
