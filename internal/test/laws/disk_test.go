package laws_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/internal/randgraph"
	"github.com/gomem/gomem/internal/test/trial"
	"github.com/gomem/gomem/internal/thesis"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/plan"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
	"github.com/gomem/gomem/train"
)

// leastHosts are the smallest host budgets of a model's targets, without a disk and
// with one.
func leastHosts(t *testing.T, m *models.Model, o gomem.Options) (without, with int64) {
	t.Helper()
	o.Disk, o.DiskBytes = "", 0
	ctx, targets := context.Background(), train.Targets(&m.Model)
	without, err := gomem.MinHost(ctx, m.Graph, o, targets...)
	if err != nil {
		t.Fatal(err)
	}
	o.DiskBytes = 1 << 40
	if with, err = gomem.MinHost(ctx, m.Graph, o, targets...); err != nil {
		t.Fatal(err)
	}
	return without, with
}

// TestDiskDoesNotAffectResults: with a disk, the models train with host memory far
// below what they need without, to the same bits, and every memory is used up to what
// was predicted; a byte less is refused.
func TestDiskDoesNotAffectResults(t *testing.T) {
	longtest.Skip(t)
	someModels(t, func(t *testing.T, m *models.Model) {
		want, err := digest(m, gomem.Options{Policy: planner.Vanilla}, 2)
		if err != nil {
			t.Fatal(err)
		}
		policies := []planner.Policy{planner.Thesis}
		if longtest.Enabled() {
			policies = append(policies, planner.Auto)
		}
		for _, policy := range policies {
			o := gomem.Options{Policy: policy, DiskBytes: 1 << 40, Disk: t.TempDir()}
			least, err := gomem.MinDevice(context.Background(), m.Graph, o,
				train.Targets(&m.Model)...)
			if err != nil {
				t.Fatal(err)
			}
			o.DeviceBytes = least + least/16
			without, with := leastHosts(t, m, o)
			t.Logf("%s: the host needs %d bytes, %d with a disk", policy, without, with)
			if with > without/2 {
				t.Errorf("%s: %d bytes of host without a disk, %d with one", policy, without, with)
			}
			for _, host := range []int64{with, (with + without) / 2} {
				o.HostBytes = host
				got, err := digest(m, o, 2)
				if err != nil {
					t.Fatal(err)
				}
				if got != want {
					t.Errorf("%s: other bits in %d bytes of host", policy, host)
				}
			}
			o.HostBytes = with - 1
			if e := refusal(t, m, o); e == nil || e.Space == space.Host && e.Need != with {
				t.Errorf("%s: a byte under %d: %v", policy, with, e)
			}
		}
	})
}

// TestRandomGraphsOnDisk: random graphs train to the same bits with a disk, at the least
// host memory and above, under all policies.
func TestRandomGraphsOnDisk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SampledFrom([]func(func(int) int, int) *randgraph.Model{randgraph.Random,
			randgraph.Exchanging, randgraph.Collective, randgraph.WideExchanging}).Draw(t, "kind")
		m := draw(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }, 12)
		want, err := trial.Plain(m)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.MkdirTemp("", "gomem-disk-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		o := trial.RandomOptions(t)
		o.DiskBytes, o.Disk = 1<<30, dir
		least, err := gomem.MinHost(context.Background(), m.Graph, o,
			gomem.Target{Name: "train", Fetches: m.Fetches, Updates: m.Updates})
		if err != nil {
			t.Fatal(err)
		}
		o.HostBytes = least + least*rapid.Int64Range(0, 8).Draw(t, "more")/8
		got, err := trial.Trained(m, o)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equal(want) {
			t.Fatalf("other bits in %d bytes of host", o.HostBytes)
		}
	})
}

// onDisk is the smallest ResNet in a session with as little host memory as there can be,
// and the directory of its disk.
func onDisk(t *testing.T) (*models.Model, *gomem.Session, string) {
	t.Helper()
	m, err := five["resnet"]()
	if err != nil {
		t.Fatal(err)
	}
	o := gomem.Options{DiskBytes: 1 << 40, Disk: t.TempDir(), Seed: 3}
	if o.HostBytes, err = gomem.MinHost(context.Background(), m.Graph, o,
		train.Targets(&m.Model)...); err != nil {
		t.Fatal(err)
	}
	s, err := gomem.Compile(context.Background(), m.Graph, o, train.Targets(&m.Model)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return m, s, o.Disk
}

// TestDiskIsCut: when somebody cuts the file, steps and reads fail with an error that
// names it; what the step had not begun to write is as it was, and the session closes.
func TestDiskIsCut(t *testing.T) {
	m, s, dir := onDisk(t)
	if _, err := s.Step(context.Background(), "train", thesis.Feeds(m)); err != nil {
		t.Fatal(err)
	}
	if err := cut(dir); err != nil {
		t.Skip(err)
	}
	_, err := s.Step(context.Background(), "train", thesis.Feeds(m))
	step, ok := errors.AsType[*gomem.StepError](err)
	if !ok || !step.Intact() || !errors.Is(err, io.ErrUnexpectedEOF) ||
		!strings.Contains(err.Error(), filepath.Join(dir, "gomem-")) {
		t.Errorf("error is %v", err)
	}
	if _, err := s.Get(s.Variables()[0]); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a variable on the disk is read: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestDiskIsDamaged: when somebody writes over the file, the step ends with an error that names
// value, file and place, and so does reading a variable there; nothing is computed with it.
func TestDiskIsDamaged(t *testing.T) {
	m, s, dir := onDisk(t)
	if _, err := s.Step(context.Background(), "train", thesis.Feeds(m)); err != nil {
		t.Fatal(err)
	}
	if err := each(dir, overwrite); err != nil {
		t.Skip(err)
	}
	_, err := s.Step(context.Background(), "train", thesis.Feeds(m))
	step, ok := errors.AsType[*gomem.StepError](err)
	named, isNamed := errors.AsType[*plan.Error](err)
	if !ok || !isNamed || named.Name == "" || !step.Intact() || !errors.Is(err, gomem.ErrDamaged) ||
		!strings.Contains(err.Error(), filepath.Join(dir, "gomem-")) ||
		!strings.Contains(err.Error(), "at byte ") {
		t.Errorf("error is %v", err)
	}
	if _, err := s.Get(s.Variables()[0]); !errors.Is(err, gomem.ErrDamaged) {
		t.Errorf("a variable on the disk is read: %v", err)
	}
}

// overwrite fills a file with bytes of which floats are NaNs.
func overwrite(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(bytes.Repeat([]byte{0xff}, int(info.Size())))
	return errors.Join(err, f.Close())
}

// cut empties the files that this process has open in a directory.
func cut(dir string) error {
	return each(dir, func(path string) error { return os.Truncate(path, 0) })
}

// each calls do with the files that this process has open in a directory.
func each(dir string, do func(path string) error) error {
	const fds = "/proc/self/fd"
	open, err := os.ReadDir(fds)
	if err != nil {
		return err
	}
	n := 0
	for _, f := range open {
		path := filepath.Join(fds, f.Name())
		if to, err := os.Readlink(path); err == nil && strings.HasPrefix(to, dir) {
			if err := do(path); err != nil {
				return err
			}
			n++
		}
	}
	if n == 0 {
		return errors.New("no file of the disk is open")
	}
	return nil
}

// TestDiskLeavesNothing: nothing is in the directory while a session is open, nor after.
func TestDiskLeavesNothing(t *testing.T) {
	_, s, dir := onDisk(t)
	for range 2 {
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("%v in the directory: %v", files, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDiskOptions: what cannot be a disk is refused before anything is taken, with the
// directory's name.
func TestDiskOptions(t *testing.T) {
	m, err := five["resnet"]()
	if err != nil {
		t.Fatal(err)
	}
	ctx, targets := context.Background(), train.Targets(&m.Model)
	o := gomem.Options{DiskBytes: 1 << 40}
	if o.HostBytes, err = gomem.MinHost(ctx, m.Graph, o, targets...); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		disk  string
		bytes int64
		want  string
	}{
		{"", 1 << 40, "directory for it is missing"},
		{missing, 1 << 40, missing},
		{file, 1 << 40, file},
		{missing, 0, "its budget is missing"},
		{missing, -1, "disk budget of -1 bytes"},
	} {
		o.Disk, o.DiskBytes = c.disk, c.bytes
		s, err := gomem.Compile(ctx, m.Graph, o, targets...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("disk %q of %d bytes: %v, %v", c.disk, c.bytes, s, err)
		}
	}
}

// TestDiskOnOtherDevices: where nothing is computed, plans with a disk need no
// directory, and keep to their peaks.
func TestDiskOnOtherDevices(t *testing.T) {
	m, err := five["deepspeech"]()
	if err != nil {
		t.Fatal(err)
	}
	ctx, targets := context.Background(), train.Targets(&m.Model)
	for _, name := range []string{gomem.Null, gomem.Sim + "titanx"} {
		o := gomem.Options{DiskBytes: 1 << 40, Device: name}
		if o.HostBytes, err = gomem.MinHost(ctx, m.Graph, o, targets...); err != nil {
			t.Fatal(err)
		}
		s, err := gomem.Compile(ctx, m.Graph, o, targets...)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range targets {
			if _, err := s.Step(ctx, target.Name, thesis.Feeds(m)); err != nil {
				t.Error(err)
			}
		}
		usage := s.Usage()
		if len(usage) != 3 || usage[2].Space != "disk" || usage[2].Actual == 0 {
			t.Errorf("%s: %+v", name, usage)
		}
		for _, u := range usage {
			if u.Actual != u.Predicted {
				t.Errorf("%s: %s used %d, predicted %d", name, u.Space, u.Actual, u.Predicted)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDeepest: a ResNet of 14,966 layers trains on a device of 12 GiB beside 64 GiB of
// host memory, and with a disk one of 12,002 layers by the thesis' policy, and a mixture of
// experts of 20 billion parameters: a step of each keeps to the peaks.
func TestDeepest(t *testing.T) {
	if !longtest.Enabled() {
		t.Skip("plans of half a million nodes")
	}
	for name, c := range map[string]struct {
		options gomem.Options
		build   func() (*models.Model, error)
	}{
		"resnet":         {gomem.Options{Policy: planner.Auto}, deepResNet(4950)},
		"resnet on disk": {gomem.Options{DiskBytes: 1 << 40}, deepResNet(3962)},
		"moe on disk":    {gomem.Options{Partition: 200, DiskBytes: 1 << 40}, manyExperts},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := c.build()
			if err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			o := c.options
			o.Device, o.DeviceBytes, o.HostBytes = gomem.Null, 12<<30, 64<<30
			s, err := gomem.Compile(ctx, m.Graph, o, train.Targets(&m.Model)...)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Step(ctx, "train", thesis.Feeds(m)); err != nil {
				t.Fatal(err)
			}
			for _, u := range s.Usage() {
				t.Logf("%s: %d bytes", u.Space, u.Actual)
				if u.Actual != u.Predicted {
					t.Errorf("%s used %d, predicted %d", u.Space, u.Actual, u.Predicted)
				}
			}
		})
	}
}

// deepResNet builds one with so many blocks in the third stage.
func deepResNet(blocks int) func() (*models.Model, error) {
	return func() (*models.Model, error) {
		c, err := models.NewResNetConfig("base")
		c.Images, c.Blocks = 16, [4]int{3, 32, blocks, 3}
		return smallest(c, err, models.ResNet)
	}
}

// manyExperts builds a mixture of 400 experts.
func manyExperts() (*models.Model, error) {
	c, err := models.NewMoEConfig("base")
	c.Pairs, c.Experts, c.ExpertHidden, c.Sparse = 8, 400, 2*c.ExpertHidden, true
	return smallest(c, err, models.MoE)
}

// TestMinDisk: the least disk of a model whose variables the host has no room for is a number
// with which a session opens, and a byte less is refused.
func TestMinDisk(t *testing.T) {
	m, err := five["resnet"]()
	if err != nil {
		t.Fatal(err)
	}
	ctx, targets := context.Background(), train.Targets(&m.Model)
	o := gomem.Options{Policy: planner.Thesis}
	if n, err := gomem.MinDisk(ctx, m.Graph, o, targets...); n != 0 || err != nil {
		t.Errorf("without a budget of the host the least disk is %d, %v", n, err)
	}
	without, with := leastHosts(t, m, o)
	o.HostBytes = (without + with) / 2
	n, err := gomem.MinDisk(ctx, m.Graph, o, targets...)
	if err != nil || n <= 0 {
		t.Fatalf("the least disk is %d, %v", n, err)
	}
	o.DiskBytes, o.Disk = n, t.TempDir()
	if e := refusal(t, m, o); e != nil {
		t.Errorf("the least disk, of %d bytes: %v", n, e)
	}
	o.DiskBytes--
	if e := refusal(t, m, o); e == nil || e.Space != space.Disk || e.Need != n {
		t.Errorf("a byte less than %d of a disk: %v", n, e)
	}
}
