package onnx

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gomem/gomem/internal/regular"
)

// Elements gives a tensor of a model other elements, little endian, of its type and sizes; nil
// where it keeps those that it has.
type Elements func(t *Tensor) ([]byte, error)

// Rewrite writes the model of a file to path with other elements of some of its initialisers,
// those of graphs within it too. All else has the bytes that it had, fields that nobody here knows
// included. Elements that are in another file come into this one; where that would make it larger
// than a message can be, those of all large tensors go to a file beside it, path with ".data".
func (f *File) Rewrite(path string, elements Elements) error {
	return f.rewrite(path, elements, most)
}

// most is how many bytes of tensors a message has; there is room for the rest of it.
const most = mostBytes - 1<<26

func (f *File) rewrite(path string, elements Elements, most int64) error {
	file, err := regular.ReadFile(f.Path)
	if err != nil {
		return err
	}
	w := &rewriter{file: f, elements: elements}
	if err := w.measure(file); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if w.bytes <= most {
		return w.write(path, file)
	}
	w.beside = filepath.Base(path) + ".data"
	return regular.Replace(regular.OS{}, filepath.Dir(path), w.beside,
		func(out regular.File) error {
			w.out = out
			return w.write(path, file)
		})
}

// rewriter copies messages, and replaces tensors.
type rewriter struct {
	file     *File
	elements Elements
	bytes    int64 // of all tensors

	beside string    // the file that large tensors go to; "": there is none
	out    io.Writer // it
	at     int64     // bytes that it has
}

// large is from how many bytes on a tensor goes to the file beside.
const large = 1 << 10

// measure adds up what tensors take.
func (w *rewriter) measure(file []byte) error {
	m := *w
	_, err := m.model(file, func(message []byte) ([]byte, error) {
		t, err := decodeTensor(message)
		if err != nil || t.External == nil {
			w.bytes += int64(len(message))
			return message, err
		}
		kind, err := t.Kind()
		w.bytes += kind.Bytes()
		return message, err
	})
	return err
}

func (w *rewriter) write(path string, file []byte) error {
	out, err := w.model(file, w.tensor)
	if err == nil && len(out) >= mostBytes {
		err = errors.New("what is not tensors is larger than a message can be")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.file.Path, err)
	}
	return regular.Replace(regular.OS{}, filepath.Dir(path), filepath.Base(path),
		func(f regular.File) error {
			_, err := f.Write(out)
			return err
		})
}

// edit makes a message another.
type edit func(message []byte) ([]byte, error)

// edited copies a message, of which some fields are messages that are edited.
func edited(message []byte, edits map[protowire.Number]edit) ([]byte, error) {
	out := make([]byte, 0, len(message))
	for len(message) > 0 {
		num, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		change, ok := edits[num]
		if !ok || kind != protowire.BytesType {
			out, message = append(out, message[:n]...), message[n:]
			continue
		}
		_, _, tag := protowire.ConsumeTag(message)
		part, _ := protowire.ConsumeBytes(message[tag:n])
		part, err := change(part)
		if err != nil {
			return nil, err
		}
		out = protowire.AppendBytes(protowire.AppendTag(out, num, kind), part)
		message = message[n:]
	}
	return out, nil
}

// model is a model whose initialisers are edited.
func (w *rewriter) model(message []byte, tensor edit) ([]byte, error) {
	graph := w.graph(tensor, MaxDepth)
	return edited(message, map[protowire.Number]edit{7: graph})
}

// graph edits a graph's initialisers, and those of the graphs of its nodes.
func (w *rewriter) graph(tensor edit, depth int) edit {
	return func(message []byte) ([]byte, error) {
		if depth == 0 {
			return nil, fmt.Errorf("graphs within graphs are more than %d deep", MaxDepth)
		}
		within := w.graph(tensor, depth-1)
		attribute := func(message []byte) ([]byte, error) {
			return edited(message, map[protowire.Number]edit{6: within, 11: within})
		}
		node := func(message []byte) ([]byte, error) {
			return edited(message, map[protowire.Number]edit{5: attribute})
		}
		return edited(message, map[protowire.Number]edit{1: node, 5: tensor})
	}
}

// tensor is a tensor with its new elements, or those that it has in another file.
func (w *rewriter) tensor(message []byte) ([]byte, error) {
	t, err := decodeTensor(message)
	if err != nil {
		return nil, err
	}
	data, err := w.elements(t)
	if err == nil && data == nil && t.External != nil {
		data, err = w.file.external(t)
	}
	if err != nil {
		return nil, of("tensor", t.Name, err)
	}
	if data == nil {
		return message, nil
	}
	kind, err := t.Kind()
	if err == nil && kind.Bytes() != int64(len(data)) {
		err = fmt.Errorf("tensor %q is given %d bytes, and %s takes %d", t.Name, len(data), kind,
			kind.Bytes())
	}
	if err != nil {
		return nil, err
	}
	out, err := without(message)
	if err != nil {
		return nil, err
	}
	if w.beside == "" || len(data) < large {
		return protowire.AppendBytes(protowire.AppendTag(out, 9, protowire.BytesType), data), nil
	}
	out = w.entry(out, "location", w.beside)
	out = w.entry(out, "offset", strconv.FormatInt(w.at, 10))
	out = w.entry(out, "length", strconv.Itoa(len(data)))
	w.at += int64(len(data))
	_, err = w.out.Write(data)
	return protowire.AppendVarint(protowire.AppendTag(out, 14, protowire.VarintType), 1), err
}

// entry appends an entry of external_data.
func (w *rewriter) entry(out []byte, key, value string) []byte {
	var pair []byte
	pair = protowire.AppendString(protowire.AppendTag(pair, 1, protowire.BytesType), key)
	pair = protowire.AppendString(protowire.AppendTag(pair, 2, protowire.BytesType), value)
	return protowire.AppendBytes(protowire.AppendTag(out, 13, protowire.BytesType), pair)
}

// without is a tensor without elements, wherever they are.
func without(message []byte) (out []byte, err error) {
	for len(message) > 0 {
		num, _, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		switch num {
		case 4, 5, 6, 7, 9, 10, 11, 13, 14:
		default:
			out = append(out, message[:n]...)
		}
		message = message[n:]
	}
	return out, nil
}
