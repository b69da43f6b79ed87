package gomem

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/mesh"
)

// mute is a network over which nothing is exchanged.
type mute struct{}

func (mute) Send(context.Context, Exchange) error { return errors.New("mute") }
func (mute) Await(context.Context, string) error  { return errors.New("mute") }
func (mute) Abandon()                             {}

// weighted is an evaluation of a matrix, a vector, and four experts that are placed.
func weighted() (*graph.Graph, Target) {
	g := graph.New()
	vars := []graph.Value{g.Variable("w", tensor.Of(graph.F32, 4, 8), graph.Init{}),
		g.Variable("b", tensor.Of(graph.F32, 4), graph.Init{})}
	for _, name := range []string{"e0", "e1", "e2", "e3"} {
		e := g.Variable(name, tensor.Of(graph.F32, 3), graph.Init{})
		g.Place(e, "experts", int(name[1]-'0'), 4)
		vars = append(vars, e)
	}
	sum := ops.Sum(vars[0])
	for _, v := range vars[1:] {
		sum = ops.Add(sum, ops.Sum(v))
	}
	return g, Evaluation(sum)
}

// saved is a file with values of the variables of a graph, in an element type, with checksums.
func saved(t *rapid.T, as tensor.DType) []byte {
	g, _ := weighted()
	rng := rand.New(rand.NewPCG(1, 2))
	var list []safetensors.Entry
	for _, n := range g.Variables() {
		list = append(list, safetensors.Entry{Name: n.Name,
			Type: graph.Type{DType: as, Shape: n.Out[0].Shape}})
	}
	var file buffer
	err := safetensors.WriteSealed(&file, list, nil,
		safetensors.Whole(func(e safetensors.Entry) ([]byte, error) {
			x := tensor.New(tensor.Of(tensor.F32, e.Type.Sizes()...))
			for i := range x.F32() {
				x.F32()[i] = rng.Float32()
			}
			return x.As(as).Data, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// buffer is a file in memory.
type buffer struct{ bytes.Buffer }

func (b *buffer) WriteAt(p []byte, at int64) (int, error) { return copy(b.Bytes()[at:], p), nil }

// counted counts bytes that are read.
type counted struct {
	io.ReaderAt
	bytes int64
}

func (c *counted) ReadAt(p []byte, at int64) (int, error) {
	c.bytes += int64(len(p))
	return c.ReaderAt.ReadAt(p, at)
}

// loaded has a process of a mesh load a file, and is what it read and has then of each variable.
func loaded(t *rapid.T, spec *mesh.Spec, rank int, file []byte) (parts []Part, values [][]byte,
	failed error) {
	g, target := weighted()
	s, err := Compile(context.Background(), g, Options{Mesh: spec, Rank: rank, Network: mute{}},
		target)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := &counted{ReaderAt: bytes.NewReader(file)}
	f, err := safetensors.Read(c, int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	c.bytes = 0
	report, failed := s.load(f, "weights", LoadOptions{Convert: true})
	elements := 0
	for _, v := range s.Variables() {
		x := tensor.New(v.Type())
		for i, b := range s.Blocks(v) {
			if !slices.Contains(b.Ranks, rank) {
				continue
			}
			part, err := s.Block(v, i)
			if err != nil {
				t.Fatal(err)
			}
			elements += part.Type.Elems()
			b.Into(x, part)
		}
		if s.Blocks(v) == nil {
			if x, err = s.Get(v); err != nil {
				t.Fatal(err)
			}
			elements += x.Type.Elems()
		}
		values = append(values, x.Data)
	}
	has := int64(elements) * f.Entries()[0].Type.DType.Size()
	if failed == nil && c.bytes != has {
		t.Fatalf("%s: process %d reads %d bytes, what it has are %d", spec, rank, c.bytes, has)
	}
	return report.Parts, values, failed
}

// TestProcessesLoadTheirOwn: of a file a process of a mesh reads what it has of the variables,
// whatever the layout and the elements' type, and nothing else. Together they have all of it,
// and notice any bit that has flipped.
func TestProcessesLoadTheirOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	rapid.Check(t, func(t *rapid.T) {
		as := rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.BF16, tensor.F64}).Draw(t, "as")
		layout := rapid.SampledFrom([][2]string{{"a:2x1", "w:0=a"}, {"a:4x1", "w:1=a,b:0=a"},
			{"a:2x2", "experts=a"}, {"a:2x1,b:2x2", "experts=a,w:1=b"},
			{"a:2x1,b:2x1", "w:0=a,w:1=b"}, {"a:4x1", "experts=a,w:1=a"}}).Draw(t, "layout")
		spec, err := mesh.Parse(layout[0], layout[1])
		if err != nil {
			t.Fatal(err)
		}
		file := saved(t, as)
		if flip := rapid.IntRange(-40, 48*8*int(as.Size())-1).Draw(t, "flip"); flip >= 0 {
			file[len(file)-1-flip/8] ^= 1 << (flip % 8)
			if err := together(t, spec, file, path); !errors.Is(err, safetensors.ErrChecksum) {
				t.Fatalf("%s: bit %d has flipped: %v", spec, flip, err)
			}
		} else if err := together(t, spec, file, path); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
	})
}

// together has all processes of a mesh load a file, of which the last has what all have read.
func together(t *rapid.T, spec *mesh.Spec, file []byte, path string) error {
	one, err := mesh.Parse("a:1", "w:0=a")
	if err != nil {
		t.Fatal(err)
	}
	_, want, damaged := loaded(t, one, 0, file)
	all := make([][]byte, len(want))
	var sums []Part
	for rank := range spec.Mesh.Processes() {
		parts, have, err := loaded(t, spec, rank, file)
		if err != nil {
			return err
		}
		for i, x := range have {
			all[i] = joined(all[i], x)
		}
		for i := range parts {
			if parts[i].Path = path; rank > 0 {
				parts[i].Sum ^= sums[i].Sum
			}
		}
		sums = parts
	}
	if damaged == nil && !slices.EqualFunc(all, want, bytes.Equal) {
		t.Fatalf("%s: processes have %v, not %v", spec, all, want)
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return CheckParts(sums)
}

// joined is what two have of a variable, of which each has 0 where it has nothing.
func joined(a, b []byte) []byte {
	out := slices.Clone(b)
	for i, x := range a {
		out[i] |= x
	}
	return out
}

// TestCheckParts: who cannot read a file, or does not find a tensor, says so in a line; of
// nothing there is nothing to say.
func TestCheckParts(t *testing.T) {
	if err := CheckParts(nil); err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "weights")
	if err := CheckParts([]Part{{Path: path}}); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file that is not there: ", err)
	}
	g, target := weighted()
	s, err := Compile(t.Context(), g, Options{}, target)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Save(path, SaveOptions{}), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, p := range [][]Part{{{path, "none", 0}}, {{path, "w", 1}},
		{{path, "w", 1}, {"x", "", 0}}} {
		err := CheckParts(p)
		if err == nil || !strings.Contains(err.Error(), "load "+path) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v", p, err)
		}
	}
}
