package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/safetensors"
)

// TestEveryBitOfACheckpoint: whichever bit flips, the checkpoint is refused, or
// it means what it meant.
func TestEveryBitOfACheckpoint(t *testing.T) {
	m := toy(toyVocab, unigram{})
	s := session(t, m)
	st := store{dir: t.TempDir(), keep: 2, disk: osDisk{}}
	path, err := st.save(at(5), source{session: s})
	if err != nil {
		t.Fatal(err)
	}
	want, err := weightsSHA256(s)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for bit := 0; bit < 8*len(whole); bit += longtest.Count(53, 1) {
		whole[bit/8] ^= 1 << (bit % 8)
		damage(t, path, whole)
		whole[bit/8] ^= 1 << (bit % 8)
		o, err := open(path)
		if err == nil {
			err = errors.Join(o.matches(at(5), m.Graph), o.restore(s))
			o.close()
		}
		if err != nil {
			continue
		}
		got, err := weightsSHA256(s)
		if err != nil || got != want || o.Step != 5 {
			t.Fatalf("bit %d of byte %d: trained on %s from step %d, %v", bit%8, bit/8, got, o.Step,
				err)
		}
	}
}

// TestTamperedCheckpoints: a step changed by hand, tensors that changed places, and
// a checkpoint without checksums are refused by a whole run, which points to the
// checkpoint before.
func TestTamperedCheckpoints(t *testing.T) {
	base := toyOptions(t, toy(toyVocab, unigram{}))
	base.Save, base.SaveEvery = t.TempDir(), 10
	s, _ := mustRun(t, base)
	base.Resume, base.Steps = base.Save, 30
	bytes, err := os.ReadFile(s.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	whole, half := string(bytes), len(bytes)-1200
	step := `"gomem.step":"20"`
	offsets := strings.NewReplacer("[0,1200]", "[1200,2400]", "[1200,2400]", "[0,1200]")
	for what, damaged := range map[string]string{
		"step":    strings.Replace(whole, step, `"gomem.step":"21"`, 1),
		"seed":    strings.Replace(whole, `"gomem.seed":"7"`, `"gomem.seed":"8"`, 1),
		"values":  whole[:half-1200] + whole[half:] + whole[half-1200:half],
		"offsets": offsets.Replace(whole),
	} {
		if damaged == whole || len(damaged) != len(whole) {
			t.Fatalf("%s: not changed as meant", what)
		}
		damage(t, s.Checkpoint, []byte(damaged))
		_, err := Run(context.Background(), base)
		e, ok := errors.AsType[*ErrCheckpoint](err)
		if !ok || !errors.Is(err, safetensors.ErrChecksum) ||
			e.Previous != filepath.Join(base.Save, fileName(10)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	damage(t, s.Checkpoint, bytes)
	rewrite(t, s.Checkpoint, false, func(string, tensor.View) {})
	if _, err := Run(context.Background(), base); err == nil ||
		!strings.Contains(err.Error(), "has no checksums") {
		t.Errorf("without checksums: %v", err)
	}
}

// rewrite changes the values of a checkpoint, with checksums that fit or none.
func rewrite(t *testing.T, path string, seal bool, edit func(name string, v tensor.View)) {
	t.Helper()
	in, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(path + ".new")
	if err != nil {
		t.Fatal(err)
	}
	get := func(e safetensors.Entry) ([]byte, error) {
		v, err := in.Get(e.Name)
		edit(e.Name, v)
		return v.Data, err
	}
	if seal {
		err = safetensors.WriteSealed(out, in.Entries(), in.Metadata(), safetensors.Whole(get))
	} else {
		err = safetensors.Write(out, in.Entries(), in.Metadata(), safetensors.Whole(get))
	}
	if err := errors.Join(err, out.Close(), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

// TestDivergedCheckpoint: a checkpoint with an infinity in it is no good one,
// whoever wrote it.
func TestDivergedCheckpoint(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Save, o.SaveEvery = t.TempDir(), 10
	s, _ := mustRun(t, o)
	rewrite(t, s.Checkpoint, true, func(name string, v tensor.View) {
		if name == "w/momentum" {
			v.F32()[299] = float32(math.Inf(-1))
		}
	})
	o.Resume, o.Steps = o.Save, 30
	_, err := Run(context.Background(), o)
	e, ok := errors.AsType[*ErrCheckpoint](err)
	if !ok || e.Previous != filepath.Join(o.Save, fileName(10)) ||
		!strings.Contains(err.Error(), `tensor "w/momentum": has an element that is -Inf`) {
		t.Errorf("%v", err)
	}
}

// TestNonFinite finds NaN and infinities of every element type, and nothing else.
func TestNonFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, x := range []float32{0, -1, math.MaxFloat32, -math.SmallestNonzeroFloat32} {
		if got, at := nonFinite(tensor.FromF32([]float32{1, x}, 2)); at >= 0 {
			t.Errorf("%v: found %v", x, got)
		}
	}
	for _, x := range []float32{nan, inf, -inf} {
		got, at := nonFinite(tensor.FromF32([]float32{1, x}, 2))
		if want := float64(x); at != 1 || got != want && !math.IsNaN(want) {
			t.Errorf("%v: found %v at %d", x, got, at)
		}
	}
	for _, c := range []struct {
		d    graph.DType
		word uint16
		want float64 // 0: finite
	}{
		{graph.BF16, 0x7f7f, 0}, {graph.BF16, 0xff7f, 0}, {graph.BF16, 0x7f80, math.Inf(1)},
		{graph.BF16, 0xff80, math.Inf(-1)}, {graph.BF16, 0x7f81, math.NaN()},
		{graph.BF16, 0xffff, math.NaN()}, {graph.F16, 0x7bff, 0}, {graph.F16, 0xfbff, 0},
		{graph.F16, 0x7c00, math.Inf(1)}, {graph.F16, 0xfc00, math.Inf(-1)},
		{graph.F16, 0x7c01, math.NaN()}, {graph.F16, 0xffff, math.NaN()},
	} {
		v := tensor.New(tensor.Of(c.d, 3))
		v.U16()[2] = c.word
		got, at := nonFinite(v)
		want := -1
		if c.want != 0 {
			want = 2
		}
		if same := got == c.want || math.IsNaN(got) && math.IsNaN(c.want); at != want || !same {
			t.Errorf("%v %#x: found %v at %d; want %v", c.d, c.word, got, at, c.want)
		}
	}
	if _, at := nonFinite(tensor.FromI32([]int32{-1}, 1)); at >= 0 {
		t.Error("an integer is not finite")
	}
}

// TestDivergingUnsaved: weights that are not finite at the end are an error even
// where nobody saves them, and so is a learning rate.
func TestDivergingUnsaved(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{NaNGrads: 20}))
	o.Loader = unheld{o.Loader}
	_, err := Run(context.Background(), o)
	if e, ok := errors.AsType[*ErrNonFinite](err); !ok || e.Step != 20 || e.What != "variable w" {
		t.Errorf("%v", err)
	}
	o = toyOptions(t, toy(toyVocab, unigram{}))
	o.Model.Schedule, o.Save, o.SaveEvery = ruined(5), t.TempDir(), 2
	_, err = Run(context.Background(), o)
	e, ok := errors.AsType[*ErrNonFinite](err)
	if !ok || e.Step != 5 || e.What != "learning rate" ||
		e.Checkpoint != filepath.Join(o.Save, fileName(4)) {
		t.Errorf("%v", err)
	}
}

// unheld are batches without any held out.
type unheld struct{ data.Batches }

func (unheld) HeldOutBatches() int { return 0 }

// ruined is a learning rate that is NaN at a step, from 1.
type ruined int

func (r ruined) At(step int) float32 {
	if step+1 == int(r) {
		return float32(math.NaN())
	}
	return 0.1
}

// TestMachine: a checkpoint says what its bits depend on, and one of another
// machine is resumed with a warning.
func TestMachine(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Save, o.Machine, o.Steps = t.TempDir(), "tpu v9", 10
	mustRun(t, o)
	if c, err := Inspect(o.Save); err != nil || c.Machine != "tpu v9" {
		t.Errorf("%+v, %v", c, err)
	}
	warnings := func() (texts []string) {
		events := watch(&o)
		o.Resume, o.Steps = o.Save, o.Steps+1
		if _, err := Run(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		for i, e := range *events {
			if e.Kind == Warning {
				texts = append(texts, e.Text)
			}
			if e.Kind == Warning && i != 1 {
				t.Errorf("a warning is event %d", i)
			}
		}
		return texts
	}
	if got := warnings(); len(got) != 0 {
		t.Errorf("on the same machine: %v", got)
	}
	o.Machine = ""
	if got := warnings(); len(got) != 1 ||
		!strings.Contains(got[0], `was made on "tpu v9", this is "cpu `) {
		t.Errorf("on another machine: %v", got)
	}
	if got := warnings(); len(got) != 0 {
		t.Errorf("after moving: %v", got)
	}
	if c, err := Inspect(o.Save); err != nil || c.Machine != machine("") || c.Step != 13 {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestSummaryNamesItsWeights: a summary names no checkpoint but the one that
// holds the weights whose hash it has.
func TestSummaryNamesItsWeights(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Save, o.Steps = t.TempDir(), 10
	first, _ := mustRun(t, o)
	o.Resume, o.Save, o.Steps = o.Save, "", 15
	if s, _ := mustRun(t, o); s.Checkpoint != "" || s.ResumedFrom != 10 {
		t.Errorf("not saved, but %+v", s)
	}
	stopped, stop := context.WithCancel(context.Background())
	o.Observe = func(Event) { stop() }
	if s, err := Run(stopped, o); err != nil || s.Checkpoint != first.Checkpoint ||
		s.WeightsSHA256 != first.WeightsSHA256 {
		t.Errorf("stopped at once: %+v, %v", s, err)
	}
	// In another directory, a run that stops at once saves what it has: resuming
	// that directory must work.
	o.Save = t.TempDir()
	stopped, stop = context.WithCancel(context.Background())
	o.Observe = func(Event) { stop() }
	s, err := Run(stopped, o)
	if err != nil || s.Checkpoint != filepath.Join(o.Save, fileName(10)) ||
		s.WeightsSHA256 != first.WeightsSHA256 {
		t.Errorf("stopped at once: %+v, %v", s, err)
	}
}
