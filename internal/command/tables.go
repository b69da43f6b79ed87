package command

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

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
	all := map[string]*matrix{}
	for _, s := range shards {
		for _, r := range s.Rows {
			t := all[r.Param]
			if t == nil {
				t = &matrix{cols: r.Cols}
				all[r.Param] = t
			}
			t.take(r)
		}
	}
	return all, mark.Epoch, nil
}

// take puts rows in their place.
func (t *matrix) take(r distrib.SavedRows) {
	if end := int(r.Row + r.N); end > t.rows {
		t.data = append(t.data, make([]float32, (end-t.rows)*t.cols)...)
		t.rows = end
	}
	at := t.data[int(r.Row)*t.cols:]
	copy(at, r.Data)
	for i, u := range r.Cells {
		u.AddTo(at[i*t.cols:(i+1)*t.cols], t.cols, 1)
	}
}

// exportTables writes the newest snapshot of a run as a file of tensors.
func exportTables(to, from location) (string, error) {
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
			func(e safetensors.Entry) ([]byte, error) {
				return binary.Append(nil, binary.LittleEndian, all[e.Name].data)
			})
	})
	return fmt.Sprintf("wrote %s: %s numbers of %s, after epoch %d\n", to,
		grouped(int64(elements)), counted(len(entries), "table"), epoch), err
}
