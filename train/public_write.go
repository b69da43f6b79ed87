package train

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
)

// WritePublic writes a model as a public checkpoint: model.safetensors, config.json
// and, if there is a tokenizer that has the format, tokenizer.json. parameters are those
// of models.GPT, and get reads them, one at a time. The directory may exist; each file
// is replaced at once. Errors are *[ErrCheckpoint]s.
func WritePublic(dir string, c models.GPTConfig, tok *data.Tokenizer, parameters []graph.Value,
	get func(v graph.Value) (gomem.Tensor, error)) error {
	put := func(v graph.Value, w io.Writer) error {
		x, err := get(v)
		if err == nil {
			_, err = w.Write(x.Data)
		}
		return err
	}
	return unwritten(dir, writePublic(osDisk{}, dir, c, tok, parameters, put))
}

// writePublic is [WritePublic] where put writes the bytes of a parameter.
func writePublic(d disk, dir string, c models.GPTConfig, tok *data.Tokenizer,
	parameters []graph.Value, put func(v graph.Value, w io.Writer) error) error {
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
			func(e safetensors.Entry, w io.Writer) error { return put(byName[e.Name], w) })
	}
	if err := replacePublic(d, dir, publicWeights, weights); err != nil {
		return err
	}
	var ends []int32
	if tok != nil {
		ends = tok.Ends()
		text, err := tok.MarshalText()
		if err == nil && json.Valid(text) {
			text, err = tok.MarshalJSON() // without what is ours
			if err == nil {
				err = replacePublic(d, dir, publicTokenizer, writing(text))
			}
		}
		if err != nil {
			return err
		}
	}
	text, err := c.PublicConfig(ends...)
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
	return regular.Replace(d, dir, name, content)
}

// Export writes a run's checkpoint of models.GPT with this configuration as a public
// checkpoint, adapters added to the matrices that they are of. from is the checkpoint's file, or
// a directory for the latest in it. A directory with checkpoints of a run is refused: it would no
// longer be known as one.
func Export(dir, from string, c models.GPTConfig) error {
	if l, err := list(dir); err == nil && len(l.steps) > 0 {
		return &ErrCheckpoint{Path: dir, Err: errors.New("the directory has checkpoints of a " +
			"run: write to another directory")}
	}
	x, err := OpenValues(from)
	if err != nil {
		return err
	}
	defer x.Close()
	if x.base != nil && sameFile(dir, x.base.dir) {
		return &ErrCheckpoint{Path: dir, Err: errors.New("the run's checkpoints are read with " +
			"what is there: write to another directory")}
	}
	e, err := x.exported(c)
	if err != nil {
		return err
	}
	put := func(v graph.Value, w io.Writer) error {
		r, err := e.windows(v)
		if err != nil {
			return err
		}
		return streamed(r, v.Type(), func(x tensor.View) error {
			_, err := w.Write(x.Data)
			return err
		})
	}
	return unwritten(dir, writePublic(osDisk{}, dir, e.config, e.tokenizer, e.parameters, put))
}

// exported is the model of a run with this configuration, adapters added to the matrices that they
// are of.
func (x *Values) exported(c models.GPTConfig) (e exported, err error) {
	trained := c.Store != "" && x.base == nil && c.Training.Adapters == nil
	if c.Store != "" && x.base == nil && !trained { // one of several workers'
		return e, x.from.fail("has matrices in %s itself, which no public checkpoint is made of: "+
			"write the adapters alone, by export --adapter", c.Store)
	}
	if !trained { // else matrices are of 16 bits, and so are the tensors
		c.Store = "" // what the run has held in few bits, its base has in full
	}
	m, err := models.GPT(c)
	if err != nil {
		return e, err
	}
	var parameters, adapters []graph.Value
	all := map[string]graph.Value{}
	for _, n := range m.Graph.Variables() {
		v := n.Value(0)
		all[n.Name] = v
		switch {
		case nn.IsAdapter(n.Name):
			adapters = append(adapters, v)
		case !n.State:
			parameters = append(parameters, v)
		}
	}
	own, _ := x.from.separate(append(adapters, parameters...))
	if err := x.from.has(own); err != nil {
		return e, err
	}
	if x.from.Tokenizer != "" {
		e.tokenizer = &data.Tokenizer{}
		if err := e.tokenizer.UnmarshalText([]byte(x.from.Tokenizer)); err != nil {
			return e, x.from.fail("%w", err)
		}
	}
	e.config, e.parameters, e.windows = c, parameters, merged(c, x, all)
	return e, nil
}
