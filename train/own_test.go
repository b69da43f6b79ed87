package train

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/safetensors"
)

// apart leaves every worker to itself, and notes the values with which it begins.
type apart struct {
	*averaging
	began []gomem.Tensor
}

func (a *apart) Begin(_ context.Context, s *gomem.Session) (err error) {
	a.began, err = valuesOf(s)
	return err
}

func (a *apart) Step(context.Context, *gomem.Session) error { return nil }

// aside runs workers that share nothing, up to a step, and returns what each of them has at
// the beginning and in the end.
func aside(t *testing.T, n, steps, saveEvery int, save, resume string) (began,
	ended [][]gomem.Tensor, errs []error) {
	t.Helper()
	began, ended, errs = make([][]gomem.Tensor, n), make([][]gomem.Tensor, n), make([]error, n)
	h := newHall(n)
	var all sync.WaitGroup
	for rank := range n {
		o := lesson(t, 6, 1)
		o.Epochs, o.Steps, o.Save, o.Resume, o.SaveEvery = 0, steps, save, resume, saveEvery
		between := &apart{averaging: &averaging{}}
		o.Parallel = &Parallel{Rank: rank, Workers: n, Peers: &seat{h, rank, 0},
			Between: between}
		o.After = func(_ context.Context, s *gomem.Session) (err error) {
			ended[rank], err = valuesOf(s)
			return err
		}
		all.Go(func() {
			_, errs[rank] = Run(t.Context(), o)
			began[rank] = between.began
		})
	}
	all.Wait()
	return began, ended, errs
}

// sameValues reports whether variables are equal.
func sameValues(a, b []gomem.Tensor) bool {
	for i := range a {
		if len(a) != len(b) || !bytes.Equal(a[i].Data, b[i].Data) {
			return false
		}
	}
	return true
}

// TestWorkersKeepTheirOwn: what workers have otherwise than worker 0 is saved with that, and
// they go on with it, so that a run that is resumed is the one that was not; one that saves
// is the one that does not; and of more workers those beyond have what the first ones have.
func TestWorkersKeepTheirOwn(t *testing.T) {
	const n = 3
	dir := t.TempDir()
	_, want, errs := aside(t, n, 8, 0, "", "")
	if err := errors.Join(errs...); err != nil || sameValues(want[0], want[1]) {
		t.Fatal("workers that share nothing have the same: ", err)
	}
	_, saved, errs := aside(t, n, 4, 3, dir, "")
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	began, ended, errs := aside(t, n, 8, 0, "", dir)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for rank := range n {
		if !sameValues(began[rank], saved[rank]) || !sameValues(ended[rank], want[rank]) {
			t.Errorf("worker %d goes on with other values", rank)
		}
	}
	began, _, errs = aside(t, n+2, 6, 0, "", dir)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for rank := range n + 2 {
		if !sameValues(began[rank], saved[rank%n]) {
			t.Errorf("worker %d of more goes on with other values than worker %d had", rank, rank%n)
		}
	}
	alone := lesson(t, 6, 1)
	alone.Epochs, alone.Steps, alone.Resume = 0, 5, dir
	if _, err := Run(t.Context(), alone); err != nil {
		t.Errorf("one worker does not go on: %v", err)
	}
}

// TestWorkersOfNobody: values of workers that there were not are no checkpoint's.
func TestWorkersOfNobody(t *testing.T) {
	dir := t.TempDir()
	_, _, errs := aside(t, 2, 4, 0, dir, "")
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	path, err := find(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entries, own := f.Entries(), 0
	for i, e := range entries {
		if name, ok := strings.CutSuffix(e.Name, "@1"); ok {
			entries[i].Name, own = name+"@2", own+1
		}
	}
	if own == 0 {
		t.Fatal("worker 1 has nothing in the checkpoint")
	}
	_, _, errs = aside(t, 2, 5, 0, "", renamed(t, f, entries))
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "@2 is f32") {
			t.Errorf("worker %d: %v", rank, err)
		}
	}
}

// renamed writes a checkpoint's values under other names.
func renamed(t *testing.T, f *safetensors.File, entries []safetensors.Entry) (path string) {
	t.Helper()
	path = t.TempDir() + "/" + fileName(4)
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	get := func(e safetensors.Entry) ([]byte, error) {
		x, err := f.Get(strings.Replace(e.Name, "@2", "@1", 1))
		return x.Data, err
	}
	err = safetensors.WriteSealed(w, entries, f.Metadata(), safetensors.Whole(get))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOwnNames: names of workers' own are read as they are made, and no others are.
func TestOwnNames(t *testing.T) {
	for _, s := range []string{"w@1", "a/w@12", "w@@3"} {
		name, rank, ok := parseOwn(s)
		if !ok || ownName(name, rank) != s {
			t.Errorf("%s is read as %q of %d: %v", s, name, rank, ok)
		}
	}
	for _, s := range []string{"w", "w@", "w@0", "w@-1", "w@01", "w@1x", "w@+1"} {
		if name, rank, ok := parseOwn(s); ok {
			t.Errorf("%s is read as %q of %d", s, name, rank)
		}
	}
}
