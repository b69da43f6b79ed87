package train

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/nn"
)

// TestInit: a run begins with the weights of another, whose optimizer it leaves; it says
// what it took, under other names too, and goes on like any other.
func TestInit(t *testing.T) {
	first := toyOptions(t, toy(toyVocab, unigram{}))
	first.Save = t.TempDir()
	trained, _ := mustRun(t, first)

	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Init, o.Steps = first.Save, 1
	var told []string
	o.Observe = func(e Event) {
		if e.Kind == Init {
			told = append(told, e.Text)
		}
	}
	warm, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if warm.LossFirst > 0.99*trained.LossFirst || len(told) != 1 ||
		told[0] != "1 variables taken" {
		t.Errorf("%+v after %+v; told %q", warm, trained, told)
	}
	o.Resume = first.Save
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "resumed") {
		t.Errorf("both are taken: %v", err)
	}
}

// TestInitOfOtherNames: names are mapped; what differs is listed, and a file that has
// nothing is refused.
func TestInitOfOtherNames(t *testing.T) {
	m := toy(toyVocab, unigram{})
	o := toyOptions(t, m)
	s, err := gomem.Compile(context.Background(), m.Graph, gomem.Options{}, Targets(m)...)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "theirs.safetensors")
	err = s.Save(file, gomem.SaveOptions{Rename: func(n string) string { return "net.0." + n }})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	o.Init, o.Steps = file, 1
	_, err = Run(context.Background(), o)
	if e, ok := errors.AsType[*ErrCheckpoint](err); !ok ||
		!strings.Contains(e.Error(), "has no variable of this model") ||
		!strings.Contains(e.Error(), "left over (net.0.w, …)") {
		t.Errorf("without names: %v", err)
	}
	names := filepath.Join(t.TempDir(), "names")
	if err := os.WriteFile(names, []byte("# theirs ours\n\nnet.*.w w\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o.Rename, err = ReadRenaming(names); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"net.*.w w\nnte.* w\n":          `line "nte.* w" is of no tensor`,
		"net.*.w w\nn* rest\n*m rest\n": `line "n* rest" makes names`,
		"net.*.w v\n":                   "does not have, such as v",
	} {
		wrong := o
		if err := os.WriteFile(names, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if wrong.Rename, err = ReadRenaming(names); err != nil {
			t.Fatal(err)
		}
		_, err := Run(context.Background(), wrong)
		if _, ok := errors.AsType[*ErrOption](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	var told string
	o.Observe = func(e Event) {
		if e.Kind == Init {
			told = e.Text
		}
	}
	if _, err := Run(context.Background(), o); err != nil ||
		told != "1 variables taken, 1 left over (net.0.w/momentum)" {
		t.Errorf("%v, told %q", err, told)
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := m.Graph.Variables()[0].Out[0]
	whole.DType = graph.I32
	err = safetensors.Write(f, []safetensors.Entry{{Name: "net.0.w", Type: whole}}, nil,
		safetensors.Whole(func(e safetensors.Entry) ([]byte, error) {
			return make([]byte, whole.Bytes()), nil
		}))
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), o); err == nil ||
		!strings.Contains(err.Error(), "tensor net.0.w is i32[") {
		t.Errorf("whole numbers are weights: %v", err)
	}
}

func TestRenaming(t *testing.T) {
	file := filepath.Join(t.TempDir(), "names")
	read := func(text string) (Renaming, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadRenaming(file)
	}
	r, err := read("layers.*.attn.*.weight  block*/attention/*\nx.y z$1\n# no\nlayers.* rest\n")
	if err != nil {
		t.Fatal(err)
	}
	for theirs, ours := range map[string]string{
		"layers.3.attn.q.weight": "block3/attention/q", "layers.3.norm": "rest", "x.y": "z$1",
		"xzy": "xzy", "other": "other",
	} {
		if got := r.Apply(theirs); got != ours {
			t.Errorf("%s is %s, want %s", theirs, got, ours)
		}
	}
	long := strings.Repeat("x", 1<<17)
	if r, err := read(long + " y\na b"); err != nil || r.Apply(long) != "y" || r.Apply("a") != "b" {
		t.Errorf("a long line is not read: %v", err)
	}
	for text, want := range map[string]string{
		"a\n": ":1: 1 words", "a b\nc d e\n": ":2: 3 words", "a.* b*c*\n": "more * than",
		"a b\n" + long + "\n": file + ":2: 1 words",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ReadRenaming(file + "none"); err == nil {
		t.Error("a file that is not there is read")
	}
}

// TestInitOverMesh: the processes of a mesh begin with the weights of a file as a run of one
// does, to the byte; and they notice together that it is damaged, or not the same for all.
func TestInitOverMesh(t *testing.T) {
	g, target := bricks([][]int{{8, 4}, {4}})
	spec, err := mesh.Parse("a:2x2,b:2x1", "v0*:1=a,v1*:0=b,experts=a")
	if err != nil {
		t.Fatal(err)
	}
	first := ranks(t, g, target, nil, t.TempDir())
	all(t, first, func(r *run) error { return fill(r.session) })
	file := kept(t, first)
	path := first[0].archive.good
	begin := func(spec *mesh.Spec, odd string) ([]*run, []error) {
		list := ranks(t, g, target, spec, t.TempDir())
		errs := make([]error, len(list))
		all(t, list, func(r *run) error {
			r.Model, r.Init, r.Observe = &nn.Model{Graph: g}, path, func(Event) {}
			rank := r.session.Rank()
			if rank == 2 && odd != "" {
				r.Init = odd
			}
			if errs[rank] = r.warm(); r.Parallel != nil && errs[rank] == nil {
				errs[rank] = r.team.begins.undamaged(context.Background(), r.Parallel,
					r.course.done, r.session)
			}
			if errs[rank] != nil || odd != "" {
				return r.session.Close()
			}
			return nil
		})
		return list, errs
	}
	one, failed := begin(nil, "")
	if failed[0] != nil {
		t.Fatal(failed)
	}
	want := kept(t, one)
	list, errs := begin(spec, "")
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept(t, list), want) {
		t.Error("a mesh has begun with other weights than a run of one")
	}
	fewer := filepath.Join(t.TempDir(), "fewer")
	weights := saver(t, g, target, fewer)
	_, errs = begin(spec, fewer)
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "worker 2 goes on from another") {
			t.Errorf("worker %d: %v", rank, err)
		}
	}
	file[bytes.Index(file, weights)]++
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs = begin(spec, "")
	for rank, err := range errs {
		if e, ok := errors.AsType[*ErrCheckpoint](err); !ok ||
			!errors.Is(err, safetensors.ErrChecksum) || e.Path != path ||
			strings.Count(err.Error(), path) > 1 {
			t.Errorf("worker %d: %v", rank, err)
		}
	}
}

// saver saves v0 of bricks alone, after fill, and is its bytes.
func saver(t *testing.T, g *graph.Graph, target gomem.Target, path string) []byte {
	t.Helper()
	s, err := gomem.Compile(t.Context(), g, gomem.Options{}, target)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	is := func(v graph.Value) bool { return v.Node.Name == "v0" }
	err = errors.Join(fill(s), s.Save(path, gomem.SaveOptions{Only: is}))
	v := s.Variables()
	x, failed := s.Get(v[slices.IndexFunc(v, is)])
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return x.Data
}
