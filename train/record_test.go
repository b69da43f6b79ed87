package train

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomem/gomem/data"
)

// recorded is a run that writes its numbers, and evaluates and saves.
func recorded(t *testing.T, dir string, steps int) Options {
	t.Helper()
	o := worsening(t)
	o.Patience, o.Steps, o.EvalEvery, o.SaveEvery = Patience{}, steps, 3, 4
	o.Save, o.Metrics = filepath.Join(dir, "run"), filepath.Join(dir, "numbers")
	return o
}

// rowsOf are the rows of a run's table without what is of time, and its columns.
func rowsOf(t *testing.T, dir string) (columns []string, rows []string) {
	t.Helper()
	columns, all, err := readRecord(filepath.Join(dir, "numbers", recordName))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range all {
		var cells []string
		for _, c := range columns {
			if !strings.Contains(c, "seconds") {
				cells = append(cells, c+"="+row[c])
			}
		}
		rows = append(rows, strings.Join(cells, " "))
	}
	return columns, rows
}

// TestMetrics: a row a step, with the numbers of its events, and those of evaluations in the row
// of the step before them.
func TestMetrics(t *testing.T) {
	dir := t.TempDir()
	o := recorded(t, dir, 7)
	events := watch(&o)
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	columns, rows := rowsOf(t, dir)
	want := append(slices.Clone(recordColumns), "accuracy", "held_out_accuracy")
	if !slices.Equal(columns, want) || len(rows) != 7 {
		t.Fatalf("columns are %q, want %q; %d rows", columns, want, len(rows))
	}
	for _, e := range *events {
		words := []string{"step=" + strconv.Itoa(e.Step) + " "}
		switch e.Kind {
		case Step:
			words = append(words, " loss="+decimal(e.Loss),
				"learning_rate="+decimal(e.LearningRate),
				" accuracy="+decimal(e.Metrics["accuracy"]))
		case Eval:
			words = append(words, "held_out_loss="+decimal(e.Loss))
		default:
			continue
		}
		for _, w := range words {
			if row := rows[e.Step-1]; !strings.Contains(row, w) {
				t.Errorf("row %q has no %q", row, w)
			}
		}
	}
	for i, row := range rows {
		due := i+1 == 3 || i+1 == 6 || i+1 == 7
		if due == strings.Contains(row, "held_out_loss= ") {
			t.Errorf("row %d is %q", i+1, row)
		}
	}
}

// TestMetricsGoOn: a run that was interrupted, or crashed some steps after its last checkpoint,
// and is resumed has the rows of one that never stopped, each once.
func TestMetricsGoOn(t *testing.T) {
	whole := t.TempDir()
	mustRun(t, recorded(t, whole, 11))
	columns, want := rowsOf(t, whole)
	for _, stop := range []int{1, 4, 6, 7, 9} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		o := recorded(t, dir, 11)
		o.Observe = func(e Event) {
			if e.Kind == Step && e.Step == stop {
				cancel()
			}
		}
		if _, err := Run(ctx, o); err != nil {
			t.Fatal(err)
		}
		cancel()
		o = recorded(t, dir, 11)
		o.Resume = o.Save
		mustRun(t, o)
		if c, rows := rowsOf(t, dir); !slices.Equal(rows, want) || !slices.Equal(c, columns) {
			t.Errorf("interrupted after step %d:\n%s\nwant\n%s", stop, strings.Join(rows, "\n"),
				strings.Join(want, "\n"))
		}
	}
	for _, steps := range []int{5, 6, 7} { // it crashes after them, and was saved after 4
		dir := t.TempDir()
		o := recorded(t, dir, 11)
		o.Loader = ending{o.Loader, steps, new(bool)}
		o.Keep = 99
		_, err := Run(t.Context(), o)
		if err == nil {
			t.Fatal("no error")
		}
		torn, err := os.OpenFile(filepath.Join(dir, "numbers", recordName),
			os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = torn.WriteString("12,0.4") // in the middle of a row
		}
		if err := errors.Join(err, torn.Close()); err != nil {
			t.Fatal(err)
		}
		o = recorded(t, dir, 11)
		o.Resume = filepath.Join(o.Save, fileName(4))
		mustRun(t, o)
		if _, rows := rowsOf(t, dir); !slices.Equal(rows, want) {
			t.Errorf("crashed after step %d:\n%s\nwant\n%s", steps, strings.Join(rows, "\n"),
				strings.Join(want, "\n"))
		}
	}
}

// TestMetricsOfWorkers: the first writes, what it says of all.
func TestMetricsOfWorkers(t *testing.T) {
	dir := t.TempDir()
	out := abreast(3, 2, func(int) (context.Context, Options) {
		o := lesson(t, 6, 1)
		o.Epochs, o.Steps, o.EvalEvery = 0, 5, 2
		o.Metrics, o.Save = filepath.Join(dir, "numbers"), filepath.Join(dir, "run")
		o.KeepBest = true
		return t.Context(), o
	})
	if err := errors.Join(out.errs...); err != nil {
		t.Fatal(err)
	}
	_, rows := rowsOf(t, dir)
	if len(rows) != 5 || len(names(t, filepath.Join(dir, "numbers"))) != 2 {
		t.Fatalf("%q, files %q", rows, names(t, filepath.Join(dir, "numbers")))
	}
	for _, e := range out.events[0] {
		row, text := "", " loss="+decimal(e.Loss)+" "
		switch e.Kind {
		case Step:
			row = rows[e.Step-1]
		case Eval:
			row, text = rows[e.Step-1]+" ", "held_out_loss="+decimal(e.Loss)+" "
		}
		if row != "" && !strings.Contains(row, text) {
			t.Errorf("row %q has no %q", row, text)
		}
	}
	best, err := Inspect(filepath.Join(dir, "run", "best"))
	if err != nil || best.Step != out.summaries[0].BestStep || best.Step == 0 {
		t.Errorf("the best is %+v, %v", best, err)
	}
}

// ending are batches that cannot be read after some steps.
type ending struct {
	data.Batches
	after int
	ended *bool
}

func (b ending) Train(i int) data.Batch {
	*b.ended = *b.ended || i >= b.after
	return b.Batches.Train(i)
}

func (b ending) Err() error {
	if *b.ended {
		return errors.New("the disk is gone")
	}
	return nil
}

// TestMetricsRefuse: a directory with the numbers of another run, or of another program.
func TestMetricsRefuse(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, recorded(t, dir, 2))
	o := recorded(t, dir, 2)
	o.Save, o.SaveEvery = "", 0
	if _, err := Run(t.Context(), o); !errors.Is(err, errRecorded) {
		t.Errorf("error is %v", err)
	}
	table := filepath.Join(dir, "numbers", recordName)
	for text, want := range map[string]string{"time,loss\n1,2\n": "begins with column",
		"step,loss\n1\n": "wrong number of fields"} {
		if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Run(t.Context(), o)
		if _, ok := errors.AsType[*ErrOption](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}

// readEvents prints what TensorBoard reads of a directory.
const readEvents = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
a.Reload()
print(json.dumps({t: [(s.step, s.value) for s in a.Scalars(t)] for t in a.Tags()["scalars"]}))
`

// TestTensorBoardReads: TensorBoard's own reader has the numbers of the table, each step once, of
// a run that was resumed from a checkpoint some steps back. Without TensorBoard, in
// GOMEM_TENSORBOARD_PYTHON or python3, it is left out.
func TestTensorBoardReads(t *testing.T) {
	python := os.Getenv("GOMEM_TENSORBOARD_PYTHON")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import tensorboard").Run() != nil {
		t.Skip("there is no TensorBoard")
	}
	dir := t.TempDir()
	mustRun(t, recorded(t, dir, 7))
	o := recorded(t, dir, 11)
	o.Resume = filepath.Join(o.Save, fileName(4))
	mustRun(t, o)
	out, err := exec.Command(python, "-c", readEvents, filepath.Join(dir, "numbers")).Output()
	if err != nil {
		t.Fatal(err)
	}
	var have map[string][][2]float64
	if err := json.Unmarshal(out, &have); err != nil {
		t.Fatal(err)
	}
	_, rows, err := readRecord(filepath.Join(dir, "numbers", recordName))
	if err != nil {
		t.Fatal(err)
	}
	for tag, column := range map[string]string{
		"train/loss": "loss", "learning rate": "learning_rate",
		"train/accuracy": "accuracy", "held-out/loss": "held_out_loss",
		"memory/device bytes": "device_bytes"} {
		points := have[tag]
		for _, row := range rows {
			if row[column] == "" {
				continue
			}
			x, err := strconv.ParseFloat(row[column], 64)
			if err != nil {
				t.Fatal(err)
			}
			if len(points) == 0 || decimal(points[0][0]) != row["step"] ||
				float32(points[0][1]) != float32(x) {
				t.Fatalf("%s: %v, the row is %v", tag, points, row)
			}
			points = points[1:]
		}
		if len(points) > 0 {
			t.Errorf("%s has %d points more than rows", tag, len(points))
		}
	}
}
