package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/regular"
)

// Kept is how many whole snapshots a directory keeps: one more than the newest, whose files may be
// damaged.
const Kept = 2

const about = "run.json"

// Mark names a snapshot: of an epoch, saved by the workers of a view.
type Mark struct{ Epoch, View int64 }

// String is the name of the snapshot's directory.
func (m Mark) String() string { return fmt.Sprintf("%d.%d", m.Epoch, m.View) }

func parseMark(name string) (m Mark, ok bool) {
	epoch, view, ok := strings.Cut(name, ".")
	var err, more error
	m.Epoch, err = strconv.ParseInt(epoch, 10, 64)
	m.View, more = strconv.ParseInt(view, 10, 64)
	return m, ok && err == nil && more == nil && m.Epoch >= 0 && m.String() == name
}

func (m Mark) compare(o Mark) int {
	return cmp.Or(cmp.Compare(m.Epoch, o.Epoch), cmp.Compare(m.View, o.View))
}

// Dir is a directory of snapshots.
type Dir struct {
	path string
	disk regular.Disk
}

// Open is the directory at a path, which need not be there yet.
func Open(path string) *Dir { return &Dir{path, regular.OS{}} }

// String is its path.
func (d *Dir) String() string { return d.path }

// Is reports whether a path is that of the directory, however it is spelt.
func (d *Dir) Is(path string) bool {
	a, err := os.Stat(d.path)
	b, more := os.Stat(path)
	return err == nil && more == nil && os.SameFile(a, b)
}

// Begin makes the directory, and says what run it is of. The error is fs.ErrExist if it has another
// one, or snapshots.
func (d *Dir) Begin(run any) error {
	if err := d.disk.MkdirAll(d.path); err != nil {
		return err
	}
	text, err := described(run)
	if err != nil {
		return err
	}
	_, saved := d.Latest()
	have, err := regular.ReadFile(filepath.Join(d.path, about))
	switch {
	case saved || err == nil && !bytes.Equal(have, text):
		return fmt.Errorf("%s: the directory has snapshots of another run: %w", d.path, fs.ErrExist)
	case regular.IgnoreMissing(err) != nil:
		return err
	}
	return d.write(d.path, about, text)
}

// Describe says anew what the run is whose snapshots are there.
func (d *Dir) Describe(run any) error {
	text, err := described(run)
	if err != nil {
		return err
	}
	return d.write(d.path, about, text)
}

func described(run any) ([]byte, error) {
	text, err := json.MarshalIndent(run, "", "  ")
	return append(text, '\n'), err
}

func (d *Dir) write(dir, name string, b []byte) error {
	return regular.Replace(d.disk, dir, name, func(f regular.File) error {
		_, err := f.Write(b)
		return err
	})
}

// Run reads what Begin wrote. The error is fs.ErrNotExist if nothing is there.
func (d *Dir) Run(run any) error {
	b, err := regular.ReadFile(filepath.Join(d.path, about))
	if err == nil {
		err = json.Unmarshal(b, run)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(d.path, about), regular.Bare(err))
	}
	return nil
}

// Save adds rows of a snapshot of so many, and removes snapshots that are not kept.
func (d *Dir) Save(m Mark, rows int, s *distrib.Shard) error {
	if len(s.Rows) == 0 {
		return nil
	}
	var b bytes.Buffer
	if _, err := s.WriteTo(&b); err != nil {
		return err
	}
	dir := filepath.Join(d.path, m.String())
	if err := d.disk.MkdirAll(dir); err != nil {
		return err
	}
	if err := d.write(dir, shardName(s, rows), b.Bytes()); err != nil {
		return err
	}
	return d.prune()
}

// shardName is unique: tables of one plan are saved together.
func shardName(s *distrib.Shard, of int) string {
	n := 0
	for _, r := range s.Rows {
		n += int(r.N)
	}
	table := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, s.Rows[0].Param)
	return fmt.Sprintf("%d.%s.%d-of-%d.shard", s.Node, table, n, of)
}

// rowsOf is how many rows of how many a file has, by its name.
func rowsOf(name string) (rows, of int, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 4 || parts[3] != "shard" {
		return 0, 0, false
	}
	n, total, ok := strings.Cut(parts[2], "-of-")
	rows, err := strconv.Atoi(n)
	of, more := strconv.Atoi(total)
	return rows, of, ok && err == nil && more == nil && rows > 0 && rows <= of
}

// prune removes snapshots older than those that are kept, as others may at the same time.
func (d *Dir) prune() error {
	all, err := d.whole()
	if err != nil || len(all) <= Kept {
		return err
	}
	return d.remove(func(m Mark) bool { return m.compare(all[len(all)-Kept]) < 0 })
}

// Return removes the parts of snapshots of epochs after one that somebody goes on from: they would
// otherwise be put together with what is saved then. Nobody may be saving.
func (d *Dir) Return(epoch int64) error {
	return d.remove(func(m Mark) bool { return m.Epoch > epoch && d.files(m) == nil })
}

func (d *Dir) remove(which func(Mark) bool) error {
	marks, err := d.marks()
	for _, m := range marks {
		if which(m) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.path, m.String())))
		}
	}
	return err
}

// marks are the snapshots that there are parts of, in order.
func (d *Dir) marks() ([]Mark, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, regular.IgnoreMissing(err)
	}
	var all []Mark
	for _, e := range entries {
		if m, ok := parseMark(e.Name()); ok {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, Mark.compare)
	return all, nil
}

// whole are those of which all files are there, in order.
func (d *Dir) whole() ([]Mark, error) {
	marks, err := d.marks()
	return slices.DeleteFunc(marks, func(m Mark) bool { return d.files(m) == nil }), err
}

// files are the paths of a snapshot's files, nil if rows are missing.
func (d *Dir) files(m Mark) []string {
	dir := filepath.Join(d.path, m.String())
	entries, _ := os.ReadDir(dir)
	var paths []string
	have, want := 0, 0
	for _, e := range entries {
		if rows, of, ok := rowsOf(e.Name()); ok && (want == 0 || of == want) {
			have, want = have+rows, of
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if want == 0 || have != want {
		return nil
	}
	return paths
}

// Latest is the newest whole snapshot; !ok if there is none.
func (d *Dir) Latest() (m Mark, ok bool) {
	all, _ := d.whole()
	if len(all) == 0 {
		return m, false
	}
	return all[len(all)-1], true
}

// Read reads a snapshot. The kinds are those of one's own that rows in it may have.
func (d *Dir) Read(m Mark, kinds ...distrib.Kind) ([]*distrib.Shard, error) {
	files := d.files(m)
	if files == nil {
		return nil, fmt.Errorf("%s: snapshot %v is not whole", d.path, m)
	}
	var all []*distrib.Shard
	for _, path := range files {
		s, err := read(path, kinds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, s)
	}
	return all, nil
}

func read(path string, kinds []distrib.Kind) (*distrib.Shard, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, regular.Bare(err)
	}
	defer f.Close()
	return distrib.ReadShard(f, kinds...)
}

// Newest reads the newest snapshot that is whole and undamaged. The error is that of the newest
// if none is, and fs.ErrNotExist if there is none at all.
func (d *Dir) Newest(kinds ...distrib.Kind) (Mark, []*distrib.Shard, error) {
	all, err := d.whole()
	for _, m := range slices.Backward(all) {
		shards, bad := d.Read(m, kinds...)
		if bad == nil {
			return m, shards, nil
		}
		err = cmp.Or(err, bad)
	}
	return Mark{}, nil, cmp.Or(err, fmt.Errorf("%s: there is no whole snapshot: %w", d.path,
		fs.ErrNotExist))
}
