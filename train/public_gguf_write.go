package train

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	return e.writeGGUF(osDisk{}, path, store)
}

// exported is a model that is written for others.
type exported struct {
	config     models.GPTConfig
	tokenizer  *data.Tokenizer
	parameters []graph.Value
	windows    func(v graph.Value) (windows, error)
}

// writeGGUF writes it as a file of llama.cpp, which is replaced at once.
func (e exported) writeGGUF(d disk, path, store string) error {
	w := &ggufWriter{exported: e, of: map[string]written{}}
	err := w.describe(store)
	if err == nil {
		err = replacePublic(d, filepath.Dir(path), filepath.Base(path), func(f file) error {
			return gguf.Write(f, w.Values, w.tensors, w.put)
		})
	}
	return unwritten(path, err)
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

// put writes the bytes of a tensor.
func (w *ggufWriter) put(of gguf.Tensor, to io.Writer) error {
	t, ok := w.of[of.Name]
	if !ok {
		_, err := to.Write(w.Factors)
		return err
	}
	for _, v := range t.of {
		r, err := w.windows(v)
		if err != nil {
			return err
		}
		err = t.put(r, v, to)
		if err = cmp.Or(err, r.end()); err != nil {
			return err
		}
	}
	return nil
}

// put writes a parameter as the file has it, some rows at a time.
func (t written) put(r windows, v graph.Value, to io.Writer) error {
	whole := window{rows: t.Sizes[0], cols: v.Type().Elems() / t.Sizes[0]}
	rows := make([]int, whole.rows) // of the parameter, by those of the file
	for i := range rows {
		rows[t.Row(i)] = i
	}
	if len(t.Sizes) < 2 {
		return t.vector(r, rows, to)
	}
	var buffer tensor.View
	var packed []byte
	return whole.bands(func(w window) error {
		if len(buffer.Data) == 0 {
			buffer = tensor.New(tensor.Of(graph.F32, w.elems()))
		}
		x := some(buffer, 0, w.elems())
		if err := t.rows(r, w, rows, x); err != nil {
			return err
		}
		if t.format == 0 {
			_, err := to.Write(x.Data)
			return err
		}
		if bad, i := nonFinite(x); i >= 0 {
			return fmt.Errorf("parameter %s has an element that is %v, which %s has not",
				v.Node.Name, bad, t.format)
		}
		size, err := t.format.RowBytes(w.cols)
		if err != nil {
			return err
		}
		if packed == nil {
			packed = make([]byte, int64(w.rows)*size)
		}
		out := packed[:int64(w.rows)*size]
		packRows(t.format, out, x.F32(), w.rows)
		_, err = to.Write(out)
		return err
	})
}

// vector writes a parameter that is one.
func (t written) vector(r windows, places []int, to io.Writer) error {
	n := len(places)
	in, out := tensor.New(tensor.Of(graph.F32, n)), tensor.New(tensor.Of(graph.F32, n))
	if err := r.read(window{rows: 1, cols: n}, in); err != nil {
		return err
	}
	for i, from := range places {
		out.F32()[i] = in.F32()[from]
	}
	_, err := to.Write(out.Data)
	return err
}

// rows reads some rows as the file has them, which are those of a number of the parameter, or its
// columns.
func (t written) rows(r windows, w window, rows []int, x tensor.View) error {
	switch {
	case t.Turned:
		in := tensor.New(tensor.Of(graph.F32, w.elems()))
		if err := r.read(window{0, w.cols, w.row, w.rows}, in); err != nil {
			return err
		}
		for i, v := range in.F32() {
			x.F32()[i%w.rows*w.cols+i/w.rows] = v
		}
		return nil
	case t.Ordered():
		return r.read(w, x)
	}
	for i := range w.rows {
		from := window{rows[w.row+i], 1, 0, w.cols}
		if err := r.read(from, some(x, i*w.cols, w.cols)); err != nil {
			return err
		}
	}
	return nil
}
