package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/gomem/gomem/internal/legible"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/models"
)

// publicTensor is a tensor in one of the files.
type publicTensor struct {
	file string
	safetensors.Entry
	foreign string  // the type of one that cannot be read
	stored  *inGGUF // how a file of llama.cpp has it, whose numbers count as f32; nil: it is none
}

// publicTensors are those of all files, by their names.
type publicTensors struct {
	all   map[string]publicTensor
	index map[string]string // the file of each, if there is an index
}

// files are those of the weights in the directory: the whole one, or those of the index.
func (p *Public) files(all *publicTensors) ([]string, error) {
	text, err := regular.ReadFile(filepath.Join(p.Path, publicIndex))
	if isRegular(p.Path, publicWeights) {
		if err == nil {
			p.note("%s is passed over: %s is there", publicIndex, publicWeights)
		}
		return []string{filepath.Join(p.Path, publicWeights)}, nil
	}
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("neither %s nor %s is there", publicWeights, publicIndex)
		}
		return nil, err
	}
	var index struct {
		Files weightMap `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", publicIndex, legible.Error(err, 200))
	}
	if len(index.Files) == 0 {
		return nil, fmt.Errorf("%s: its weight_map names no files", publicIndex)
	}
	all.index = map[string]string{}
	names := map[string]bool{}
	for tensor, name := range index.Files {
		if name != filepath.Base(name) || name == "." || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%s: file %.60q is not beside it", publicIndex, name)
		}
		file := filepath.Join(p.Path, name)
		all.index[tensor], names[file] = file, true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// weightMap is the file of each tensor. One that is there twice is refused, as in a file's header:
// two readers could disagree about which counts.
type weightMap map[string]string

// UnmarshalJSON reads an object of texts.
func (m *weightMap) UnmarshalJSON(text []byte) error {
	if *m != nil {
		return errors.New("weight_map is there twice")
	}
	*m = weightMap{}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("weight_map is no JSON object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name := key.(string) // what else a member's name may be is a fault of the JSON
		var file string
		if err := d.Decode(&file); err != nil {
			return fmt.Errorf("the file of tensor %s is no text", shownName(name))
		}
		if _, twice := (*m)[name]; twice {
			return fmt.Errorf("tensor %s is there twice", shownName(name))
		}
		(*m)[name] = file
	}
	return nil
}

// list enters the tensors of files, and demands those of the index.
func (all *publicTensors) list(files []string) error {
	for _, file := range files {
		f, err := safetensors.Open(file)
		if err != nil {
			return &ErrCheckpoint{Path: file, Err: bare(err)}
		}
		err = all.enter(f, file)
		closeRead(f)
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all.index)) {
		if _, ok := all.all[name]; !ok {
			return fmt.Errorf("%s: tensor %s is not in %s", publicIndex,
				shownName(name), legible.Text(filepath.Base(all.index[name])))
		}
	}
	return nil
}

// enter enters the tensors of a file, but for those that the index has in another.
func (all *publicTensors) enter(f *safetensors.File, file string) error {
	if all.all == nil {
		all.all = map[string]publicTensor{}
	}
	for _, e := range f.Entries() {
		if err := all.put(publicTensor{file: file, Entry: e}); err != nil {
			return err
		}
	}
	for _, t := range f.Foreign() {
		e := safetensors.Entry{Name: t.Name}
		if err := all.put(publicTensor{file: file, Entry: e, foreign: t.Type}); err != nil {
			return err
		}
	}
	return nil
}

// shownName is a tensor's name as errors and notes show it.
func shownName(name string) string { return legible.Cut(name, 100) }

func (all *publicTensors) put(t publicTensor) error {
	if file, listed := all.index[t.Name]; listed && file != t.file {
		return nil
	}
	if other, twice := all.all[t.Name]; twice {
		return fmt.Errorf("tensor %s is in %s and in %s, and %s does not say which counts",
			shownName(t.Name), legible.Text(filepath.Base(other.file)),
			legible.Text(filepath.Base(t.file)), publicIndex)
	}
	all.all[t.Name] = t
	return nil
}

// sizes are the axes of a tensor, nil if there is none of the name.
func (all *publicTensors) sizes(name string) []int {
	if t, ok := all.all[name]; ok && t.foreign == "" {
		return t.Type.Sizes()
	}
	return nil
}

// assign finds the parameter that each tensor is. One that is none, but would be part of
// another network, is refused; what belongs to no network of the kind is said.
func (p *Public) assign(all *publicTensors) error {
	var strange, beside, again []string
	for _, public := range slices.Sorted(maps.Keys(all.all)) {
		switch p.Config.Role(public) {
		case models.Learnt:
			if err := p.take(all.all[public]); err != nil {
				return err
			}
		case models.Repeated:
			again = append(again, public)
		case models.Strange:
			strange = append(strange, public)
		case models.Beside:
			beside = append(beside, public)
		}
	}
	if len(strange) > 0 {
		return fmt.Errorf("has %d tensors that its network, %s with %d layers, does not have "+
			"(%s): it is one that is not built here", len(strange), p.Config.Blocks,
			p.Config.Layers, firstOf(strange))
	}
	if len(beside) > 0 {
		p.note("%d tensors are left over (%s)", len(beside), firstOf(beside))
	}
	for _, public := range again {
		if err := p.repeats(all.all[public]); err != nil {
			return err
		}
	}
	return nil
}

// take enters a parameter.
func (p *Public) take(t publicTensor) error {
	name := p.Config.ParameterName(t.Name)
	other, twice := p.tensors[name]
	switch {
	case t.foreign != "" && t.stored != nil:
		return fmt.Errorf("tensor %s is %s: want F32, F16, BF16, Q8_0, Q4_0, Q4_K or Q6_K, as "+
			"llama-quantize --allow-requantize makes them", shownName(t.stored.Name), t.foreign)
	case t.foreign != "":
		return fmt.Errorf("tensor %s is %s: want floating-point numbers of 16, 32 or 64 bits",
			shownName(t.Name), t.foreign)
	case !t.Type.DType.Floating():
		return fmt.Errorf("tensor %s is %s: want floating-point numbers", shownName(t.Name), t.Type)
	case twice:
		return fmt.Errorf("tensors %s and %s are the same parameter", shownName(other.Name),
			shownName(t.Name))
	}
	p.tensors[name] = t
	return nil
}

// repeats demands of a logits' matrix that it is the embedding, since the configuration says
// that the two are one.
func (p *Public) repeats(t publicTensor) error {
	table, ok := p.tensors[p.Config.EmbeddingName()]
	if !ok {
		return nil // and Load says so
	}
	same := t.foreign == "" && t.Type.Equal(table.Type) && t.bytes() == table.bytes()
	var err error
	if same {
		same, err = sameBytes(t, table)
	}
	if err == nil && !same {
		err = fmt.Errorf("tensor %s is another than %s, which tie_word_embeddings says it is",
			shownName(t.Name), shownName(table.Name))
	}
	return err
}

// sameBytes compares tensors of one type, a piece at a time.
func sameBytes(a, b publicTensor) (bool, error) {
	f, err := a.open()
	if err != nil {
		return false, err
	}
	defer closeRead(f)
	g, err := b.open()
	if err != nil {
		return false, err
	}
	defer closeRead(g)
	const piece = 1 << 20
	x, y := make([]byte, piece), make([]byte, piece)
	for at, all := int64(0), a.bytes(); at < all; at += piece {
		n := min(piece, all-at)
		err := errors.Join(a.part(f, x[:n], at), b.part(g, y[:n], at))
		if err != nil || !bytes.Equal(x[:n], y[:n]) {
			return false, err
		}
	}
	return true, nil
}
