package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomem/gomem/distrib"
)

// shard is rows [from, from+n) of a table whose every number is the same.
func shard(node distrib.NodeID, table string, from, n int, value float32) *distrib.Shard {
	data := make([]float32, 2*n)
	for i := range data {
		data[i] = value
	}
	return &distrib.Shard{Node: node, Clock: 7, Rows: []distrib.SavedRows{{Param: table, Cols: 2,
		Row: int32(from), N: int32(n), Data: data}}}
}

// put saves a snapshot of two tables of 3 and 2 rows, in parts, all but some.
func put(t *testing.T, d *Dir, m Mark, value float32, but ...int) {
	t.Helper()
	parts := []*distrib.Shard{shard(0, "a/w", 0, 2, value), shard(1, "a/w", 2, 1, value),
		shard(1, "b", 0, 2, value), {Node: 2, Clock: 7}}
	for i, s := range parts {
		if slices.Contains(but, i) {
			continue
		}
		if err := d.Save(m, 5, s); err != nil {
			t.Fatal(err)
		}
	}
}

func newest(t *testing.T, d *Dir) (Mark, float32) {
	t.Helper()
	m, shards, err := d.Newest()
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	value := shards[0].Rows[0].Data[0]
	for _, s := range shards {
		for _, r := range s.Rows {
			rows += int(r.N)
			for _, x := range r.Data {
				if x != value {
					t.Errorf("%v has numbers of two snapshots", m)
				}
			}
		}
	}
	if rows != 5 {
		t.Errorf("%v has %d rows", m, rows)
	}
	return m, value
}

// TestWhole: a snapshot is read once all of its rows are there, and the newest is.
func TestWhole(t *testing.T) {
	d := Open(t.TempDir())
	if _, _, err := d.Newest(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
	put(t, d, Mark{2, 1}, 2)
	put(t, d, Mark{4, 1}, 4, 1) // a part is missing
	put(t, d, Mark{4, 2}, 5, 0)
	if m, value := newest(t, d); m != (Mark{2, 1}) || value != 2 {
		t.Errorf("%v, %v", m, value)
	}
	put(t, d, Mark{4, 2}, 5)
	if m, value := newest(t, d); m != (Mark{4, 2}) || value != 5 {
		t.Errorf("%v, %v", m, value)
	}
	put(t, d, Mark{10, 1}, 10) // by number, not by name
	if m, _ := newest(t, d); m != (Mark{10, 1}) {
		t.Errorf("%v", m)
	}
}

// TestKept: the last two that are whole are kept, and what is newer than those.
func TestKept(t *testing.T) {
	d := Open(t.TempDir())
	for epoch := range int64(6) {
		put(t, d, Mark{epoch, 1}, float32(epoch))
	}
	put(t, d, Mark{9, 1}, 9, 0)
	marks, err := d.marks()
	if want := []Mark{{4, 1}, {5, 1}, {9, 1}}; err != nil || !slices.Equal(marks, want) {
		t.Errorf("%v, %v: want %v", marks, err, want)
	}
}

// TestReturn: parts of later epochs are gone once somebody goes on from an earlier one; so two runs
// that save the same epoch in views of the same number are never put together.
func TestReturn(t *testing.T) {
	d := Open(t.TempDir())
	put(t, d, Mark{1, 1}, 1)
	put(t, d, Mark{2, 1}, 2, 1)
	if err := d.Return(1); err != nil {
		t.Fatal(err)
	}
	put(t, d, Mark{2, 1}, 3, 0)
	if m, _ := newest(t, d); m != (Mark{1, 1}) {
		t.Errorf("%v is whole", m)
	}
}

// TestDamaged: what is damaged or strange is passed over, or said by name.
func TestDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		d := Open(t.TempDir())
		put(t, d, Mark{1, 1}, 1)
		put(t, d, Mark{2, 1}, 2)
		dir := filepath.Join(d.path, "2.1")
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, files[rng.IntN(len(files))].Name())
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		switch i % 3 {
		case 0:
			b = b[:rng.IntN(len(b))]
		case 1:
			b[rng.IntN(len(b))] ^= byte(1 + rng.IntN(255))
		case 2:
			b = append(b, byte(i))
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Read(Mark{2, 1}); err == nil {
			t.Errorf("case %d is read", i)
		}
		if m, _ := newest(t, d); m != (Mark{1, 1}) {
			t.Errorf("case %d: %v", i, m)
		}
	}
}

// TestNames: other files and directories are none of a snapshot's.
func TestNames(t *testing.T) {
	d := Open(t.TempDir())
	put(t, d, Mark{3, 1}, 3)
	for _, name := range []string{"04.1", "-1.1", "4", "4.1.1", "x.y", "99999999999999999999.1"} {
		if err := os.MkdirAll(filepath.Join(d.path, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"0.a.0-of-5.shard", "0.a.9-of-5.shard", "0.a.x-of-5.shard",
		".0.a.1-of-5.shard.77.tmp", "notes", "0.a.1-of-99999999999999999999.shard"} {
		if err := os.WriteFile(filepath.Join(d.path, "3.1", name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if m, _ := newest(t, d); m != (Mark{3, 1}) {
		t.Errorf("%v", m)
	}
}

// TestBegin: a directory belongs to one run.
func TestBegin(t *testing.T) {
	d := Open(filepath.Join(t.TempDir(), "a", "b"))
	type run struct{ Model string }
	var have run
	if err := d.Run(&have); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	for range 2 { // who is started again before anything was saved
		if err := d.Begin(run{"lr"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Run(&have); err != nil || have.Model != "lr" {
		t.Errorf("%+v, %v", have, err)
	}
	if err := d.Begin(run{"mf"}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("another run: %v", err)
	}
	put(t, d, Mark{1, 1}, 1)
	if err := d.Begin(run{"lr"}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a run that was saved: %v", err)
	}
}

// TestSaveFails: where nothing can be written, Save says so, and nothing is half written.
func TestSaveFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "1.1"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	d := Open(dir)
	if err := d.Save(Mark{1, 1}, 1, shard(0, "a", 0, 1, 1)); err == nil {
		t.Error("saved over a file")
	}
	if err := d.Begin(func() {}); err == nil {
		t.Error("a function is no description of a run")
	}
	if _, ok := d.Latest(); ok {
		t.Error("something is there")
	}
}

func ExampleMark_String() {
	fmt.Println(Mark{Epoch: 40, View: 2})
	// Output: 40.2
}
