package command

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/snapshot"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
)

// matrix is a table of the newest snapshot of a run.
type matrix struct {
	rows, cols int
	data       []float32
}

// readTables are the tables of the newest snapshot in a directory, and of which epoch they are.
func readTables(path location) (map[string]*matrix, int64, error) {
	mark, shards, err := snapshot.Open(string(path)).Newest()
	if err != nil {
		return nil, 0, err
	}
	var rows []distrib.SavedRows
	for _, s := range shards {
		rows = append(rows, s.Rows...)
	}
	slices.SortFunc(rows, func(a, b distrib.SavedRows) int { return cmp.Compare(a.Row, b.Row) })
	all := map[string]*matrix{}
	for _, r := range rows {
		t := all[r.Param]
		if t == nil {
			t = &matrix{cols: r.Cols}
			all[r.Param] = t
		}
		if int(r.Row) != t.rows || r.Cols != t.cols {
			return nil, 0, fmt.Errorf("%s: snapshot %v has rows [%d, +%d) of %s after %d of %d "+
				"numbers each", path, mark, r.Row, r.N, r.Param, t.rows, t.cols)
		}
		t.take(r)
	}
	return all, mark.Epoch, nil
}

// take adds the rows that follow.
func (t *matrix) take(r distrib.SavedRows) {
	if r.Kind == "" {
		t.data = append(t.data, r.Data...)
	}
	for _, u := range r.Cells {
		row := make([]float32, t.cols)
		u.AddTo(row, t.cols, 1)
		t.data = append(t.data, row...)
	}
	t.rows += int(r.N)
}

// exportTables writes the newest snapshot of a run as a file of tensors, and the words of topics, a
// line each, where they have names.
func exportTables(to, from location, run tablesRun) (string, error) {
	all, epoch, err := readTables(from)
	if err != nil {
		return "", err
	}
	var entries []safetensors.Entry
	elements := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t := all[name]
		elements += len(t.data)
		entries = append(entries, safetensors.Entry{Name: name,
			Type: tensor.Of(tensor.F32, t.rows, t.cols)})
	}
	disk := regular.OS{}
	if err := disk.MkdirAll(string(to)); err != nil {
		return "", err
	}
	err = regular.Replace(disk, string(to), "model.safetensors", func(f regular.File) error {
		return safetensors.Write(f, entries, map[string]string{"epoch": fmt.Sprint(epoch)},
			safetensors.Whole(func(e safetensors.Entry) ([]byte, error) {
				return binary.Append(nil, binary.LittleEndian, all[e.Name].data)
			}))
	})
	if err == nil && run.LDA != nil && run.LDA.Words != nil {
		err = regular.Replace(disk, string(to), "vocab.txt", func(f regular.File) error {
			_, err := io.WriteString(f, strings.Join(run.LDA.Words, "\n")+"\n")
			return err
		})
	}
	return fmt.Sprintf("wrote %s: %s numbers of %s, after epoch %d\n", to,
		grouped(int64(elements)), counted(len(entries), "table"), epoch), err
}
