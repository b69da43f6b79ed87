package onnx

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gomem/gomem/graph/tensor"
)

// composed is a message of fields of bytes, each a number with what it has.
func composed(fields ...any) (out []byte) {
	for i := 0; i < len(fields); i += 2 {
		num := protowire.Number(fields[i].(int))
		switch v := fields[i+1].(type) {
		case int:
			out = protowire.AppendVarint(protowire.AppendTag(out, num, protowire.VarintType),
				uint64(v))
		case string:
			out = protowire.AppendString(protowire.AppendTag(out, num, protowire.BytesType), v)
		case []byte:
			out = protowire.AppendBytes(protowire.AppendTag(out, num, protowire.BytesType), v)
		}
	}
	return out
}

// bytesOf are elements as a file has them.
func bytesOf(x ...float32) []byte { return tensor.FromF32(x, len(x)).Data }

// weight is a tensor f32[n] of other elements, with a field that the schema does not have.
func weight(name string, n int, elements ...any) []byte {
	return composed(append([]any{1, n, 2, int(Float), 8, name, 99, "kept", 12, "a text"},
		elements...)...)
}

// sample is a model with weights of all kinds: of raw bytes, of numbers, in another file, and in
// the graph of a node's attribute.
func sample(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	large := make([]float32, 600)
	for i := range large {
		large[i] = float32(i)
	}
	if err := os.WriteFile(filepath.Join(dir, "more"), append([]byte("1234"), bytesOf(large...)...),
		0o644); err != nil {
		t.Fatal(err)
	}
	within := composed(2, "within", 5, weight("inner", 1, 9, bytesOf(7)))
	graph := composed(
		1, composed(1, "x", 2, "y", 4, "If", 5, composed(1, "body", 20, 5, 6, within), 77, "kept"),
		5, weight("raw", 2, 9, bytesOf(1, 2)),
		5, weight("numbers", 2, 4, bytesOf(3, 4)),
		5, weight("far", 600, 13, composed(1, "location", 2, "more"),
			13, composed(1, "offset", 2, "4"), 14, 1),
		78, 5, 2, "main")
	path = filepath.Join(dir, "model.onnx")
	file := composed(1, 10, 7, graph, 8, composed(2, 20), 79, "kept")
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// weightsOf are the numbers of a file's tensors.
func weightsOf(t *testing.T, path string) map[string][]float32 {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]float32{}
	list := append(f.Graph.Initializers, f.Graph.Nodes[0].Attributes[0].Graph.Initializers...)
	for _, x := range list {
		v, err := f.View(x)
		if err != nil {
			t.Fatal(err)
		}
		all[x.Name] = v.F32()
	}
	return all
}

// TestRewrite: weights that are given are replaced, wherever they are, the others stay, and all
// else is the same, to the byte where it can be; so where large ones go to a file beside.
func TestRewrite(t *testing.T) {
	path := sample(t)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string][]byte{"raw": bytesOf(5, 6), "numbers": bytesOf(7, 8), "inner": bytesOf(9)}
	for _, c := range []struct {
		most   int64
		beside bool
	}{{most, false}, {100, true}} {
		out := filepath.Join(t.TempDir(), "out.onnx")
		if err := f.rewrite(out, func(t *Tensor) ([]byte, error) { return given[t.Name], nil },
			c.most); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(out + ".data"); (err == nil) != c.beside {
			t.Errorf("a file beside, of %d bytes: %v", c.most, err)
		}
		all := weightsOf(t, out)
		for name, want := range given {
			if !bytes.Equal(bytesOf(all[name]...), want) {
				t.Errorf("%s is %v", name, all[name])
			}
		}
		if far := all["far"]; len(far) != 600 || far[599] != 599 {
			t.Errorf("what nobody has given is %v", far)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("kept")); n != 6 {
			t.Errorf("%d of 6 unknown fields are kept", n)
		}
	}
}

// TestRewriteNothing: where nothing is given and nothing is elsewhere, every byte stays.
func TestRewriteNothing(t *testing.T) {
	dir := t.TempDir()
	file := composed(1, 10, 7, composed(5, weight("w", 1, 4, bytesOf(1)), 1, composed(4, "Relu", 5,
		composed(1, "a", 3, 4))), 8, composed(2, 20))
	in, out := filepath.Join(dir, "in.onnx"), filepath.Join(dir, "out.onnx")
	if err := os.WriteFile(in, file, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Rewrite(out, func(*Tensor) ([]byte, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if have, err := os.ReadFile(out); err != nil || !bytes.Equal(have, file) {
		t.Errorf("%q, %v, want %q", have, err, file)
	}
}

// TestRewriteRefused: elements that do not fit, and trouble with them, leave nothing behind.
func TestRewriteRefused(t *testing.T) {
	path := sample(t)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	mine := errors.New("mine")
	for says, elements := range map[string]Elements{
		`tensor "raw": mine`: func(t *Tensor) ([]byte, error) {
			if t.Name == "raw" {
				return nil, mine
			}
			return nil, nil
		},
		"is given 4 bytes": func(*Tensor) ([]byte, error) { return bytesOf(1), nil },
	} {
		for _, limit := range []int64{math.MaxInt64, 1} {
			dir := t.TempDir()
			err := f.rewrite(filepath.Join(dir, "out.onnx"), elements, limit)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want %q", err, says)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		}
	}
}

// FuzzRewrite: a file that is read is written, and read again, with the same weights.
func FuzzRewrite(f *testing.F) {
	f.Add(composed(1, 10, 7, composed(5, weight("w", 1, 4, bytesOf(1))), 8, composed(2, 20)))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := Decode(file); err != nil {
			return
		}
		w := &rewriter{}
		out, err := w.model(file, func(m []byte) ([]byte, error) { return m, nil })
		if err != nil {
			t.Fatalf("it is read, but not copied: %v", err)
		}
		if _, err := Decode(out); err != nil {
			t.Fatalf("its copy is not read: %v", err)
		}
	})
}
