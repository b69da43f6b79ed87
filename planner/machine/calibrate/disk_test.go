package calibrate_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomem/gomem/planner/machine/calibrate"
)

// TestDisk: a disk is measured once, nothing is left there, and prices are by what it does.
func TestDisk(t *testing.T) {
	o := calibrate.Options{Cache: fresh(t)}
	m, dir := open(t, o), t.TempDir()
	guess := m.Local().Profile
	if err := m.Disk(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	p := m.Local().Profile
	if p.DiskRead == guess.DiskRead || p.DiskWrite == guess.DiskWrite || p.Check() != nil {
		t.Errorf("%+v, guessed %+v", p, guess)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	again := open(t, o)
	if again.Local().Profile.DiskRead != guess.DiskRead {
		t.Error("a disk that was not asked for has prices")
	}
	// what is known is not measured: a cancelled context stops nothing
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := again.Disk(ctx, dir); err != nil {
		t.Fatal(err)
	}
	if q := again.Local().Profile; q.DiskRead != p.DiskRead || q.DiskWrite != p.DiskWrite {
		t.Errorf("%+v, before %+v", q, p)
	}
	other := t.TempDir()
	if err := again.Disk(ctx, other); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, err := os.ReadDir(other); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	err := again.Disk(t.Context(), filepath.Join(other, "none"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}
