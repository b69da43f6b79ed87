package gomem_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/test/trial"
)

// keeper is a session of variables w f32[2 3], b f32[3] and the optimizer's m f32[2 3],
// which starts with the seed.
func keeper(t *testing.T, seed uint64) (*gomem.Session, []graph.Value) {
	t.Helper()
	g := graph.New()
	init := graph.Init{Dist: graph.Normal, Scale: 1}
	w := g.Variable("net/w", tensor.Of(graph.F32, 2, 3), init)
	b := g.Variable("net/b", tensor.Of(graph.F32, 3), init)
	m := g.State("net/w/m", tensor.Of(graph.F32, 2, 3), init)
	s, err := gomem.Compile(context.Background(), g, gomem.Options{Seed: seed},
		gomem.Evaluation(ops.Add(ops.Sum(w), ops.Add(ops.Sum(b), ops.Sum(m)))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, []graph.Value{w, b, m}
}

// must is a variable's value.
func must(t *testing.T, s *gomem.Session, v graph.Value) gomem.Tensor {
	t.Helper()
	x, err := s.Get(v)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestLoadTakesWhatSaveWrote: a session that loads what another saved, under any options
// of either, goes on with its bits.
func TestLoadTakesWhatSaveWrote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		draw := randgraph.Random
		if rapid.IntRange(0, 3).Draw(t, "empty") == 0 {
			draw = randgraph.Empty
		}
		m := draw(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 8)
		open := func(seed uint64) *gomem.Session {
			o := trial.RandomOptions(t)
			o.Seed = seed
			s, err := gomem.Compile(ctx, m.Graph, o,
				gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		from, to := open(1), open(2)
		defer from.Close()
		defer to.Close()
		if _, err := from.Step(ctx, "train", trial.Feeds(m, 0)); err != nil {
			t.Fatal(err)
		}
		if err := from.Save(path, gomem.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		report, err := to.Load(path, gomem.LoadOptions{})
		if err != nil || len(report.Loaded) != len(from.Variables()) {
			t.Fatalf("%+v, %v", report, err)
		}
		want, err1 := from.Step(ctx, "train", trial.Feeds(m, 1))
		got, err2 := to.Step(ctx, "train", trial.Feeds(m, 1))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for i := range want {
			if !bytes.Equal(got[i].Data, want[i].Data) {
				t.Fatalf("fetch %d is %v, want %v", i, got[i], want[i])
			}
		}
	})
}

// TestLoadReports: what a file lacks, has beside, or has in another type is refused with
// nothing set, and listed, or listed only.
func TestLoadReports(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	only := func(names ...string) func(graph.Value) bool {
		return func(v graph.Value) bool { return slices.Contains(names, v.Node.Name) }
	}
	swap := func(a, b string) func(string) string {
		return strings.NewReplacer(a, b, b, a).Replace
	}
	all := []string{"net/b", "net/w", "net/w/m"}
	for name, c := range map[string]struct {
		save gomem.SaveOptions
		load gomem.LoadOptions
		want gomem.LoadReport
		err  string // of a load that is not partial
	}{
		"all": {want: gomem.LoadReport{Loaded: all}},
		"no state": {gomem.SaveOptions{NoState: true}, gomem.LoadOptions{NoState: true},
			gomem.LoadReport{Loaded: all[:2]}, ""},
		"no state is wanted": {load: gomem.LoadOptions{NoState: true},
			want: gomem.LoadReport{Loaded: all[:2]}},
		"no state is there": {save: gomem.SaveOptions{NoState: true},
			want: gomem.LoadReport{Loaded: all[:2], Missing: all[2:]},
			err:  "1 not in the file (net/w/m)"},
		"one": {gomem.SaveOptions{Only: only("net/b")}, gomem.LoadOptions{Only: only("net/b")},
			gomem.LoadReport{Loaded: all[:1]}, ""},
		"one of all": {load: gomem.LoadOptions{Only: only("net/w")},
			want: gomem.LoadReport{Loaded: all[1:2]}},
		"other names": {gomem.SaveOptions{Rename: swap("net/", "layer.0.")},
			gomem.LoadOptions{Rename: swap("net/", "layer.0.")}, gomem.LoadReport{Loaded: all}, ""},
		"foreign names": {save: gomem.SaveOptions{Rename: swap("net/w", "net/x")},
			want: gomem.LoadReport{Loaded: all[:1], Missing: all[1:],
				Leftover: []string{"net/x", "net/x/m"}},
			err: "2 not in the file (net/w, net/w/m), 2 in the file only (net/x, net/x/m)"},
		"another shape": {save: gomem.SaveOptions{Rename: swap("net/w", "net/b")},
			load: gomem.LoadOptions{NoState: true},
			want: gomem.LoadReport{Leftover: []string{"net/b/m"}, Other: []gomem.Other{
				{"net/b", tensor.Of(graph.F32, 2, 3), tensor.Of(graph.F32, 3)},
				{"net/w", tensor.Of(graph.F32, 3), tensor.Of(graph.F32, 2, 3)}}},
			err: "2 of another type (net/b is f32[2 3] in the file, f32[3] here), 1 in the file " +
				"only"},
	} {
		from, _ := keeper(t, 1)
		if err := from.Save(path, c.save); err != nil {
			t.Fatal(err)
		}
		c.load.Partial = true
		to, vars := keeper(t, 2)
		before := must(t, to, vars[2])
		got, err := to.Load(path, c.load)
		nothing := len(c.want.Loaded) == 0
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != nothing {
			t.Errorf("%s: %v, %s", name, err, diff)
		}
		if !slices.Contains(got.Loaded, "net/w/m") && !bytes.Equal(must(t, to, vars[2]).Data,
			before.Data) {
			t.Errorf("%s: a variable that is not loaded is set", name)
		}
		c.load.Partial = false
		to, vars = keeper(t, 2)
		before = must(t, to, vars[1])
		got, err = to.Load(path, c.load)
		var refused *gomem.LoadError
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.err != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.err) ||
			len(got.Loaded) > 0 || !cmp.Equal(refused.Report, got) ||
			!bytes.Equal(must(t, to, vars[1]).Data, before.Data)):
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestLoadConverts: files of other programs have their numbers in other types, which are
// converted where that is asked for. The file was made by PyTorch.
func TestLoadConverts(t *testing.T) {
	const path = "internal/safetensors/testdata/torch.safetensors"
	inf := math.Inf(1)
	values := map[string][]float64{ // as PyTorch's double() says
		"w": {1.5, -2.25, 3, 1.0002555517425873e+30, -0.00099945068359375, 65536},
		"h": {1.5, -2.25, 3, inf, -0.0010004043579101562, inf},
		"f": {1.5, -2.25, 3, 1.0000000150474662e+30, -0.0010000000474974513, 65520},
		"d": {4.71238898038469, -7.0685834705770345, 9.42477796076938, 3.1415927008628023e+30,
			-0.003141592802807437, 205837.15066320324},
		"i": {3, -4, 1 << 40}, "b": {1, 0, 1}, "n": {7, -8}, "u": {0, 1, 2, 3},
	}
	saved := map[string]graph.DType{"w": graph.BF16, "h": graph.F16, "f": graph.F32, "d": graph.F64,
		"i": graph.I64, "b": graph.Bool, "n": graph.I32, "u": graph.U8}
	for _, d := range tensor.DTypes() {
		others := len(values)
		for _, of := range saved {
			if of == d {
				others--
			}
		}
		g := graph.New()
		var fetches []graph.Value
		for name, x := range values {
			sizes := []int{len(x)}
			if len(x) == 6 {
				sizes = []int{2, 3}
			}
			fetches = append(fetches, g.Variable(name, tensor.Of(d, sizes...), graph.Init{}))
		}
		s, err := gomem.Compile(t.Context(), g, gomem.Options{}, gomem.Evaluation(fetches...))
		if err != nil {
			t.Fatal(err)
		}
		o := gomem.LoadOptions{Rename: func(name string) string {
			return strings.TrimPrefix(name, "model.")
		}}
		if _, err := s.Load(path, o); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("%d of another type", others)) ||
			!strings.Contains(err.Error(), "Convert") {
			t.Errorf("without Convert: %v", err)
		}
		o.Convert = true
		report, err := s.Load(path, o)
		if err != nil || len(report.Loaded) != 8 || len(report.Converted) != others {
			t.Fatalf("%+v, %v", report, err)
		}
		for _, v := range fetches {
			x := values[v.Node.Name]
			want := tensor.New(tensor.Of(graph.F64, len(x)))
			copy(want.F64(), x)
			want = want.To(saved[v.Node.Name]).To(d)
			if got := must(t, s, v); !bytes.Equal(got.Data, want.Data) {
				t.Errorf("%s is %v, want %v", v, got, want)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSaveRefuses: what cannot be saved is one line that names the file, and leaves what
// was there.
func TestSaveRefuses(t *testing.T) {
	dir := t.TempDir()
	s, _ := keeper(t, 1)
	good := filepath.Join(dir, "good")
	o := gomem.SaveOptions{Metadata: map[string]string{"format": "pt"}}
	if err := s.Save(good, o); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for text, attempt := range map[string]func(s *gomem.Session) error{
		"the name is used twice": func(s *gomem.Session) error {
			return s.Save(good, gomem.SaveOptions{Rename: func(string) string { return "w" }})
		},
		"is reserved": func(s *gomem.Session) error {
			return s.Save(good, gomem.SaveOptions{
				Metadata: map[string]string{"checksum.sha256": "x"}})
		},
		"no such file or directory": func(s *gomem.Session) error {
			return s.Save(filepath.Join(dir, "none", "x"), gomem.SaveOptions{})
		},
		"file exists": func(s *gomem.Session) error { return s.Save(dir, gomem.SaveOptions{}) },
	} {
		err := fmt.Sprint(attempt(s))
		if !strings.HasPrefix(err, "gomem: save "+dir) || !strings.Contains(err, text) ||
			strings.Contains(err, "\n") || strings.Contains(err, ".tmp") {
			t.Errorf("want %q, have %v", text, err)
		}
	}
	closed, _ := keeper(t, 1)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := closed.Save(good, gomem.SaveOptions{}); !errors.Is(err, gomem.ErrClosed) {
		t.Error(err)
	}
	if _, err := closed.Load(good, gomem.LoadOptions{}); !errors.Is(err, gomem.ErrClosed) {
		t.Error(err)
	}
	if have, err := os.ReadFile(good); err != nil || !bytes.Equal(have, want) {
		t.Errorf("the file is another: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("files left behind: %v, %v", left, err)
	}
}

// TestLoadRefuses: what is no such file, or a damaged one, is one line that names it; and
// the report says what was set before the damage was seen.
func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	s, vars := keeper(t, 1)
	path := filepath.Join(dir, "weights")
	if err := s.Save(path, gomem.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	damaged := filepath.Join(dir, "damaged")
	if err := os.WriteFile(damaged, data, 0o600); err != nil {
		t.Fatal(err)
	}
	to, ours := keeper(t, 2)
	report, err := to.Load(damaged, gomem.LoadOptions{})
	if err == nil || fmt.Sprint(err) != fmt.Sprintf("gomem: load %s: safetensors: tensor "+
		"\"net/w/m\": the checksum is wrong: the file is damaged", damaged) {
		t.Errorf("error is %v", err)
	}
	if !slices.Equal(report.Loaded, []string{"net/b", "net/w"}) ||
		!bytes.Equal(must(t, to, ours[0]).Data, must(t, s, vars[0]).Data) {
		t.Errorf("loaded %v", report.Loaded)
	}
	both := func(string) string { return "net/b" }
	if _, err := s.Load(path, gomem.LoadOptions{Partial: true, Rename: both}); err == nil ||
		!strings.Contains(err.Error(), "tensors net/b and net/w are both for variable net/b") {
		t.Errorf("error is %v", err)
	}
	var none *gomem.LoadError
	o := gomem.LoadOptions{Partial: true, Rename: strings.ToUpper}
	if _, err := s.Load(path, o); !errors.As(err, &none) || len(none.Report.Leftover) != 3 {
		t.Errorf("error is %v", err)
	}
	foreign(t, path)
	if report, err := s.Load(path, gomem.LoadOptions{Partial: true}); err != nil ||
		!slices.Equal(report.Loaded, []string{"net/b"}) ||
		!slices.Equal(report.Leftover, []string{"other"}) {
		t.Errorf("beside a foreign tensor: %+v, %v", report, err)
	}
	o.Rename = strings.NewReplacer("other", "net/w").Replace
	if _, err := s.Load(path, o); err == nil || !strings.Contains(err.Error(),
		`tensor "other": elements of type F8_E4M3`) || strings.Count(err.Error(), path) != 1 {
		t.Errorf("error is %v", err)
	}
	for _, bad := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := s.Load(bad, gomem.LoadOptions{}); err == nil ||
			strings.Count(err.Error(), bad) != 1 {
			t.Errorf("error is %v", err)
		}
	}
}

// foreign writes a file with a tensor of a type that there is not here.
func foreign(t *testing.T, path string) {
	t.Helper()
	const header = `{"net/b":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},` +
		`"other":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[12,16]}}`
	text := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	text = append(append(text, header...), make([]byte, 16)...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTornIsNotSaved: a variable that a step has left half-updated is not saved over one
// that is whole; what is loaded mends it.
func TestTornIsNotSaved(t *testing.T) {
	l := newLadder(t, gomem.Options{})
	path := filepath.Join(t.TempDir(), "weights")
	if err := l.Save(path, gomem.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	hook.Store(new(func(n int) error {
		if n == 1 {
			return errors.New("no luck")
		}
		return nil
	}))
	defer hook.Store(nil)
	if err := l.step(t.Context()); err == nil {
		t.Fatal("the step has worked")
	}
	hook.Store(nil)
	if err := l.Save(path, gomem.SaveOptions{}); !errors.Is(err, gomem.ErrTorn) {
		t.Errorf("saving gives %v", err)
	}
	if _, err := l.Load(path, gomem.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := l.step(t.Context()); err != nil {
		t.Error(err)
	}
}
