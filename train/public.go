package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
)

// The names of the files of a public checkpoint.
const (
	publicWeights   = "model.safetensors"
	publicIndex     = "model.safetensors.index.json"
	publicConfig    = "config.json"
	publicTokenizer = "tokenizer.json"
)

// Public is a language model as others publish it: a directory with model.safetensors,
// or several such files and an index, and beside them config.json and tokenizer.json.
type Public struct {
	Path      string // the directory, or the file of the weights
	Config    models.GPTConfig
	Tokenizer *data.Tokenizer // nil if there is none
	dir       string
	tensors   map[string]publicTensor
}

// publicTensor is a tensor in one of the files, by the parameter that it is.
type publicTensor struct {
	file string
	safetensors.Entry
}

// IsPublic reports whether there is a public checkpoint at path, rather than one of a
// run or nothing: a directory with its weights, or the file of these, which a config.json
// is beside or whose tensors are called as those of GPT-2.
func IsPublic(path string) bool {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return isRegular(path, publicWeights) || isRegular(path, publicIndex)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return false
	}
	defer closeRead(f)
	if _, ofRun := f.Metadata()[keyFormat]; ofRun {
		return false
	}
	all := map[string]publicTensor{}
	enterTensors(f, path, all)
	_, err = models.Shaped(sizesOf(all))
	return err == nil || isRegular(filepath.Dir(path), publicConfig)
}

func isRegular(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// OpenPublic finds out what is in a public checkpoint of GPT-2 or LLaMA: its directory,
// or the file of its weights. The weights themselves are read by [Public.Load]. Errors
// are *[ErrCheckpoint]s.
func OpenPublic(path string) (*Public, error) {
	p := &Public{Path: path, dir: path, tensors: map[string]publicTensor{}}
	if err := p.open(); err != nil {
		if _, ok := errors.AsType[*ErrCheckpoint](err); ok {
			return nil, err
		}
		return nil, &ErrCheckpoint{Path: path, Err: bare(err)}
	}
	return p, nil
}

func (p *Public) open() error {
	info, err := os.Stat(p.Path)
	if err != nil {
		return err
	}
	files := []string{p.Path}
	if info.IsDir() {
		if files, err = p.files(); err != nil {
			return err
		}
	} else {
		p.dir = filepath.Dir(p.Path)
	}
	all := map[string]publicTensor{}
	for _, file := range files {
		if err := listTensors(file, all); err != nil {
			return err
		}
	}
	if err := p.configure(all); err != nil {
		return err
	}
	for public, t := range all {
		if name := p.Config.ParameterName(public); name != "" {
			p.tensors[name] = t
		}
	}
	return p.findTokenizer()
}

// files are those of the weights in the directory.
func (p *Public) files() ([]string, error) {
	whole := filepath.Join(p.Path, publicWeights)
	text, err := regular.ReadFile(filepath.Join(p.Path, publicIndex))
	if errors.Is(err, fs.ErrNotExist) {
		return []string{whole}, nil
	}
	if err != nil {
		return nil, err
	}
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", publicIndex, err)
	}
	names := map[string]bool{}
	for _, name := range index.Files {
		if name != filepath.Base(name) {
			return nil, fmt.Errorf("%s: file %.60q is not beside it", publicIndex, name)
		}
		names[filepath.Join(p.Path, name)] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// listTensors enters the tensors of a file by their names.
func listTensors(file string, all map[string]publicTensor) error {
	f, err := safetensors.Open(file)
	if err != nil {
		return &ErrCheckpoint{Path: file, Err: bare(err)}
	}
	enterTensors(f, file, all)
	return f.Close()
}

func enterTensors(f *safetensors.File, file string, all map[string]publicTensor) {
	for _, e := range f.Entries() {
		all[e.Name] = publicTensor{file, e}
	}
}

// sizesOf gives the axes of tensors by their names.
func sizesOf(all map[string]publicTensor) func(name string) []int {
	return func(name string) []int {
		if t, ok := all[name]; ok {
			return t.Type.Sizes()
		}
		return nil
	}
}

// configure reads config.json. Without it GPT-2 is known by its tensors.
func (p *Public) configure(all map[string]publicTensor) error {
	text, err := regular.ReadFile(filepath.Join(p.dir, publicConfig))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Config, err = models.Shaped(sizesOf(all))
		return err
	case err == nil:
		p.Config, err = models.ParseGPTConfig(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", publicConfig, bare(err))
	}
	return nil
}

// findTokenizer reads tokenizer.json, if there is one.
func (p *Public) findTokenizer() error {
	if !isRegular(p.dir, publicTokenizer) {
		return nil
	}
	var err error
	p.Tokenizer, err = data.LoadTokenizer(filepath.Join(p.dir, publicTokenizer))
	if err != nil {
		return err
	}
	if used, have := p.Tokenizer.Used(), p.Config.Vocab; used > have {
		return fmt.Errorf("%s has %d tokens, the model has room for %d: give those that belong "+
			"together", publicTokenizer, used, have)
	}
	return nil
}

// Load gives parameters of a session the values of the checkpoint, one at a time. They
// are those of models.GPT, or of its decoder, with the checkpoint's configuration;
// numbers of other types are converted. A parameter that the checkpoint has not, or has
// with other axes, is an *[ErrCheckpoint], and then none is set.
func (p *Public) Load(s *gomem.Session, vars []graph.Value) error {
	_, err := p.load(s, vars)
	return err
}

// load is [Public.Load], and returns what it has read of parameters that are divided among
// processes.
func (p *Public) load(s *gomem.Session, vars []graph.Value) (parts []gomem.Part, err error) {
	if err := p.has(vars); err != nil {
		return nil, err
	}
	in := map[string][]graph.Value{} // by file
	for _, v := range vars {
		file := p.tensors[v.Node.Name].file
		in[file] = append(in[file], v)
	}
	for _, file := range slices.Sorted(maps.Keys(in)) {
		report, err := s.Load(file, gomem.LoadOptions{Partial: true, Convert: true,
			Only:   func(v graph.Value) bool { return slices.Contains(in[file], v) },
			Rename: p.parameter(file)})
		if err == nil && len(report.Loaded) < len(in[file]) {
			err = errors.New("has changed since it was opened")
		}
		if err != nil {
			return nil, &ErrCheckpoint{Path: file, Err: bare(err)}
		}
		parts = append(parts, report.Parts...)
	}
	return parts, nil
}

// has demands that the checkpoint has parameters.
func (p *Public) has(vars []graph.Value) error {
	for _, v := range vars {
		t, ok := p.tensors[v.Node.Name]
		if !ok {
			return &ErrCheckpoint{Path: p.Path, Err: fmt.Errorf("has no tensor %s",
				p.Config.PublicName(v.Node.Name))}
		}
		if !t.Type.SameShape(v.Type()) {
			return &ErrCheckpoint{Path: p.Path, Err: errors.New(difference{v.Node.Name, t.Type,
				v.Type()}.String())}
		}
	}
	return nil
}

// parameter names the parameter that a tensor of a file is, "" if it is none.
func (p *Public) parameter(file string) func(string) string {
	return func(public string) string {
		name := p.Config.ParameterName(public)
		if t := p.tensors[name]; t.file != file || t.Name != public {
			return ""
		}
		return name
	}
}

// closeRead closes a file that was only read, which has nothing to lose.
func closeRead(f *safetensors.File) {
	if f != nil {
		_ = f.Close()
	}
}

// WritePublic writes a model as a public checkpoint: model.safetensors, config.json
// and, if there is a tokenizer that has the format, tokenizer.json. parameters are those
// of models.GPT, and get reads them, one at a time. The directory may exist; each file
// is replaced at once. Errors are *[ErrCheckpoint]s.
func WritePublic(dir string, c models.GPTConfig, tok *data.Tokenizer, parameters []graph.Value,
	get func(v graph.Value) (gomem.Tensor, error)) error {
	if err := writePublic(osDisk{}, dir, c, tok, parameters, get); err != nil {
		return &ErrCheckpoint{Path: dir, Err: bare(err)}
	}
	return nil
}

func writePublic(d disk, dir string, c models.GPTConfig, tok *data.Tokenizer,
	parameters []graph.Value, get func(v graph.Value) (gomem.Tensor, error)) error {
	if err := d.MkdirAll(dir); err != nil {
		return err
	}
	byName := map[string]graph.Value{}
	var entries []safetensors.Entry
	for _, v := range parameters {
		name := c.PublicName(v.Node.Name)
		byName[name] = v
		entries = append(entries, safetensors.Entry{Name: name, Type: v.Type()})
	}
	weights := func(f file) error {
		return safetensors.Write(f, entries, map[string]string{"format": "pt"},
			func(e safetensors.Entry) ([]byte, error) {
				x, err := get(byName[e.Name])
				return x.Data, err
			})
	}
	if err := replacePublic(d, dir, publicWeights, weights); err != nil {
		return err
	}
	eos := int32(-1)
	if tok != nil {
		eos = tok.EOS()
		text, err := tok.MarshalText()
		if err == nil && json.Valid(text) {
			err = replacePublic(d, dir, publicTokenizer, writing(text))
		}
		if err != nil {
			return err
		}
	}
	text, err := c.PublicConfig(eos)
	if err != nil {
		return err
	}
	return replacePublic(d, dir, publicConfig, writing(text))
}

func writing(text []byte) func(file) error {
	return func(f file) error {
		_, err := f.Write(text)
		return err
	}
}

func replacePublic(d disk, dir, name string, content func(file) error) error {
	return regular.Replace(d, dir, name, fmt.Sprintf(".%s.%d.tmp", name, os.Getpid()), content)
}

// Export writes a run's checkpoint of models.GPT with this configuration as a public
// checkpoint. from is the checkpoint's file, or a directory for the latest in it. A
// directory with checkpoints of a run is refused: it would no longer be known as one.
func Export(dir, from string, c models.GPTConfig) error {
	if l, err := list(dir); err == nil && len(l.steps) > 0 {
		return &ErrCheckpoint{Path: dir, Err: errors.New("the directory has checkpoints of a " +
			"run: write to another directory")}
	}
	o, err := open(from)
	if err != nil {
		return err
	}
	defer o.close()
	m, err := models.GPT(c)
	if err != nil {
		return err
	}
	var parameters []graph.Value
	for _, n := range m.Graph.Variables() {
		if !n.State {
			parameters = append(parameters, n.Value(0))
		}
	}
	if err := o.has(parameters); err != nil {
		return err
	}
	tok := &data.Tokenizer{}
	if err := tok.UnmarshalText([]byte(o.Tokenizer)); err != nil {
		return o.fail("%w", err)
	}
	return WritePublic(dir, c, tok, parameters, func(v graph.Value) (gomem.Tensor, error) {
		return o.file.Get(v.Node.Name)
	})
}

// warmPublic gives a new run's parameters the values of a public checkpoint, all of them.
func (r *run) warmPublic() error {
	p, err := OpenPublic(r.Init)
	if err != nil {
		return err
	}
	var vars []graph.Value
	is := weight(r.Model.Graph)
	for _, v := range r.session.Variables() {
		if is(v) {
			vars = append(vars, v)
		}
	}
	if r.team.warm, err = p.load(r.session, vars); err != nil {
		return err
	}
	r.emit(Event{Kind: Init, Path: r.Init, Text: fmt.Sprintf("%d variables taken", len(vars))})
	return nil
}
