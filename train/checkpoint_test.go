package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/nn"
)

// session compiles a model.
func session(t *testing.T, m *nn.Model) *gomem.Session {
	t.Helper()
	s, err := gomem.Compile(context.Background(), m.Graph, gomem.Options{Threads: 1}, Targets(m)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// at is a checkpoint of the toy after a number of steps.
func at(step int) Checkpoint {
	return Checkpoint{Model: "toy", Size: "tiny", Config: map[string]string{"k": "v <&>\n"},
		Labels: map[string]string{"k": "vee"}, Machine: "cpu some", Classes: []string{"a", "\"ü\n"},
		Step: step, Seed: 1 << 63, Tokenizer: "gomem-bpe 1 258\n"}
}

// TestCheckpointRoundTrip: variables and description come back from a file, and
// nothing else does.
func TestCheckpointRoundTrip(t *testing.T) {
	m := toy(toyVocab, unigram{})
	s := session(t, m)
	if err := s.Initialize(3); err != nil {
		t.Fatal(err)
	}
	want, err := weightsSHA256(s)
	if err != nil {
		t.Fatal(err)
	}
	st := store{dir: filepath.Join(t.TempDir(), "a", "b"), keep: 2, disk: osDisk{}}
	path, err := st.save(at(5), source{session: s})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Initialize(4); err != nil {
		t.Fatal(err)
	}
	o, err := open(st.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	expected := at(5)
	expected.Path = path
	if !reflect.DeepEqual(o.Checkpoint, expected) {
		t.Errorf("got %+v, want %+v", o.Checkpoint, expected)
	}
	if err := errors.Join(o.matches(at(0), m.Graph), o.restore(s)); err != nil {
		t.Fatal(err)
	}
	if got, err := weightsSHA256(s); got != want || err != nil {
		t.Errorf("weights %s, %v; want %s", got, err, want)
	}
}

// TestKeep: the newest checkpoints are kept, the latest is found, and a run
// that goes back leaves later ones alone.
func TestKeep(t *testing.T) {
	s := session(t, toy(toyVocab, unigram{}))
	st := store{dir: t.TempDir(), keep: 2, disk: osDisk{}}
	for _, c := range []struct {
		step int
		want []int
	}{{1, []int{1}}, {2, []int{1, 2}}, {2, []int{1, 2}}, {3, []int{2, 3}}, {100, []int{3, 100}},
		{50, []int{3, 50, 100}}, {60, []int{50, 60, 100}}} {
		path, err := st.save(at(c.step), source{session: s})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{latestName}
		for _, step := range c.want {
			want = append(want, fileName(step))
		}
		if got := names(t, st.dir); !slices.Equal(got, want) {
			t.Errorf("after step %d: %v, want %v", c.step, got, want)
		}
		if found, err := find(st.dir); found != path || err != nil {
			t.Errorf("after step %d: found %s, %v", c.step, found, err)
		}
	}
	if err := os.Remove(filepath.Join(st.dir, latestName)); err != nil {
		t.Fatal(err)
	}
	if found, err := find(st.dir); found != filepath.Join(st.dir, fileName(100)) || err != nil {
		t.Errorf("without the file %s: %s, %v", latestName, found, err)
	}
}

// faultyDisk fails one operation, the at-th from 0; writes fail half way.
type faultyDisk struct {
	disk
	at      int
	fails   error
	removal bool // removing something failed
	killed  bool // nothing works after the failure
}

func (d *faultyDisk) next() error {
	d.at--
	if d.at == -1 || d.killed && d.at < 0 {
		return d.fails
	}
	return nil
}

func (d *faultyDisk) MkdirAll(dir string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.disk.MkdirAll(dir)
}

func (d *faultyDisk) Create(path string) (file, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	f, err := d.disk.Create(path)
	return faultyFile{f, d}, err
}

func (d *faultyDisk) Rename(from, to string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.disk.Rename(from, to)
}

func (d *faultyDisk) Remove(path string) error {
	if err := d.next(); err != nil {
		d.removal = true
		return err
	}
	return d.disk.Remove(path)
}

func (d *faultyDisk) SyncDir(dir string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.disk.SyncDir(dir)
}

type faultyFile struct {
	file
	d *faultyDisk
}

func (f faultyFile) Write(p []byte) (int, error) {
	if err := f.d.next(); err != nil {
		n, _ := f.file.Write(p[:len(p)/2])
		return n, &os.PathError{Op: "write", Path: "somewhere", Err: err}
	}
	return f.file.Write(p)
}

func (f faultyFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.d.next(); err != nil {
		return 0, err
	}
	return f.file.WriteAt(p, off)
}

func (f faultyFile) Sync() error {
	if err := f.d.next(); err != nil {
		return err
	}
	return f.file.Sync()
}

func (f faultyFile) Close() error {
	err := f.file.Close()
	if failed := f.d.next(); failed != nil {
		return failed
	}
	return err
}

// TestFailingDisk: whichever operation of a save fails, the error is one line
// that names the file, no part of a file is left, and the directory has a good
// checkpoint that is found.
func TestFailingDisk(t *testing.T) {
	m := toy(toyVocab, unigram{})
	s := session(t, m)
	for n := 0; ; n++ {
		st := store{dir: t.TempDir(), keep: 2, disk: osDisk{}}
		for _, step := range []int{1, 2} {
			if _, err := st.save(at(step), source{session: s}); err != nil {
				t.Fatal(err)
			}
		}
		st.disk = &faultyDisk{disk: osDisk{}, at: n, fails: syscall.ENOSPC}
		_, err := st.save(at(3), source{session: s})
		if err == nil {
			if n < 13 {
				t.Errorf("a save has only %d operations", n)
			}
			return
		}
		if !errors.Is(err, syscall.ENOSPC) ||
			!strings.Contains(err.Error(), filepath.Join(st.dir, fileName(3))) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("operation %d: %v", n, err)
		}
		for _, name := range names(t, st.dir) {
			if isTemporary(name) {
				t.Errorf("operation %d leaves %s: %v", n, name, err)
			}
		}
		o, err := open(st.dir)
		if err != nil {
			t.Fatalf("operation %d: %v", n, err)
		}
		if err := o.restore(s); err != nil || o.Step < 2 {
			t.Errorf("operation %d: step %d, %v", n, o.Step, err)
		}
		o.close()
	}
}

// TestGoneInASave: a save that another worker ends, which was to give a variable, says so, and not
// which one that was.
func TestGoneInASave(t *testing.T) {
	s := session(t, toy(toyVocab, unigram{}))
	st := store{dir: t.TempDir(), keep: 2, disk: osDisk{}}
	_, err := st.save(at(3), source{session: s,
		others: []foreign{{v: s.Variables()[0], rank: 1, block: entire}},
		fetch: func(foreign) (tensor.View, error) {
			return tensor.View{}, &lostError{errors.New("worker 1 is gone")}
		}})
	want := "checkpoint " + filepath.Join(st.dir, fileName(3)) +
		": cannot save step 3: worker 1 is gone"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestKilledAnywhere: a process that ends at any operation of a save, half of a
// write done, leaves a directory with a good checkpoint, which the next run saves
// to; nothing of the process is left then.
func TestKilledAnywhere(t *testing.T) {
	s := session(t, toy(toyVocab, unigram{}))
	for n := 0; ; n++ {
		st := store{dir: t.TempDir(), keep: 2, disk: osDisk{}}
		for _, step := range []int{1, 2} {
			if _, err := st.save(at(step), source{session: s}); err != nil {
				t.Fatal(err)
			}
		}
		st.disk = &faultyDisk{disk: osDisk{}, at: n, fails: syscall.EIO, killed: true}
		_, err := st.save(at(3), source{session: s})
		if err == nil {
			return
		}
		o, err := open(st.dir)
		if err != nil {
			t.Fatalf("operation %d: %v", n, err)
		}
		if err := o.restore(s); err != nil || o.Step < 2 {
			t.Errorf("operation %d: step %d, %v", n, o.Step, err)
		}
		o.close()
		if err := CheckSave(st.dir, st.dir); err != nil {
			t.Errorf("operation %d: %v", n, err)
		}
		st.disk = osDisk{}
		if _, err := st.save(at(4), source{session: s}); err != nil {
			t.Errorf("operation %d: %v", n, err)
		}
		for _, name := range names(t, st.dir) {
			if isTemporary(name) {
				t.Errorf("operation %d leaves %s", n, name)
			}
		}
	}
}

// TestLeftovers: what a killed process left behind is removed, other files are
// not.
func TestLeftovers(t *testing.T) {
	s := session(t, toy(toyVocab, unigram{}))
	st := store{dir: t.TempDir(), keep: 1, disk: osDisk{}}
	others := []string{".step-1.tmp", ".step-00000007.safetensors.tmp", ".step-1.safetensors.8.tmp",
		".latest.x.tmp", ".tmp", "notes", "step-1.safetensors"}
	left := []string{regular.Temporary(fileName(7)), regular.Temporary(latestName),
		".step-00000007.safetensors.12345.tmp"}
	for _, name := range append(left, others...) {
		if err := os.WriteFile(filepath.Join(st.dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := st.save(at(9), source{session: s}); err != nil {
		t.Fatal(err)
	}
	want := append([]string{latestName, fileName(9)}, others...)
	slices.Sort(want)
	if got := names(t, st.dir); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRefusals: checkpoints that do not fit a run, each refused on one line
// that says why, with nothing computed.
func TestRefusals(t *testing.T) {
	base := toyOptions(t, toy(toyVocab, unigram{}))
	base.Save, base.SaveEvery = t.TempDir(), 10
	base.Labels = map[string]string{"data": "numbers and their squares"}
	mustRun(t, base)
	last, before := filepath.Join(base.Save, fileName(20)), filepath.Join(base.Save, fileName(10))
	base.Resume, base.Save, base.SaveEvery, base.Steps = base.Save, "", 0, 30
	whole, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	truncated := filepath.Join(t.TempDir(), fileName(20))
	empty := t.TempDir()
	more := toy(toyVocab, unigram{})
	more.Graph.State("extra", tensor.Of(graph.F32, 3), graph.Init{})
	for _, c := range []struct {
		want string
		edit func(*Options)
	}{
		{"is of a model with other sizes: variable w is f32[300] in the checkpoint and f32[310] " +
			"in the model; variables that differ: 2",
			func(o *Options) { o.Model = toy(310, unigram{}) }},
		{"is of another model (toy tiny, this is toy larger): variable extra is missing in the " +
			"checkpoint and f32[3] in the model; variables that differ: 1",
			func(o *Options) { o.Model, o.Size = more, "larger" }},
		{`was made with batch "4", this run has "8"; settings that differ: 2`,
			func(o *Options) { o.Config = map[string]string{"batch": "8"} }},
		{`was made with batch "4", this run has the default; settings that differ: 1`,
			func(o *Options) {
				o.Config = map[string]string{"data": "squares"}
			}},
		{`was made with data "numbers and their squares" ("squares"), this run has "numbers and ` +
			`their squares" ("cubes"); settings that differ: 1`, func(o *Options) {
			o.Config = map[string]string{"data": "cubes", "batch": "4"}
		}},
		{`was made with data "numbers and their squares", this run has "of another path"`,
			func(o *Options) {
				o.Config = map[string]string{"data": "ce5f", "batch": "4"}
				o.Labels = map[string]string{"data": "of another path"}
			}},
		{"was made with seed 7, this run has 8", func(o *Options) { o.Seed = 8 }},
		{"another tokenizer", func(o *Options) { o.Tokenizer = nil }},
		{"at step 20 already, the run is to reach 20", func(o *Options) { o.Steps = 20 }},
		{"at step 20 already, the run is to reach 5", func(o *Options) { o.Steps = 5 }},
		{"there is no checkpoint in the directory", func(o *Options) { o.Resume = empty }},
		{truncated + ": safetensors: ", func(o *Options) { o.Resume = truncated }},
		{"resume from the one before it, " +
			before, func(o *Options) { damage(t, last, whole[:len(whole)-1]) }},
		{"resume from the one before it, " +
			before, func(o *Options) { damage(t, last, whole[:100]) }},
		{"resume from the one before it, " + before, func(o *Options) { damage(t, last, nil) }},
	} {
		damage(t, last, whole)
		damage(t, truncated, whole[:len(whole)/2])
		o := base
		c.edit(&o)
		events := watch(&o)
		_, err := Run(context.Background(), o)
		if _, ok := errors.AsType[*ErrCheckpoint](err); !ok ||
			!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v (%T) does not say %q", err, err, c.want)
		}
		if len(*events) > 0 {
			t.Errorf("%v: events %v", err, *events)
		}
	}
}

// damage replaces a file.
func damage(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestForeignMetadata: safetensors files that no run has saved.
func TestForeignMetadata(t *testing.T) {
	good, err := at(3).metadata()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse(good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, value, want string }{
		{keyFormat, "", `gomem.format is "", this version reads "2"`},
		{keyFormat, "1", `gomem.format is "1", this version reads "2"`},
		{keyStep, "x", "not a number of steps"},
		{keyStep, "-1", "not a number of steps"},
		{keyStep, "99999999999", "not a number of steps"},
		{keySeed, "-1", "not a seed"},
		{keyConfig, "{", keyConfig},
		{keyConfig, `{"a":1}`, keyConfig},
		{keyLabels, "[]", keyLabels},
		{keyEvaluated, "4", "not a step of an evaluation"},
		{keyEvaluated, "0", "not a step of an evaluation"},
	} {
		bad := map[string]string{}
		for k, v := range good {
			bad[k] = v
		}
		bad[c.key] = c.value
		if _, err := parse(bad); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v", c.key, c.value, err)
		}
	}
	if _, err := parse(nil); err == nil ||
		!strings.Contains(err.Error(), "not saved by a training run") {
		t.Error(err)
	}
}

// TestForeignDirectory: the checkpoints of another run are not overwritten.
func TestForeignDirectory(t *testing.T) {
	o := toyOptions(t, toy(toyVocab, unigram{}))
	o.Save = t.TempDir()
	s, _ := mustRun(t, o)
	other := filepath.Join(t.TempDir(), fileName(20))
	whole, err := os.ReadFile(s.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	damage(t, other, whole)
	for _, resume := range []string{"", other} {
		o.Resume = resume
		if err := o.Validate(); err == nil ||
			!strings.Contains(err.Error(),
				o.Save+": the directory has checkpoints of another run") {
			t.Errorf("resuming %q: %v", resume, err)
		}
	}
	for _, resume := range []string{s.Checkpoint, o.Save, o.Save + "/."} {
		o.Resume = resume
		if err := o.Validate(); err != nil {
			t.Errorf("resuming %q: %v", resume, err)
		}
	}
}
