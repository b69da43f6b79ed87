package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/gguf"
	"github.com/gomem/gomem/internal/llamacpp"
	"github.com/gomem/gomem/internal/quant"
	"github.com/gomem/gomem/models"
)

// packings are the formats that files of llama.cpp have, with the type of their tensors, and what
// general.file_type calls a file of them.
var packings = map[quant.Format]struct {
	tensor gguf.Type
	file   uint32
}{
	quant.F16: {gguf.F16, 1}, quant.BF16: {gguf.BF16, 32}, quant.Q8_0: {gguf.Q8_0, 7},
	quant.Q4_0: {gguf.Q4_0, 2}, quant.Q4_K: {gguf.Q4_K, 15}, quant.Q6_K: {gguf.Q6_K, 18},
}

// ExportGGUF writes a run's checkpoint of models.GPT as a file of llama.cpp, as [Export] does a
// directory; matrices are in the format store, "" for f32, as [models.GPTConfig.Stored] says.
func ExportGGUF(path, from string, c models.GPTConfig, store string) error {
	x, err := OpenValues(from)
	if err != nil {
		return err
	}
	defer x.Close()
	if x.base != nil && sameFile(path, x.base.Path) {
		return &ErrCheckpoint{Path: path, Err: errors.New("the run's checkpoints are read with " +
			"this file: write to another")}
	}
	e, err := x.exported(c)
	if err != nil {
		return err
	}
	e.get = widened(e.get)
	return e.writeGGUF(osDisk{}, path, store)
}

// widened gets tensors as f32.
func widened(
	get func(v graph.Value) (tensor.View, error)) func(v graph.Value) (tensor.View, error) {
	return func(v graph.Value) (tensor.View, error) {
		x, err := get(v)
		if err != nil || x.Type.DType == graph.F32 {
			return x, err
		}
		wide := tensor.New(tensor.Of(graph.F32, x.Type.Sizes()...))
		tensor.Convert(wide, x, 0, x.Type.Elems())
		return wide, nil
	}
}

// exported is a model that is written for others.
type exported struct {
	config     models.GPTConfig
	tokenizer  *data.Tokenizer
	parameters []graph.Value
	get        func(v graph.Value) (tensor.View, error)
}

// writeGGUF writes it as a file of llama.cpp, which is replaced at once.
func (e exported) writeGGUF(d disk, path, store string) error {
	w := &ggufWriter{exported: e, of: map[string]written{}}
	err := w.describe(store)
	if err == nil {
		err = replacePublic(d, filepath.Dir(path), filepath.Base(path), func(f file) error {
			return gguf.Write(f, w.Values, w.tensors, w.bytes)
		})
	}
	if _, ours := errors.AsType[*ErrCheckpoint](err); err != nil && !ours {
		err = &ErrCheckpoint{Path: path, Err: bare(err)}
	}
	return err
}

// ggufWriter writes a model as a file of llama.cpp.
type ggufWriter struct {
	exported
	*llamacpp.Description
	tensors []gguf.Tensor
	of      map[string]written // by name
}

// written is where a tensor comes from, and how it is packed.
type written struct {
	llamacpp.Tensor
	of     []graph.Value // several are experts' matrices, one behind the other
	format quant.Format  // 0: f32
}

// describe finds out what the file has.
func (w *ggufWriter) describe(store string) error {
	var words []byte
	var ends []int32
	if t := w.tokenizer; t != nil {
		var err error
		if words, err = t.MarshalJSON(); err != nil || !json.Valid(words) {
			return fmt.Errorf("its tokenizer is none of a tokenizer.json: %w", err)
		}
		ends = t.Ends()
	}
	config, err := w.config.PublicConfig(ends...)
	if err != nil {
		return err
	}
	if w.Description, err = llamacpp.Describe(config, words, ends); err != nil {
		return err
	}
	if err := w.pack(store); err != nil {
		return err
	}
	for _, v := range w.parameters {
		if err := w.place(v); err != nil {
			return err
		}
	}
	if f := w.Factors; f != nil {
		w.tensors = append(w.tensors, gguf.Tensor{Name: llamacpp.FactorsName,
			Sizes: []int{len(f) / 4}})
	}
	return nil
}

// pack has matrices packed in a format.
func (w *ggufWriter) pack(store string) error {
	w.config.Store, w.config.Stores = store, nil
	kind := uint32(0)
	if store != "" {
		f, err := quant.Parse(store)
		if err != nil {
			return err
		}
		p, ok := packings[f]
		if !ok {
			return fmt.Errorf("a GGUF file has no %s: want f16, bf16, q8_0, q6_k, q4_k or q4_0", f)
		}
		kind = p.file
	}
	w.Values = append(w.Values, gguf.Pair{Key: "general.file_type", Value: kind},
		gguf.Pair{Key: "general.quantization_version", Value: uint32(2)})
	return nil
}

// place adds the tensor of a parameter. Positions that are learned stay f32.
func (w *ggufWriter) place(v graph.Value) error {
	t, err := w.Tensor(w.config.PublicName(v.Node.Name), v.Type().Sizes())
	if err != nil {
		return err
	}
	if x, ok := w.of[t.Name]; ok && t.Expert == len(x.of) {
		x.of = append(x.of, v)
		w.of[t.Name] = x
		return nil
	}
	x := written{Tensor: t, of: []graph.Value{v}}
	if len(t.Sizes) == 2 && v.Node.Name != "wpe/weight" {
		if f, err := quant.Parse(w.config.Stored(v.Node.Name, t.Sizes[1])); err == nil {
			x.format, x.Type = f, packings[f].tensor
		}
	}
	w.of[x.Name] = x
	whole := x.Tensor.Tensor
	if x.Experts > 0 {
		whole.Sizes = append([]int{x.Experts}, x.Sizes...)
	}
	w.tensors = append(w.tensors, whole)
	return nil
}

// bytes are those of a tensor.
func (w *ggufWriter) bytes(of gguf.Tensor) ([]byte, error) {
	t, ok := w.of[of.Name]
	if !ok {
		return w.Factors, nil
	}
	var all []byte
	for _, v := range t.of {
		one, err := w.matrix(t, v)
		if err != nil {
			return nil, err
		}
		if all = append(all, one...); len(t.of) == 1 {
			return one, nil
		}
	}
	return all, nil
}

// matrix is the bytes of a parameter.
func (w *ggufWriter) matrix(t written, v graph.Value) ([]byte, error) {
	read, err := w.get(v)
	if err != nil {
		return nil, err
	}
	x := tensor.New(tensor.Of(graph.F32, t.Sizes...))
	plain := tensor.New(tensor.Of(graph.F32, read.Type.Sizes()...))
	tensor.Convert(plain, read, 0, plain.Type.Elems())
	t.arranged(x.F32(), plain.F32())
	if t.format == 0 {
		return x.Data, nil
	}
	if bad, i := nonFinite(x); i >= 0 {
		return nil, fmt.Errorf("parameter %s has an element that is %v, which %s has not",
			v.Node.Name, bad, t.format)
	}
	rows := t.Sizes[0]
	size, err := t.format.RowBytes(t.Sizes[1])
	if err != nil {
		return nil, err
	}
	packed := make([]byte, int64(rows)*size)
	packRows(t.format, packed, x.F32(), rows)
	return packed, nil
}

// arranged puts the numbers of a parameter where the file has them.
func (t written) arranged(to, from []float32) {
	if t.Turned {
		rows, width := t.Sizes[0], t.Sizes[1]
		for i := range from {
			to[i%rows*width+i/rows] = from[i]
		}
		return
	}
	rows := t.Sizes[0]
	width := len(from) / rows
	for i := range rows {
		copy(to[t.Row(i)*width:][:width], from[i*width:])
	}
}
