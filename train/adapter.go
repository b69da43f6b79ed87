package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/legible"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
)

// The names of the files of an adapter, as PEFT has them.
const (
	adapterConfig  = "adapter_config.json"
	adapterWeights = "adapter_model.safetensors"
	adapterPrefix  = "base_model.model." // before the public names of its tensors
)

// merged are the windows of parameters with their adapters added: W + Scale·B·A, rounded once.
func merged(c models.GPTConfig, x *Values,
	all map[string]graph.Value) func(v graph.Value) (windows, error) {
	return func(v graph.Value) (windows, error) {
		w, err := x.windows(v)
		scope, isWeight := strings.CutSuffix(v.Node.Name, "/weight")
		nameA, nameB := nn.AdapterOf(scope)
		if err != nil || !isWeight || !all[nameA].Valid() {
			return w, err
		}
		m := &summed{windows: w, scale: c.Training.Adapters.Scale(),
			rows: c.Blocks == models.LlamaBlocks}
		if m.a, err = x.Get(all[nameA]); err == nil {
			m.b, err = x.Get(all[nameB])
		}
		if err != nil {
			return nil, errors.Join(err, w.end())
		}
		return m, nil
	}
}

// summed are the windows of a matrix to which scale·B·A, f32[out in], is added. The matrix has a
// row for each output or for each input.
type summed struct {
	windows
	a, b  tensor.View
	scale float32
	rows  bool
}

func (m *summed) read(w window, x tensor.View) error {
	if err := m.windows.read(w, x); err != nil {
		return err
	}
	outs, ins := span{w.col, w.cols}, span{w.row, w.rows}
	if m.rows {
		outs, ins = span{w.row, w.rows}, span{w.col, w.cols}
	}
	m.add(outs, ins, x.F32())
	return nil
}

// span is n numbers from one on.
type span struct{ from, n int }

// add adds the product's elements of some outputs and inputs.
func (m *summed) add(outs, ins span, to []float32) {
	rank, in := m.a.Type.Size(0), m.a.Type.Size(1)
	x, y := m.a.F32(), m.b.F32()
	sums := make([]float64, ins.n)
	for o := range outs.n {
		clear(sums)
		for r := range rank {
			factor := float64(y[(outs.from+o)*rank+r])
			for i, v := range x[r*in+ins.from:][:ins.n] {
				sums[i] += float64(factor * float64(v))
			}
		}
		for i, sum := range sums {
			at := i*outs.n + o
			if m.rows {
				at = o*ins.n + i
			}
			to[at] = float32(float64(to[at]) + float64(float64(m.scale)*sum))
		}
	}
}

// adapterFile is what gomem writes and reads of adapter_config.json.
type adapterFile struct {
	Kind    string  `json:"peft_type"`
	Task    string  `json:"task_type"`
	Base    string  `json:"base_model_name_or_path"`
	Rank    int     `json:"r"`
	Alpha   float64 `json:"lora_alpha"`
	Dropout float64 `json:"lora_dropout"`
	Targets targets `json:"target_modules"`
	Bias    string  `json:"bias"`
	// FanIn says that weights are [in out], as GPT-2's are
	FanIn bool `json:"fan_in_fan_out"`
	Used  bool `json:"inference_mode"`
}

// targets are layers' names: a list of them, or "all-linear".
type targets []string

// UnmarshalJSON reads either.
func (t *targets) UnmarshalJSON(text []byte) error {
	var word string
	if json.Unmarshal(text, &word) == nil {
		if word != "all-linear" {
			return errors.New("target_modules is a pattern: want a list of names, or all-linear")
		}
		*t = nil
		return nil
	}
	var list []string
	if err := json.Unmarshal(text, &list); err != nil {
		return errors.New("target_modules is no list of names")
	}
	*t = list
	return nil
}

// WriteAdapter writes the adapters of a run's checkpoint of models.GPT with this configuration as
// PEFT, the library of Hugging Face, reads them: adapter_model.safetensors and
// adapter_config.json. from is the checkpoint's file, or a directory for the latest in it. Errors
// are *[ErrCheckpoint]s.
func WriteAdapter(dir, from string, c models.GPTConfig) error {
	x, err := OpenValues(from)
	if err != nil {
		return err
	}
	defer x.Close()
	if c.Training.Adapters == nil {
		return x.from.fail("has no adapters: want a run with --lora")
	}
	m, err := models.GPT(c)
	if err != nil {
		return err
	}
	if err := writeAdapter(osDisk{}, dir, c, m.Parameters(), x); err != nil {
		return &ErrCheckpoint{Path: dir, Err: bare(err)}
	}
	return nil
}

func writeAdapter(d disk, dir string, c models.GPTConfig, parameters []graph.Value,
	x *Values) error {
	byName, layers := map[string]graph.Value{}, map[string]bool{}
	var all []safetensors.Entry
	for _, v := range parameters {
		if !nn.IsAdapter(v.Node.Name) {
			continue
		}
		name := adapterPrefix + c.FullName(v.Node.Name)
		byName[name] = v
		all = append(all, safetensors.Entry{Name: name, Type: v.Type()})
		words := strings.Split(v.Node.Name, "/")
		layers[words[len(words)-3]] = true
	}
	weights := func(f file) error {
		return safetensors.Write(f, all, map[string]string{"format": "pt"},
			safetensors.Whole(func(e safetensors.Entry) ([]byte, error) {
				t, err := x.Get(byName[e.Name])
				return t.Data, err
			}))
	}
	if err := d.MkdirAll(dir); err != nil {
		return err
	}
	if err := replacePublic(d, dir, adapterWeights, weights); err != nil {
		return err
	}
	a := c.Training.Adapters
	about := adapterFile{Kind: "LORA", Task: "CAUSAL_LM", Rank: a.Rank,
		Alpha: float64(a.Scale()) * float64(a.Rank), Dropout: float64(a.Dropout), Bias: "none",
		Targets: slices.Sorted(maps.Keys(layers)), FanIn: c.Blocks == models.GPT2Blocks,
		Used: true}
	if len(a.Targets) > 0 {
		about.Targets = nil
		for _, target := range a.Targets {
			about.Targets = append(about.Targets, strings.ReplaceAll(target, "/", "."))
		}
	}
	if x.from.Base != nil {
		about.Base = x.from.Base.Path
	}
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	return replacePublic(d, dir, adapterConfig, writing(append(text, '\n')))
}

// Adapter is a set of adapters as PEFT publishes them, for the layers of a public checkpoint.
type Adapter struct {
	Path     string // the directory
	Adapters nn.Adapters
	tensors  map[string]safetensors.Entry // by the parameter that they are
}

// OpenAdapter finds out what is in a directory with adapter_config.json and
// adapter_model.safetensors, for a network. What they say that is not done here is refused by its
// name. Errors are *[ErrCheckpoint]s.
func OpenAdapter(dir string, c models.GPTConfig) (*Adapter, error) {
	a := &Adapter{Path: dir, tensors: map[string]safetensors.Entry{}}
	err := a.configure()
	if err == nil {
		err = a.list(c)
	}
	if err != nil {
		return nil, &ErrCheckpoint{Path: dir, Err: bare(err)}
	}
	return a, nil
}

// configure reads adapter_config.json.
func (a *Adapter) configure() error {
	text, err := regular.ReadFile(filepath.Join(a.Path, adapterConfig))
	if err != nil {
		return fmt.Errorf("%s: %w", adapterConfig, bare(err))
	}
	members, about := map[string]json.RawMessage{}, adapterFile{Alpha: 8, Rank: 8}
	for _, to := range []any{&members, &about} {
		if err := json.Unmarshal(text, to); err != nil {
			return fmt.Errorf("%s: %w", adapterConfig, legible.Error(err, 200))
		}
	}
	if about.Kind != "LORA" {
		return fmt.Errorf("%s: peft_type is %.40q: want LORA", adapterConfig, about.Kind)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if plain, known := plainMembers[name]; known &&
			!slices.Contains(plain, string(members[name])) {
			return fmt.Errorf("%s: %s is %s, which is not done here", adapterConfig, name,
				legible.Cut(string(members[name]), 60))
		}
	}
	alpha := about.Alpha
	if string(members["use_rslora"]) == "true" {
		alpha *= math.Sqrt(float64(about.Rank))
	}
	a.Adapters = nn.Adapters{Rank: about.Rank, Alpha: float32(alpha)}
	for _, target := range about.Targets {
		a.Adapters.Targets = append(a.Adapters.Targets, strings.ReplaceAll(target, ".", "/"))
	}
	if err := a.Adapters.Validate(); err != nil {
		return fmt.Errorf("%s: %w", adapterConfig, err)
	}
	return nil
}

// plainMembers are the values that members of adapter_config.json may have which change what
// adapters compute.
var plainMembers = map[string][]string{
	"alpha_pattern": {"{}", "null"}, "rank_pattern": {"{}", "null"}, "bias": {`"none"`},
	"exclude_modules": {"null", "[]"}, "layer_replication": {"null"}, "layers_pattern": {"null"},
	"layers_to_transform": {"null"}, "lora_bias": {"false"}, "modules_to_save": {"null", "[]"},
	"target_parameters": {"null", "[]"}, "trainable_token_indices": {"null"},
	"use_dora": {"false"}, "use_qalora": {"false"}, "alora_invocation_tokens": {"null"},
}

// list finds the tensors.
func (a *Adapter) list(c models.GPTConfig) error {
	f, err := safetensors.Open(filepath.Join(a.Path, adapterWeights))
	if err != nil {
		return fmt.Errorf("%s: %w", adapterWeights, bare(err))
	}
	defer closeRead(f)
	if strange := f.Foreign(); len(strange) > 0 {
		return fmt.Errorf("tensor %s is %s: want floating-point numbers of 16, 32 or 64 bits",
			shownName(strange[0].Name), strange[0].Type)
	}
	for _, e := range f.Entries() {
		name := adapterParameter(c, e.Name)
		if name == "" || !e.Type.DType.Floating() || e.Type.Rank() != 2 {
			return fmt.Errorf("tensor %s, %s, belongs to no adapter of a layer of this network",
				shownName(e.Name), e.Type)
		}
		a.tensors[name] = e
	}
	return nil
}

// adapterParameter is the parameter of an adapter that PEFT gives a name, "" if it is none.
func adapterParameter(c models.GPTConfig, public string) string {
	name, ok := strings.CutPrefix(public, adapterPrefix)
	if !ok {
		return ""
	}
	for i, end := range []string{".lora_A.weight", ".lora_B.weight"} {
		layer, ok := strings.CutSuffix(name, end)
		if !ok {
			continue
		}
		weight := c.ParameterName(layer + ".weight")
		scope, isWeight := strings.CutSuffix(weight, "/weight")
		if !isWeight {
			return ""
		}
		first, second := nn.AdapterOf(scope)
		return [...]string{first, second}[i]
	}
	return ""
}

// set gives the parameters of a session's adapters the values of this one. The session's may have
// a larger rank, and be of more layers: the rest is zero, which changes nothing. Its scale has to
// be 1, since what this one is multiplied by becomes part of B.
func (a *Adapter) set(s *gomem.Session, vars []graph.Value) error {
	f, err := safetensors.Open(filepath.Join(a.Path, adapterWeights))
	if err != nil {
		return err
	}
	defer closeRead(f)
	used := 0
	for _, v := range vars {
		out := tensor.New(v.Type())
		if e, ok := a.tensors[v.Node.Name]; ok {
			read, err := f.Get(e.Name)
			if err == nil {
				err = a.pad(out, read, e.Name)
			}
			if err != nil {
				return err
			}
			used++
		}
		if err := s.Set(v, out); err != nil {
			return err
		}
	}
	if used < len(a.tensors) {
		return fmt.Errorf("has adapters of %d matrices, of which target_modules in %s names %d",
			len(a.tensors), adapterConfig, used)
	}
	return nil
}

// pad fills one of the two matrices, whose rank is the session's.
func (a *Adapter) pad(out, read tensor.View, name string) error {
	want, scale := slices.Clone(out.Type.Sizes()), float32(1)
	if strings.HasSuffix(name, ".lora_A.weight") {
		want[0] = a.Adapters.Rank
	} else {
		want[1], scale = a.Adapters.Rank, a.Adapters.Scale()
	}
	if !slices.Equal(read.Type.Sizes(), want) {
		return fmt.Errorf("tensor %s is %s: want %s", shownName(name), read.Type,
			tensor.Of(graph.F32, want...))
	}
	x := tensor.New(tensor.Of(graph.F32, want...))
	tensor.Convert(x, read, 0, x.Type.Elems())
	from, to, wide := x.F32(), out.F32(), out.Type.Size(1)
	for i := range want[0] {
		for k, v := range from[i*want[1] : (i+1)*want[1]] {
			to[i*wide+k] = v * scale
		}
	}
	return nil
}

// Adapt has the checkpoint's network have adapters, of which the first is in use: see
// [Public.Use]. Errors are *[ErrCheckpoint]s.
func (p *Public) Adapt(dirs ...string) error {
	union := nn.Adapters{}
	all := false
	for _, dir := range dirs {
		a, err := OpenAdapter(dir, p.Config)
		if err != nil {
			return err
		}
		p.adapters = append(p.adapters, a)
		union.Rank = max(union.Rank, a.Adapters.Rank)
		all = all || len(a.Adapters.Targets) == 0
		union.Targets = append(union.Targets, a.Adapters.Targets...)
	}
	if all {
		union.Targets = nil
	}
	if len(dirs) > 0 {
		p.Config.Training.Adapters = &union
	}
	return nil
}

// Use gives a session, whose graph is of the checkpoint's network, an adapter by its number.
func (p *Public) Use(s *gomem.Session, vars []graph.Value, adapter int) error {
	only := slices.DeleteFunc(slices.Clone(vars), func(v graph.Value) bool {
		return !nn.IsAdapter(v.Node.Name)
	})
	a := p.adapters[adapter]
	if err := a.set(s, only); err != nil {
		return &ErrCheckpoint{Path: a.Path, Err: bare(err)}
	}
	return nil
}
