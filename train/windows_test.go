package train

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/models"
)

// TestWindows: whatever part of a parameter is read, its numbers are those of the whole, which are
// known: of files of llama.cpp whose rows are moved, turned and of few bits, and of safetensors.
func TestWindows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, arch := range []string{"gpt2", "llama"} {
		for _, store := range []string{"", "f16", "q8_0", "dir"} {
			p := openGGUFs(t, arch)
			m, err := models.GPT(p.Config)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "written")
			if store == "dir" {
				get := func(v graph.Value) (gomem.Tensor, error) { return p.value(v) }
				err = WritePublic(path, p.Config, p.Tokenizer, m.Parameters(), get)
			} else {
				err = p.ExportGGUF(path, store)
			}
			if err != nil {
				t.Fatal(err)
			}
			if p, err = OpenPublic(path); err != nil {
				t.Fatal(err)
			}
			for _, v := range m.Parameters() {
				testWindows(t, rng, p, v, store == "" || store == "dir")
			}
		}
	}
}

// testWindows reads windows of a parameter, whose numbers are those of the test's files, if exact.
func testWindows(t *testing.T, rng *rand.Rand, p *Public, v graph.Value, exact bool) {
	t.Helper()
	whole, err := p.value(v)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range whole.F32() {
		if want := ggufNumber(p.Config.PublicName(v.Node.Name), i); exact && x != want {
			t.Fatalf("%s: %v for element %d, want %v", v.Node.Name, x, i, want)
		}
	}
	of := wholeOf(v.Type())
	if of.rows == 1 {
		return
	}
	r, err := p.windows(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []windows{r, &ahead{windows: r, of: of}} {
		for range 6 {
			w := window{row: rng.IntN(of.rows), cols: of.cols}
			w.rows = 1 + rng.IntN(of.rows-w.row)
			if _, all := r.(*ahead); !all {
				w.col = rng.IntN(of.cols)
				w.cols = 1 + rng.IntN(of.cols-w.col)
			}
			x := tensor.New(tensor.Of(graph.F32, w.elems()))
			if err := r.read(w, x); err != nil {
				t.Fatal(err)
			}
			for i, got := range x.F32() {
				at := (w.row+i/w.cols)*of.cols + w.col + i%w.cols
				if want := whole.F32()[at]; got != want {
					t.Fatalf("%s: %+v has %v at %d, want %v", v.Node.Name, w, got, i, want)
				}
			}
		}
	}
	_ = r.end() // not all of it was read once
}

// TestWrittenRows: rows that are written to a file of llama.cpp some at a time are those that are
// written at once.
func TestWrittenRows(t *testing.T) {
	for _, arch := range []string{"gpt2", "llama"} {
		p := openGGUFs(t, arch)
		m, err := models.GPT(p.Config)
		if err != nil {
			t.Fatal(err)
		}
		w := &ggufWriter{of: map[string]written{},
			exported: exported{p.Config, p.Tokenizer, m.Parameters(), p.windows}}
		if err := w.describe(""); err != nil {
			t.Fatal(err)
		}
		for name, x := range w.of {
			if len(x.Sizes) < 2 {
				continue
			}
			r, err := p.windows(x.of[0])
			if err != nil {
				t.Fatal(err)
			}
			rows := make([]int, x.Sizes[0])
			for i := range rows {
				rows[x.Row(i)] = i
			}
			all := window{rows: x.Sizes[0], cols: x.Sizes[1]}
			at := func(w window) []float32 {
				out := tensor.New(tensor.Of(graph.F32, w.elems()))
				if err := x.rows(r, w, rows, out); err != nil {
					t.Fatal(err)
				}
				return out.F32()
			}
			var parts []float32
			for i := 0; i < all.rows; i += 3 {
				parts = append(parts, at(window{i, min(3, all.rows-i), 0, all.cols})...)
			}
			if !slices.Equal(parts, at(all)) {
				t.Errorf("%s %s: others in parts", arch, name)
			}
			_ = r.end()
		}
	}
}

// TestBands: bands make a window up, in order, and none but of a single row is larger than a piece.
func TestBands(t *testing.T) {
	for _, of := range []window{{0, 7, 0, 3}, {0, 1000, 0, 700}, {5, 3, 0, packPiece + 1},
		{0, 1, 0, 9}} {
		next := of.row
		_ = of.bands(func(w window) error {
			if w.row != next || w.col != of.col || w.cols != of.cols || w.rows < 1 ||
				w.rows > 1 && w.elems() > packPiece {
				t.Errorf("of %+v there is %+v", of, w)
			}
			next += w.rows
			return nil
		})
		if next != of.row+of.rows {
			t.Errorf("of %+v all is there up to row %d", of, next)
		}
	}
}

// zeros are the windows of a matrix of zeros.
type zeros struct{}

func (zeros) read(_ window, x tensor.View) error { clear(x.Data); return nil }
func (zeros) end() error                         { return nil }

// TestSummedInParts: adapters add to a part what they add to the whole, which is a plain sum.
func TestSummedInParts(t *testing.T) {
	const rank, in, out = 2, 5, 7
	rng := rand.New(rand.NewPCG(3, 4))
	draw := func(rows, cols int) tensor.View {
		x := tensor.New(tensor.Of(graph.F32, rows, cols))
		for i := range x.F32() {
			x.F32()[i] = float32(rng.IntN(9) - 4)
		}
		return x
	}
	for _, rows := range []bool{true, false} {
		m := &summed{windows: zeros{}, a: draw(rank, in), b: draw(out, rank), scale: 2, rows: rows}
		of := window{rows: in, cols: out}
		if rows {
			of = window{rows: out, cols: in}
		}
		for range 9 {
			w := window{row: rng.IntN(of.rows), col: rng.IntN(of.cols)}
			w.rows, w.cols = 1+rng.IntN(of.rows-w.row), 1+rng.IntN(of.cols-w.col)
			x := tensor.New(tensor.Of(graph.F32, w.elems()))
			if err := m.read(w, x); err != nil {
				t.Fatal(err)
			}
			for k, got := range x.F32() {
				o, i := w.row+k/w.cols, w.col+k%w.cols
				if !rows {
					o, i = i, o
				}
				want := float32(0)
				for r := range rank {
					want += float32(2 * m.b.F32()[o*rank+r] * m.a.F32()[r*in+i])
				}
				if got != want {
					t.Fatalf("rows %v, %+v: %v at %d, want %v", rows, w, got, k, want)
				}
			}
		}
	}
}
