package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/autodiff"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/mesh"
	"github.com/gomem/gomem/planner"
)

// bricks is a training step of variables of some shapes, and four that are elements of an
// axis, with an optimizer of two more for each.
func bricks(shapes [][]int) (*graph.Graph, gomem.Target) {
	g := graph.New()
	lr, step := g.Input("lr", tensor.Of(graph.F32)), g.Input("step", tensor.Of(graph.F32))
	var vars, terms []graph.Value
	for i, sizes := range shapes {
		vars = append(vars, g.Variable(fmt.Sprint("v", i), tensor.Of(graph.F32, sizes...),
			graph.Init{}))
	}
	for i := range 4 {
		e := g.Variable(fmt.Sprint("e", i), tensor.Of(graph.F32, 3), graph.Init{})
		g.Place(e, "experts", i, 4)
		vars = append(vars, e)
	}
	for _, v := range vars {
		terms = append(terms, ops.Mean(ops.Square(v)))
	}
	loss := terms[0]
	for _, x := range terms[1:] {
		loss = ops.Add(loss, x)
	}
	var updates []*graph.Node
	for i, d := range autodiff.Grad(loss, vars...) {
		state := func(name string) graph.Value {
			return g.State(vars[i].Node.Name+"/"+name, vars[i].Type(), graph.Init{})
		}
		updates = append(updates, ops.Adam(vars[i], state("m"), state("v"), d, lr, step, 0.9, 0.99,
			1e-8))
	}
	return g, gomem.Updating("train", updates, loss)
}

// layoutOf draws a mesh of up to four processes, and a layout that divides axes of the
// first variables of bricks along it, or places their experts.
func layoutOf(t *rapid.T, shapes [][]int) *mesh.Spec {
	var s mesh.Spec
	names := []string{"experts"}
	for i, sizes := range shapes {
		for axis := range sizes {
			names = append(names, fmt.Sprintf("v%d*:%d", i, axis))
		}
	}
	most := 4
	for i := range rapid.IntRange(1, 2).Draw(t, "axes") {
		processes := rapid.SampledFrom([]int{1, 2, 4}[:1+most/2]).Draw(t, "processes")
		most /= processes
		axis := string(rune('a' + i))
		s.Mesh.Axes = append(s.Mesh.Axes, axis)
		s.Mesh.Cluster = append(s.Mesh.Cluster, processes)
		s.Mesh.Device = append(s.Mesh.Device, rapid.IntRange(1, 2).Draw(t, "slices"))
		if s.Mesh.Size(i) > 4 {
			s.Mesh.Device[i] = 1
		}
		for range rapid.IntRange(1, 3).Draw(t, "assignments") {
			a := mesh.Assign{Name: rapid.SampledFrom(names).Draw(t, "name"), Axis: axis}
			if len(s.Layout) == 0 || s.Layout.Check(s.Mesh) != nil ||
				append(s.Layout[:len(s.Layout):len(s.Layout)], a).Check(s.Mesh) == nil {
				s.Layout = append(s.Layout, a)
			}
		}
	}
	return &s
}

// unheard is a network over which nothing is exchanged.
type unheard struct{}

func (unheard) Send(context.Context, gomem.Exchange) error { return errors.New("unheard") }
func (unheard) Await(context.Context, string) error        { return errors.New("unheard") }
func (unheard) Abandon()                                   {}

// fatal ends a test.
type fatal interface {
	Helper()
	Fatal(args ...any)
}

// ranks are runs of the processes of a mesh, or one of none, after a step.
func ranks(t fatal, g *graph.Graph, target gomem.Target, spec *mesh.Spec, dir string) []*run {
	t.Helper()
	n := 1
	if spec != nil {
		n = spec.Mesh.Processes()
	}
	h := newHall(n)
	var list []*run
	for rank := range n {
		o := gomem.Options{Policy: planner.Vanilla, Mesh: spec, Rank: rank, Network: unheard{}}
		s, err := gomem.Compile(context.Background(), g, o, target)
		if err != nil {
			t.Fatal(spec, err)
		}
		r := newRun(Options{Session: o, Name: "bricks"})
		r.session, r.course.done = s, 1
		r.archive.store = store{dir: dir, keep: 2, disk: osDisk{}}
		if n > 1 {
			r.Parallel = &Parallel{Rank: rank, Workers: n, Mesh: true, Peers: &seat{h, rank, 0}}
		}
		list = append(list, r)
	}
	return list
}

// all has all ranks do something.
func all(t fatal, list []*run, do func(r *run) error) {
	t.Helper()
	errs := make([]error, len(list))
	var running sync.WaitGroup
	for i, r := range list {
		running.Go(func() { errs[i] = do(r) })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// kept has all ranks save, and is what the file has. They are closed.
func kept(t fatal, list []*run) []byte {
	t.Helper()
	all(t, list, func(r *run) error {
		return errors.Join(r.saveAll(context.Background(), true), r.session.Close())
	})
	file, err := os.ReadFile(list[0].archive.good)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// fill gives variables values.
func fill(s *gomem.Session) error {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, v := range s.Variables() {
		x := tensor.New(v.Type())
		for i := range x.F32() {
			x.F32()[i] = rng.Float32()
		}
		if err := s.Set(v, x); err != nil {
			return err
		}
	}
	return nil
}

// TestBlocksAreSavedWhole: the checkpoint of any mesh, and any layout, is that of a run
// without one to the byte; and so is the one that any other mesh saves which has read it.
func TestBlocksAreSavedWhole(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		shapes := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]int{4, 8}), 1, 3), 1,
			3).Draw(t, "shapes")
		g, target := bricks(shapes)
		one := ranks(t, g, target, nil, dir)
		all(t, one, func(r *run) error { return fill(r.session) })
		want := kept(t, one)
		first := ranks(t, g, target, layoutOf(t, shapes), dir)
		all(t, first, func(r *run) error { return fill(r.session) })
		if !bytes.Equal(kept(t, first), want) {
			t.Fatalf("%s saves another file than a run of one", first[0].Session.Mesh)
		}
		again := ranks(t, g, target, layoutOf(t, shapes), dir)
		all(t, again, func(r *run) error {
			from, err := open(first[0].archive.good)
			if err != nil {
				return err
			}
			defer from.close()
			r.team.begins.from = from
			if err := from.restore(r.session); err != nil || r.Parallel == nil {
				return err
			}
			return r.team.begins.undamaged(context.Background(), r.Parallel,
				r.course.done, r.session)
		})
		if !bytes.Equal(kept(t, again), want) {
			t.Fatalf("%s has read something else than %s saved", again[0].Session.Mesh,
				first[0].Session.Mesh)
		}
	})
}

// TestBlocksTravelOnce: worker 0 is given the blocks that it lacks, once each and in
// portions, and nobody else is given anything.
func TestBlocksTravelOnce(t *testing.T) {
	g, target := bricks([][]int{{4, portion/4 + 10}, {4}})
	spec, err := mesh.Parse("a:4x1", "v0*:0=a,experts=a")
	if err != nil {
		t.Fatal(err)
	}
	list := ranks(t, g, target, spec, t.TempDir())
	kept(t, list)
	var given int64
	for rank, says := range list[0].Parallel.Peers.(*seat).says {
		for _, x := range says {
			if len(x.bytes) > portion || len(x.bytes) > 1 && x.to != 0 {
				t.Errorf("worker %d gives %d bytes at once to %d", rank, len(x.bytes), x.to)
			}
			if x.to == 0 {
				given += int64(len(x.bytes))
			}
		}
	}
	if want := int64(3 * 3 * (portion + 40 + 12)); given != want { // with two of an optimizer's
		t.Errorf("worker 0 is given %d bytes, it lacks %d", given, want)
	}
}

// tallied counts bytes that are read.
type tallied struct {
	io.ReaderAt
	bytes int64
}

func (c *tallied) ReadAt(p []byte, at int64) (int, error) {
	c.bytes += int64(len(p))
	return c.ReaderAt.ReadAt(p, at)
}

// TestBlocksAreRead: who resumes reads what it has of variables, and nothing else. A bit that
// has flipped in what anybody reads is noticed by all, and so is who reads another checkpoint.
func TestBlocksAreRead(t *testing.T) {
	g, target := bricks([][]int{{8, 4}, {4}})
	spec, err := mesh.Parse("a:4x1", "v0*:1=a,experts=a")
	if err != nil {
		t.Fatal(err)
	}
	one := ranks(t, g, target, nil, t.TempDir())
	all(t, one, func(r *run) error { return fill(r.session) })
	file := kept(t, one)
	resume := func(file []byte, odd int) []error {
		list := ranks(t, g, target, spec, t.TempDir())
		errs := make([]error, len(list))
		all(t, list, func(r *run) error {
			c := &tallied{ReaderAt: bytes.NewReader(file)}
			f, err := safetensors.Read(c, int64(len(file)))
			if err != nil {
				return err
			}
			if c.bytes = 0; r.Parallel.Rank == odd {
				r.course.done++
			}
			r.team.begins.from = &opened{file: f}
			err = r.team.begins.from.restore(r.session)
			if want := int64(3 * (8*4/4 + 4 + 3) * 4); c.bytes != want {
				t.Errorf("process %d reads %d bytes, it has %d", r.Parallel.Rank, c.bytes, want)
			}
			b := r.team.begins
			errs[r.Parallel.Rank] = errors.Join(
				b.undamaged(context.Background(), r.Parallel, r.course.done, r.session),
				r.session.Close())
			return err
		})
		return errs
	}
	if err := errors.Join(resume(file, -1)...); err != nil {
		t.Fatal(err)
	}
	for rank, err := range resume(file, 2) {
		if err == nil || !strings.Contains(err.Error(), "worker 2 goes on from another") {
			t.Errorf("worker %d: %v", rank, err)
		}
	}
	file[len(file)-8*4*4+9]++ // in the last of the variables, a state of v0's
	for rank, err := range resume(file, -1) {
		if !errors.Is(err, safetensors.ErrChecksum) {
			t.Errorf("worker %d: %v", rank, err)
		}
	}
}

// TestLostWhileSaving: who ends while a mesh saves, be it who writes or who gives, costs the new
// checkpoint and nothing else: the old one is as it was, and beside it there is nothing. All
// hear who it was.
func TestLostWhileSaving(t *testing.T) {
	g, target := bricks([][]int{{4, 4}})
	spec, err := mesh.Parse("a:4x1", "v0*:0=a,experts=a")
	if err != nil {
		t.Fatal(err)
	}
	for lost := range 4 {
		for _, after := range []int{0, 1, 4, 17} { // of the 18 blocks of others
			dir := t.TempDir()
			list := ranks(t, g, target, spec, dir)
			all(t, list, func(r *run) error { return r.saveAll(context.Background(), true) })
			want := contents(t, dir)
			all(t, list, func(r *run) error {
				r.course.done = 2
				if r.Parallel.Rank == lost {
					r.Parallel.Peers = &mortal{Peers: r.Parallel.Peers, left: after}
				}
				err := r.leave(r.saveAll(context.Background(), true))
				who := fmt.Sprintf("worker %d: ", lost)
				if err == nil || r.Parallel.Rank != lost && !strings.Contains(err.Error(), who) {
					return fmt.Errorf("worker %d is lost, worker %d: %v", lost, r.Parallel.Rank,
						err)
				}
				return r.session.Close()
			})
			if have := contents(t, dir); !maps.Equal(have, want) {
				t.Errorf("worker %d is lost after %d blocks: %d files, not %d as before", lost,
					after, len(have), len(want))
			}
		}
	}
}

// mortal fails after it has given some times.
type mortal struct {
	Peers
	left int
}

func (m *mortal) Give(ctx context.Context, to int, says []byte) error {
	if m.left--; m.left < 0 {
		return errors.New("killed")
	}
	return m.Peers.Give(ctx, to, says)
}

// contents are the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	list, err := os.ReadDir(dir)
	for _, f := range list {
		text, failed := os.ReadFile(dir + "/" + f.Name())
		files[f.Name()], err = string(text), errors.Join(err, failed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestFullDiskOfAMesh: what worker 0 cannot write costs the new checkpoint and nothing else, though
// all give what they have for it, and the next one is whole.
func TestFullDiskOfAMesh(t *testing.T) {
	g, target := bricks([][]int{{4, 4}})
	spec, err := mesh.Parse("a:4x1", "v0*:0=a,experts=a")
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{fileName(2), regular.Temporary(fileName(2))} {
		dir := t.TempDir()
		list := ranks(t, g, target, spec, dir)
		all(t, list, func(r *run) error { return r.saveAll(context.Background(), true) })
		want := contents(t, dir)
		block(t, filepath.Join(dir, way))
		block(t, filepath.Join(dir, way, "so that nobody removes it"))
		all(t, list, func(r *run) error {
			r.course.done = 2
			return r.saveAll(context.Background(), true)
		})
		if list[0].archive.unsaved == nil || list[1].archive.unsaved != nil {
			t.Errorf("%s is in the way: %v, %v", way, list[0].archive.unsaved,
				list[1].archive.unsaved)
		}
		if err := os.RemoveAll(filepath.Join(dir, way)); err != nil {
			t.Fatal(err)
		}
		if have := contents(t, dir); !maps.Equal(have, want) {
			t.Errorf("%s is in the way: the directory has %d files, want %d", way, len(have),
				len(want))
		}
		all(t, list, func(r *run) error {
			r.course.done = 3
			return errors.Join(r.saveAll(context.Background(), true), r.session.Close())
		})
		found, err := Inspect(dir)
		if err != nil || found.Step != 3 || list[0].archive.unsaved != nil {
			t.Errorf("%s was in the way: %+v, %v", way, found, err)
		}
	}
}
