package train

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/gguf"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
)

// The names of the files of a public checkpoint.
const (
	publicWeights    = "model.safetensors"
	publicIndex      = "model.safetensors.index.json"
	publicConfig     = "config.json"
	publicGeneration = "generation_config.json"
	publicTokenizer  = "tokenizer.json"
)

// Public is a language model as others publish it: a directory with model.safetensors,
// or several such files and an index, and beside them config.json and tokenizer.json; or a file of
// llama.cpp, which has all of it.
type Public struct {
	Path      string // the directory, or the file of the weights
	Config    models.GPTConfig
	Tokenizer *data.Tokenizer // nil if there is none
	Notes     []string        // what was passed over, a line each

	// Packed is told how many elements of all that are held in few bits are packed, while they
	// are read; nil tells nobody.
	Packed func(done, all int64)

	dir      string
	wordless error // why a file's own tokenizer is not taken
	adapters []*Adapter
	tensors  map[string]publicTensor // by the parameter that they are
}

// IsPublic reports whether there is a public checkpoint at path, rather than one of a
// run or nothing: a directory with its weights, or the file of these, which a config.json
// is beside or whose tensors are called as those of GPT-2; or a file of llama.cpp.
func IsPublic(path string) bool {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return isRegular(path, publicWeights) || isRegular(path, publicIndex)
	}
	if gguf.Is(path) {
		return true
	}
	f, err := safetensors.Open(path)
	if err != nil {
		return false
	}
	defer closeRead(f)
	if _, ofRun := f.Metadata()[keyFormat]; ofRun {
		return false
	}
	var all publicTensors
	if err := all.enter(f, path); err != nil {
		return false
	}
	_, err = models.Shaped(all.sizes)
	return err == nil || isRegular(filepath.Dir(path), publicConfig)
}

func isRegular(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && info.Mode().IsRegular()
}

// OpenPublic finds out what is in a public checkpoint of a decoder: its directory, or the file of
// its weights, or a file of llama.cpp (GGUF). The weights themselves are read by [Public.Load].
// What it says of a network that models.GPT does not build, in config.json or by tensors that this
// has not, is refused by its name. Errors are *[ErrCheckpoint]s.
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

// PublicTokenizer reads the tokenizer of a public checkpoint, of which no weights need be there:
// of its directory, of its config.json, or of a file of llama.cpp. Errors are *[ErrCheckpoint]s.
func PublicTokenizer(path string) (*data.Tokenizer, error) {
	p := &Public{Path: path, dir: path, tensors: map[string]publicTensor{}}
	info, err := os.Stat(path)
	switch {
	case err != nil:
	case !info.IsDir() && gguf.Is(path):
		err = p.openGGUF()
	default:
		if !info.IsDir() {
			p.dir = filepath.Dir(path)
		}
		var ends []int32
		if ends, err = p.configure(&publicTensors{}); err == nil {
			err = p.findTokenizer(ends)
		}
	}
	if err == nil && p.Tokenizer == nil {
		err = p.Wordless()
	}
	if err != nil {
		return nil, &ErrCheckpoint{Path: path, Err: bare(err)}
	}
	return p.Tokenizer, nil
}

func (p *Public) open() error {
	info, err := os.Stat(p.Path)
	if err != nil {
		return err
	}
	if !info.IsDir() && gguf.Is(p.Path) {
		return p.openGGUF()
	}
	all := &publicTensors{}
	files := []string{p.Path}
	if info.IsDir() {
		if files, err = p.files(all); err != nil {
			return err
		}
	} else {
		p.dir = filepath.Dir(p.Path)
	}
	if err := all.list(files); err != nil {
		return err
	}
	ends, err := p.configure(all)
	if err != nil {
		return err
	}
	if err := p.assign(all); err != nil {
		return err
	}
	return p.findTokenizer(ends)
}

// note says what was passed over.
func (p *Public) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// configure reads config.json. Without it GPT-2 is known by its tensors. ends are the ids
// that end a text, if it says.
func (p *Public) configure(all *publicTensors) (ends []int32, err error) {
	text, err := regular.ReadFile(filepath.Join(p.dir, publicConfig))
	var c models.Published
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Config, err = models.Shaped(all.sizes)
		return nil, err
	case err == nil:
		c, err = models.ParsePublished(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", publicConfig, bare(err))
	}
	p.Config = c.GPTConfig
	if len(c.Unknown) > 0 {
		p.note("%s: nothing is known of %s", publicConfig, strings.Join(c.Unknown, ", "))
	}
	return p.ends(c.Ends)
}

// ends are the ids that end a text, by generation_config.json if that says.
func (p *Public) ends(ends []int32) ([]int32, error) {
	text, err := regular.ReadFile(filepath.Join(p.dir, publicGeneration))
	if errors.Is(err, fs.ErrNotExist) {
		return ends, nil
	}
	var better []int32
	if err == nil {
		better, err = models.PublishedEnds(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", publicGeneration, bare(err))
	}
	if len(better) > 0 {
		return better, nil
	}
	return ends, nil
}

// findTokenizer reads tokenizer.json, if there is one, whose texts end with some ids.
func (p *Public) findTokenizer(ends []int32) error {
	if !isRegular(p.dir, publicTokenizer) {
		return nil
	}
	t, err := data.LoadTokenizer(filepath.Join(p.dir, publicTokenizer))
	if err != nil {
		return err
	}
	return p.useTokenizer(t, publicTokenizer, ends)
}

// useTokenizer takes a tokenizer, which errors call something.
func (p *Public) useTokenizer(t *data.Tokenizer, called string, ends []int32) error {
	if used, have := t.Used(), p.Config.Vocab; used > have {
		return fmt.Errorf("%s has %d tokens, the model has room for %d: give those that belong "+
			"together", called, used, have)
	}
	p.Tokenizer = t.Ending(ends...)
	for _, id := range ends {
		if !slices.Contains(p.Tokenizer.Ends(), id) {
			p.note("eos_token_id %d is no token of %s", id, called)
		}
	}
	return nil
}

// Load gives parameters of a session the values of the checkpoint, one at a time. They
// are those of models.GPT, or of its decoder, with the checkpoint's configuration;
// numbers of other types are converted. A parameter that the checkpoint has not, or has
// with other axes, is an *[ErrCheckpoint], and then none is set.
func (p *Public) Load(s *gomem.Session, vars []graph.Value) error {
	if len(p.adapters) > 0 {
		if err := p.Use(s, vars, 0); err != nil {
			return err
		}
		vars = slices.DeleteFunc(slices.Clone(vars), func(v graph.Value) bool {
			return nn.IsAdapter(v.Node.Name)
		})
	}
	_, err := p.load(s, vars)
	return err
}

// load is [Public.Load], and returns what it has read of parameters that are divided among
// processes.
func (p *Public) load(s *gomem.Session, vars []graph.Value) (parts []gomem.Part, err error) {
	if err := p.has(vars); err != nil {
		return nil, err
	}
	formats := formatsOf(vars)
	packed := p.packing(vars, formats)
	in := map[string][]graph.Value{} // by file
	for _, v := range vars {
		if format := formats[v.Node]; format != "" {
			if err := p.pack(s, v, format, packed); err != nil {
				return nil, err
			}
			continue
		}
		t := p.tensors[v.Node.Name]
		if t.stored == nil {
			in[t.file] = append(in[t.file], v)
			continue
		}
		if v.Type().DType == graph.BF16 { // a matrix that is trained as it is stored
			if err := p.pack(s, v, "bf16", func(int) {}); err != nil {
				return nil, err
			}
			continue
		}
		if err := p.set(s, v); err != nil {
			return nil, err
		}
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

// set gives a variable the value of a tensor of llama.cpp.
func (p *Public) set(s *gomem.Session, v graph.Value) error {
	if v.Type().Rank() != 2 || v.Type().DType != graph.F32 {
		x, err := p.value(v)
		if err != nil {
			return err
		}
		return s.Set(v, x)
	}
	r, err := p.windows(v)
	if err != nil {
		return err
	}
	whole := wholeOf(v.Type())
	if p.tensors[v.Node.Name].stored.Turned {
		r = &ahead{windows: r, of: whole}
	}
	err = s.Write(v, func(part tensor.View, at int64) error {
		n := part.Type.Elems() / whole.cols
		return r.read(window{int(at) / whole.cols, n, 0, whole.cols}, part)
	})
	return cmp.Or(err, r.end())
}

// has demands that the checkpoint has parameters.
func (p *Public) has(vars []graph.Value) error {
	formats := formatsOf(vars)
	for _, v := range vars {
		t, ok := p.tensors[v.Node.Name]
		if !ok {
			return &ErrCheckpoint{Path: p.Path, Err: fmt.Errorf("has no tensor %s",
				p.Config.PublicName(v.Node.Name))}
		}
		if !held(formats[v.Node], t.Type).SameShape(v.Type()) {
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
func closeRead(f io.Closer) { _ = f.Close() }

// without are the tensors of parameters that are none of a model's variables.
func (p *Public) without(vars []graph.Value) []string {
	left := maps.Clone(p.tensors)
	for _, v := range vars {
		delete(left, v.Node.Name)
	}
	var names []string
	for _, t := range left {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}
