package train

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzRecord: a table of metrics has a cell of every row for every column, and no more than the
// file; of anything else the error is one short line.
func FuzzRecord(f *testing.F) {
	f.Add([]byte("step,time,loss\n1,0.5,2\n2,1,"))
	f.Add([]byte("step\n1\n"))
	f.Add([]byte("step,step\n1,2\n"))
	f.Add([]byte("\n\n"))
	f.Add([]byte("\"st\nep\x1b[2J\",b\n"))
	f.Add([]byte("step,a\n1\n"))
	f.Add([]byte(strings.Repeat("\x1b", 5000) + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), recordName)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		columns, rows, err := readRecord(path)
		if err != nil {
			oneLine(t, err)
			return
		}
		cells := 0
		for i, row := range rows {
			for _, c := range columns {
				if _, ok := row[c]; !ok || len(row) > len(columns) {
					t.Fatalf("row %d, %q, of columns %q", i, row, columns)
				}
			}
			cells += len(columns)
		}
		if cells > len(text) {
			t.Errorf("%d cells of %d bytes", cells, len(text))
		}
	})
}
