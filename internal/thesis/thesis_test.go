package thesis

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/planner"
)

// TestBisect finds a limit from any guess, asking for nothing below 1.
func TestBisect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, guess := rapid.IntRange(0, 5000).Draw(t, "limit"),
			rapid.IntRange(1, 10000).Draw(t, "guess")
		asked := 0
		got, err := bisect(guess, func(n int) (bool, error) {
			if asked++; n < 1 {
				t.Fatalf("asked for %d", n)
			}
			return n <= limit, nil
		})
		if err != nil || got != limit {
			t.Errorf("found %d, %v; want %d", got, err, limit)
		}
		if asked > 40 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// TestExtrapolate: the line through two needs ends where the tighter cap is.
func TestExtrapolate(t *testing.T) {
	for _, c := range []struct {
		a, b         need
		device, host int64
		want         int
	}{
		{need{device: 100, host: 10}, need{device: 200, host: 20}, 1000, 1000, 100},
		{need{device: 100, host: 10}, need{device: 200, host: 20}, 1000, 50, 50},
		{need{device: 100}, need{device: 100}, 1000, 1000, 1 << 20},
		{need{device: 1000}, need{device: 1900}, 100, 1, 1},
	} {
		if got := extrapolate(10, c.a, c.b, c.device, c.host); got != c.want {
			t.Errorf("%+v: %d, want %d", c, got, c.want)
		}
	}
}

// TestLayers: the thesis' depths.
func TestLayers(t *testing.T) {
	for blocks, want := range map[int]int{130: 506, 295: 1001, 321: 1079, 600: 1916} {
		if got := layers(blocks); got != want {
			t.Errorf("%d blocks are %d layers, want %d", blocks, got, want)
		}
	}
}

// TestProgressNamesThePolicy: what is being planned is said in full.
func TestProgressNamesThePolicy(t *testing.T) {
	stop := errors.New("no need to plan")
	w := workload{name: "Net", unit: "images", words: 1, guess: map[string]int{replica: 3},
		build: func(string, int) (*models.Model, error) { return nil, stop }}
	for _, c := range []struct {
		options planner.Options
		want    string
	}{
		{vanilla(), "Net s64, vanilla: planning 3 images"},
		{placed(20), "Net s64, thesis: planning 3 images"},
	} {
		var said []string
		r := &runner{Options{Progress: func(line string) { said = append(said, line) }}}
		if _, err := r.largest(context.Background(), w, replica, c.options); err != stop ||
			strings.Join(said, "; ") != c.want {
			t.Errorf("%q, %v; want %q", said, err, c.want)
		}
	}
}

// collect makes tables.
func collect(t *testing.T, o Options) []Table {
	t.Helper()
	var tables []Table
	if err := Run(context.Background(), o,
		func(t Table) error { tables = append(tables, t); return nil }); err != nil {
		t.Fatal(err)
	}
	return tables
}

// TestParameters: the counts of the thesis' models, to the last parameter.
func TestParameters(t *testing.T) {
	longtest.Skip(t)
	table := collect(t, Options{Tables: []string{"6.1"}, Size: full})[0]
	var got []string
	for _, r := range table.Rows {
		got = append(got, r[2])
	}
	want := "61,378,560 860,700,672 60,194,857 697,008,169 16,808,388 47,224,861"
	if strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestForms: every form of a table has all its rows.
func TestForms(t *testing.T) {
	longtest.Skip(t)
	dir := t.TempDir()
	table := collect(t, Options{Tables: []string{"fig6.4"}, Size: full, Plots: dir})[0]
	var text, comma, marks, object bytes.Buffer
	for _, err := range []error{table.WriteText(&text), table.WriteCSV(&comma),
		table.WriteMarkdown(&marks), table.WriteJSON(&object)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(&comma).ReadAll()
	if err != nil || len(rows) != 1+len(table.Rows) {
		t.Errorf("%d lines of CSV, %v", len(rows), err)
	}
	var back Table
	if err := json.Unmarshal(object.Bytes(), &back); err != nil || back.ID != "fig6.4" ||
		len(back.Rows) != 3 {
		t.Errorf("JSON %+v, %v", back, err)
	}
	for _, out := range []string{text.String(), marks.String()} {
		if !strings.Contains(out, "+placement") || !strings.Contains(out, table.Title) {
			t.Errorf("no row or title in\n%s", out)
		}
	}
	for _, name := range []string{"fig6.4.png", "fig6.4.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCells(t *testing.T) {
	for want, c := range map[string]any{
		"1,234,567": 1234567, "12": int64(12), "0.50": 0.5, "12.3": 12.34, "1,235": 1234.6,
		"-": math.NaN(), "x": "x", "100": 99.99999 + 0.1,
	} {
		if got := cell(c); got != want {
			t.Errorf("%v is %s, want %s", c, got, want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"unknown table": {Tables: []string{"7.1"}}, "size": {Size: "s1"}, "negative": {Runs: -1},
	} {
		err := Run(context.Background(), o, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
