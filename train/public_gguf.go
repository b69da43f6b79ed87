package train

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/gguf"
	"github.com/gomem/gomem/internal/llamacpp"
	"github.com/gomem/gomem/internal/quant"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
)

// inGGUF is how a file of llama.cpp has a tensor.
type inGGUF struct {
	llamacpp.Tensor
	file   *gguf.File   // its index
	format quant.Format // 0: F32
}

// openGGUF opens a file of llama.cpp and finds out what it says.
func openGGUF(path string) (*gguf.File, *llamacpp.Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, nil, err
	}
	m, err := llamacpp.Read(f)
	if err != nil {
		closeRead(f)
	}
	return f, m, err
}

// GGUFNetwork is the network of a file of llama.cpp; ok is false if there is none of these at the
// path. Its error is on one line.
func GGUFNetwork(path string) (p models.Published, ok bool, err error) {
	if !gguf.Is(path) {
		return p, false, nil
	}
	f, m, err := openGGUF(path)
	if err != nil {
		return p, true, bare(err)
	}
	closeRead(f)
	p, err = models.ParsePublished(m.Config)
	return p, true, err
}

// openGGUF finds out what a file of llama.cpp has: network, tensors and tokenizer.
func (p *Public) openGGUF() error {
	f, m, err := openGGUF(p.Path)
	if err != nil {
		return err
	}
	defer closeRead(f)
	p.dir = filepath.Dir(p.Path)
	c, err := models.ParsePublished(m.Config)
	if err != nil {
		return err
	}
	p.Config = c.GPTConfig
	all, index := &publicTensors{}, f.Index()
	for _, t := range m.Tensors {
		if all.all == nil {
			all.all = map[string]publicTensor{}
		}
		if err := all.put(fromGGUF(p.Path, index, t)); err != nil {
			return err
		}
	}
	if err := p.assign(all); err != nil {
		return err
	}
	return p.tokenizerOf(f, c.Ends)
}

// fromGGUF is a tensor of a file of llama.cpp.
func fromGGUF(path string, index *gguf.File, t llamacpp.Tensor) publicTensor {
	out := publicTensor{file: path, stored: &inGGUF{Tensor: t, file: index}}
	sizes := t.Sizes
	if t.Turned {
		sizes = []int{sizes[1], sizes[0]}
	}
	out.Entry = safetensors.Entry{Name: t.Public, Type: tensor.Of(graph.F32, sizes...)}
	if t.Type == gguf.F32 {
		return out
	}
	format, err := quant.Parse(strings.ToLower(t.Type.String()))
	if err != nil {
		out.foreign = t.Type.String()
	}
	out.stored.format = format
	return out
}

// AsStored has the network of [Public.Config] hold each matrix in the format that the file has it
// in, where that is one of few bits. Of directories there are none, and GPT-2 keeps its matrices as
// f32.
func (p *Public) AsStored() {
	stores := map[string]string{}
	for name, t := range p.tensors {
		if f := t.format(); f != 0 && t.Type.Rank() == 2 {
			stores[name] = f.String()
		}
	}
	if len(stores) > 0 && p.Config.Blocks == models.LlamaBlocks {
		p.Config.Stores = stores
	}
}

// ExportGGUF writes the checkpoint as a file of llama.cpp, matrices in the format store, "" for
// f32.
func (p *Public) ExportGGUF(path, store string) error {
	m, err := models.GPT(p.Config)
	if err != nil {
		return &ErrCheckpoint{Path: p.Path, Err: err}
	}
	if err := p.has(m.Parameters()); err != nil {
		return err
	}
	e := exported{p.Config, p.Tokenizer, m.Parameters(), p.windows}
	return e.writeGGUF(osDisk{}, path, store)
}

// tokenizerOf takes the tokenizer of a file of llama.cpp, or, if it is of a kind that is not known,
// the tokenizer.json beside it.
func (p *Public) tokenizerOf(f *gguf.File, ends []int32) error {
	text, err := llamacpp.Tokenizer(f.Metadata())
	if err != nil || text == nil {
		if err != nil {
			p.wordless = err
		}
		return p.findTokenizer(ends)
	}
	t := &data.Tokenizer{}
	if err := t.UnmarshalJSON(text); err != nil {
		p.wordless = err
		return p.findTokenizer(ends)
	}
	return p.useTokenizer(t, "its tokenizer", ends)
}

// Wordless says why there is no Tokenizer, and what would help.
func (p *Public) Wordless() error {
	if p.wordless != nil {
		return fmt.Errorf("%w: put the tokenizer.json that the model was trained with beside the "+
			"file", p.wordless)
	}
	return errors.New("has no tokenizer.json: put the one that the model was trained with beside " +
		"the weights")
}
